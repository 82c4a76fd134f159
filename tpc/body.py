"""The computation inside a compiled call: one program, or a forward and a reverse program joined by a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tpc.autograd.engine import Pass
from tpc.autograd.node import Edge, Grads, Node
from tpc.autograd.saved import SECOND_TIME
from tpc.batching.compiled_calls import is_transformed, transformed
from tpc.outcome import Made, Outcome
from tpc.pipeline import EARLY, LATE, compile_program, optimized
from tpc.recording import Recorded, capture, placeholder
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor, from_array
from tpc.tracing import Untraceable, tracing


class Uses(NamedTuple):
    """What one backward relies on: memory that nobody may have written since, and saved tensors that must not have been freed."""

    inputs: tuple[tuple[int, int], ...]
    """(input, writes to it by the call)"""
    outputs: tuple[int, ...]
    readers: frozenset[Node]
    """Nodes of the trace that read what they had saved."""
    ran: frozenset[Node]


class Body:
    """`outputs` as a function of `inputs`, differentiable where `tracked` says so.

    Gradients arrive at `tracked` and leave by the edges `sought`. Which tracked outputs a gradient arrives for is part of a reverse
    program's
    key: the usual case, all of them, is what the forward program saves for; another pattern has a reverse program that starts from the
    inputs.
    """

    def __init__(
        self,
        name: str,
        outcome: Outcome,
        inputs: Sequence[Recorded],
        outputs: Sequence[Recorded],
        tracked: Sequence[Made],
        sought: Sequence[Edge],
        names: Sequence[str | None],
        writes: Sequence[tuple[int, int, int]] = (),
        memory_budget: float = 1.0,
    ) -> None:
        self.name, self.outcome, self.memory_budget = name, outcome, memory_budget
        self.inputs, self.outputs, self.sought = list(inputs), list(outputs), list(sought)
        self.names = list(names)
        self.writes: list[int | None] = [None] * len(outputs)
        for output, number, _ in writes:
            self.writes[output] = number
        self.reverses: dict[tuple[bool, ...], Reverse] = {}
        self.second: Second | None = None
        self.halves: Any = None
        self.exhausting: dict[frozenset[Node], bool] = {}
        self.tracked, recorded = self._alive(list(tracked))
        self.lifted = len(self.inputs)
        """Inputs that a call hands over."""
        if recorded is not None:
            self._split(*recorded)
        else:
            self.program = capture(name, self.inputs, self.outputs, self.names, self.writes)
            self.optimized = optimized(self.program, memory_budget)
            self.forward = compile_program(self.optimized, donate=self.donated())

    def _alive(self, tracked: list[Made]) -> tuple[list[Made], Any]:
        """The tracked outputs that were not back-propagated already inside the function, and backward from all of them, recorded.

        Where backward raises, it is not recorded now: whoever back-propagates gets the error then.
        """
        while tracked:
            try:
                return tracked, self.backward_from(tracked, (True,) * len(tracked))
            except Untraceable:
                raise
            except Exception:
                alive = [made for made in tracked if not self._is_spent(made)]
                if len(alive) == len(tracked):
                    return tracked, None
                tracked = alive
        return tracked, None

    def _is_spent(self, made: Made) -> bool:
        try:
            self.backward_from([made], (True,))
        except RuntimeError as error:
            return str(error).startswith(SECOND_TIME)
        except Exception:
            return False
        return False

    def donated(self) -> frozenset[int]:
        """Inputs that the program may overwrite, because it writes them anyway: not where a guard may still say no, nor where backward
        reads inputs."""
        return frozenset() if self.outcome.guards or self.tracked else frozenset(w for w in self.writes if w is not None)

    def _split(self, cotangents: list[Recorded], gradients: list[Recorded | None]) -> None:
        from tpc.passes.split import split

        pattern = (True,) * len(self.tracked)
        first = len(self.inputs)
        present = [g for g in gradients if g is not None]
        names = [*self.names, *[f"d{i}" for i in range(len(cotangents))]]
        writes = [*self.writes, *[None] * len(present)]
        self.program = capture(f"{self.name}", [*self.inputs, *cotangents], [*self.outputs, *present], names, writes)
        joint = optimized(self.program, only=EARLY)
        halves = self.halves = split(joint, len(self.outputs), range(first, first + len(cotangents)), self.memory_budget)
        self.forward_program, self.reverse_program = optimized(halves.forward, only=LATE), optimized(halves.reverse, only=LATE)
        self.forward = compile_program(self.forward_program, donate=self.donated())
        reverse = compile_program(self.reverse_program)
        origin = [_origin(kind, n, len(self.outputs), first) for kind, n in halves.reverse_inputs]
        self.reverses[pattern] = Reverse(reverse, origin, gradients, self.uses)

    def backward_from(self, tracked: Sequence[Made], pattern: Sequence[bool]) -> tuple[list[Recorded], list[Recorded | None]]:
        """Records backward from the tracked outputs of the pattern: (cotangents, gradients of `sought`)."""
        self.outcome.trace.forget_saved()
        cotangents, gradients, ran = record_backward(self.outcome, tracked, self.sought, pattern)
        self.inputs_grew()
        self.uses = self.uses_of(ran)
        return cotangents, gradients

    def uses_of(self, ran: set[Node]) -> Uses:
        """What the backward recorded last relies on."""
        trace, made = self.outcome.trace, self.outcome.made
        number = {id(v): i for i, v in enumerate(self.inputs)}
        placed = [(number.get(id(trace.placeholders[s])), writes) for s, writes in trace.saved.items()]
        outputs = tuple(made[s] for s in trace.saved_made if s in made)
        return Uses(tuple((i, w) for i, w in placed if i is not None), outputs, frozenset(trace.readers), frozenset(ran))

    def is_exhausted(self, freed: frozenset[Node]) -> bool:
        """Whether backward from any tracked output would read something that was freed."""
        found = self.exhausting.get(freed)
        if found is None:
            full = self.reverses.get((True,) * len(self.tracked))
            gone = full.uses.readers & freed if full is not None else frozenset()
            ends = [made.edge[0] for made in self.tracked if made.edge is not None]
            found = self.exhausting[freed] = all(not gone.isdisjoint(reached(end)) for end in ends)
        return found

    def inputs_grew(self) -> None:
        """Backward code may touch tensors from outside that forward did not."""
        known = {id(v) for v in self.inputs}
        for value in self.outcome.inputs:
            if id(value) not in known:
                self.inputs.append(value)
                self.names.append(None)

    def reverse(self, pattern: tuple[bool, ...]) -> Reverse:
        """The reverse program for gradients that arrive for these tracked outputs."""
        found = self.reverses.get(pattern)
        if found is None:
            cotangents, gradients = self.backward_from(self.tracked, pattern)
            present = [g for g in gradients if g is not None]
            arriving = [i for i, arrives in enumerate(pattern) if arrives]
            program = capture(f"{self.name}.reverse", [*self.inputs, *cotangents], present, [*self.names, *[f"d{i}" for i in arriving]])
            # What this backward alone reads from outside is read when it runs.
            origin = [("input", i) if i < self.lifted else ("late", i) for i in range(len(self.inputs))] + [
                ("cotangent", i) for i in arriving
            ]
            found = self.reverses[pattern] = Reverse(compile_program(optimized(program)), origin, gradients, self.uses)
        return found

    def call(self, arrays: list[np.ndarray], edges: Sequence[Edge | None]) -> tuple[Sequence[np.ndarray], BodyNode | None]:
        """Runs forward: the outputs, and the node that back-propagates from the tracked ones. `edges` are where gradients of `sought`
        go."""
        outs = self.forward.run(arrays)
        if not self.tracked:
            return outs, None
        n = len(self.outputs)
        return outs[:n], BodyNode(self, edges, arrays, outs)


def record_backward(
    outcome: Outcome, tracked: Sequence[Made], sought: Sequence[Edge], pattern: Sequence[bool]
) -> tuple[list[Recorded], list[Recorded | None], set[Node]]:
    """Records backward from the tracked values that a gradient arrives for: (cotangents, gradients of `sought`, nodes that ran)."""
    with tracing(outcome.trace):
        roots, cotangents = [], []
        for made, arrives in zip(tracked, pattern, strict=True):
            if arrives and made.edge is not None:
                cotangents.append(placeholder(made.value.type))
                roots.append((made.edge, Tensor(Storage(cotangents[-1]), made.value.type)))
        run = Pass(retain_graph=True, create_graph=False, hook_captures=False)
        run.run(roots, sought)
        gradients = [g._read() if g is not None else None for g in run.captured]
    outcome.lift_inputs([g for g in gradients if g is not None])
    return cotangents, gradients, run.needed or set()


def reached(root: Node) -> set[Node]:
    """A node and all behind it."""
    seen, stack = {root}, [root]
    while stack:
        for edge in stack.pop()._edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return seen


def _origin(kind: str, number: int, outputs: int, inputs: int) -> tuple[str, int]:
    """Where an input of a reverse program comes from, in terms of the call: input, output, saved value or cotangent."""
    if kind == "input":
        return ("input", number) if number < inputs else ("cotangent", number - inputs)
    return ("output", number) if number < outputs else ("saved", number - outputs)


class Reverse:
    """A reverse program, where its inputs come from, and which of the sought edges get a gradient."""

    def __init__(self, executable: Any, origin: Sequence[tuple[str, int]], gradients: Sequence[Recorded | None], uses: Uses) -> None:
        self.executable, self.origin, self.uses = executable, tuple(origin), uses
        self.present = tuple(g is not None for g in gradients)

    def run(self, **pools: Any) -> list[np.ndarray | None]:
        outs = iter(self.executable.run([pools[kind][i] for kind, i in self.origin]))
        return [next(outs) if there else None for there in self.present]


class _Late:
    """Arrays of inputs that no call handed over, by number."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def __getitem__(self, i: int) -> np.ndarray:
        storage: Storage = self.outcome.sources[i].ref
        return storage.array()


class SpentNode(Node):
    """The history of a result that was back-propagated inside the compiled function."""

    def _run(self, grads: Grads) -> Sequence[Any]:
        raise RuntimeError(f"{SECOND_TIME} (inside a compiled function)")


class BodyNode(Node):
    """Back-propagates one compiled call."""

    def __init__(self, body: Body, edges: Sequence[Edge | None], inputs: list[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        super().__init__(edges, [m.value.type for m in body.tracked])
        self.body = body
        self.inputs: list[np.ndarray] | None = inputs
        self.outputs: Sequence[np.ndarray] | None = outputs
        self.versions: list[tuple[Storage, int]] = []
        """The memory of the inputs and its versions when the call began."""
        self.made: dict[int, Storage] = {}
        """The memory that the call made, by output."""
        self.freed: frozenset[Node] = frozenset()
        """Nodes of the trace that a pass has run and not retained."""
        self.ran: frozenset[Node] = frozenset()
        """Those that the last pass ran."""

    def name(self) -> str:
        return f"Compiled[{self.body.name}]Backward"

    def _run(self, grads: Grads) -> Sequence[Any]:
        if all(g is None for g in grads):
            return [None] * len(self._edges)
        if self.inputs is None or self.outputs is None:
            raise RuntimeError(f"{SECOND_TIME} ({self.name()})")
        if STATE.transforming and is_transformed(grads):
            return transformed(self._run, grads, [e[0]._metas[e[1]] if e is not None else self._metas[0] for e in self._edges])
        pattern = tuple(g is not None for g in grads)
        if STATE.grad_enabled:
            return self._differentiable(pattern, grads)
        reverse = self.body.reverse(pattern)
        self._check(reverse.uses)
        outs = reverse.run(
            input=self.inputs,
            output=self.outputs,
            saved=self.outputs[len(self.body.outputs) :],
            cotangent=[g._array() if g is not None else None for g in grads],
            late=_Late(self.body.outcome),
        )
        return [from_array(a) if a is not None else None for a in outs]

    def _check(self, uses: Uses) -> None:
        """Raises where backward would read something that was freed or written since."""
        if self.freed and not self.freed.isdisjoint(uses.readers):
            raise RuntimeError(f"{SECOND_TIME} ({self.name()})")
        self.ran = uses.ran
        for i, writes in uses.inputs:
            storage, version = self.versions[i] if i < len(self.versions) else (None, 0)
            if storage is not None and storage.version != version + writes:
                self._complain(f"input {self.body.names[i] or i}", storage.version, version + writes)
        for i in uses.outputs:
            made = self.made.get(i)
            if made is not None and made.version:
                self._complain(f"result {i}", made.version, 0)

    def _complain(self, what: str, found: int, expected: int) -> None:
        raise RuntimeError(
            f"one of the variables needed for gradient computation has been modified by an inplace operation: {what} of {self.name()} "
            f"is at version {found}; expected version {expected} instead. Hint: write a clone, or write it before the call."
        )

    def _differentiable(self, pattern: tuple[bool, ...], grads: Grads) -> Sequence[Any]:
        """Gradients that can be differentiated again: the reverse computation is a body of its own, over inputs and cotangents."""
        assert self.inputs is not None
        arriving = [g for g in grads if g is not None]
        tracked = tuple(g is not None and g._tracked() for g in grads)
        second = self.body.second
        if second is None or second.pattern != pattern or second.recorded != tracked:
            second = self.body.second = Second(self.body, pattern, tracked)
        self._check(second.uses)
        edges = [*self._edges, *[g._edge() for g in arriving]]
        outs, node = second.body.call([*self.inputs, *[g._array() for g in arriving]], edges)
        made = []
        for index, slot in second.results:
            tensor = from_array(outs[index]) if index is not None else None
            if tensor is not None and node is not None and slot is not None:
                tensor._node, tensor._slot = node, slot
            made.append(tensor)
        return made

    def _release(self) -> None:
        self.freed = self.freed | self.ran if self.freed else self.ran
        if self.body.is_exhausted(self.freed):
            self.inputs, self.outputs, self.made = None, None, {}


class Second:
    """The reverse computation of a body as a body: what a second derivative from outside needs. `recorded` says which cotangents have
    a history."""

    def __init__(self, first: Body, pattern: tuple[bool, ...], recorded: tuple[bool, ...]) -> None:
        self.pattern, self.recorded = pattern, recorded
        outcome = first.outcome
        with tracing(outcome.trace):
            cotangents: list[Tensor] = []
            roots = []
            for made, arrives, has_history in zip(first.tracked, pattern, recorded, strict=True):
                if arrives and made.edge is not None:
                    t = Tensor(Storage(placeholder(made.value.type)), made.value.type)
                    t._leaf = has_history
                    cotangents.append(t)
                    roots.append((made.edge, t))
            outcome.trace.forget_saved()
            run = Pass(retain_graph=True, create_graph=True, hook_captures=False)
            run.run(roots, first.sought)
            outputs: list[Recorded] = []
            tracked: list[Made] = []
            self.results: list[tuple[int | None, int | None]] = []
            for g in run.captured:
                if g is None:
                    self.results.append((None, None))
                    continue
                edge = g._edge()
                self.results.append((len(outputs), len(tracked) if edge is not None else None))
                outputs.append(g._read())
                if edge is not None:
                    tracked.append(Made(len(outputs) - 1, (), g._read(), edge, False))
            seeds: list[Edge] = [(t._accumulator(), 0) for t in cotangents]
            inputs = [*first.inputs, *[t._read() for t in cotangents]]
            self.uses = first.uses_of(run.needed or set())
        self.cotangents = cotangents
        self.accumulators = [edge[0] for edge in seeds]
        self.body = Body(
            f"{first.name}.reverse", outcome, inputs, outputs, tracked, [*first.sought, *seeds], [*first.names, *[None] * len(cotangents)]
        )
