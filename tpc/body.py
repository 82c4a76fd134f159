"""The computation inside a compiled call: one program, or a forward and a reverse program joined by a node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tpc.autograd.node import Edge, Node
from tpc.autograd.saved import SECOND_TIME
from tpc.backward_recording import Recording, WritesMemoryOfCall, record_backward
from tpc.compiled_backward import BodyNode, Reverse, Second, Uses
from tpc.outcome import Made, Outcome
from tpc.pipeline import EARLY, LATE, compile_program, optimized
from tpc.recording import Recorded, capture
from tpc.storage import Storage
from tpc.tracing import Untraceable


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
        backend: str | None = None,
    ) -> None:
        self.name, self.outcome, self.memory_budget, self.backend = name, outcome, memory_budget, backend
        self.inputs, self.outputs, self.sought = list(inputs), list(outputs), list(sought)
        self.names = list(names)
        self.writes: list[int | None] = [None] * len(outputs)
        for output, number, _ in writes:
            self.writes[output] = number
        self.late = False
        """Whether backward writes memory that forward reads, and so takes all its memory as it finds it."""
        self.reverses: dict[tuple[tuple[bool, ...], bool, tuple[int, ...] | None], Reverse] = {}
        """By the pattern of gradients that arrive, whether inputs are late, and the tracked outputs whose gradients are asked for."""
        self.second: Second | None = None
        self.halves: Any = None
        self.exhausting: dict[frozenset[Node], bool] = {}
        self.tracked, recording = self._alive(list(tracked))
        if recording is not None:
            self._split(recording)
        else:
            self.program = capture(name, self.inputs, self.outputs, self.names, self.writes)
            self.optimized = optimized(self.program, memory_budget)
            self.forward = compile_program(self.optimized, self.donated(), backend)

    def _alive(self, tracked: list[Made]) -> tuple[list[Made], Recording | None]:
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

    def _split(self, recording: Recording) -> None:
        from tpc.passes.split import split

        pattern = (True,) * len(self.tracked)
        late, names = self._reverse_inputs(recording, pattern)
        writes = [*self.writes, *[None] * len(recording.values)]
        self.program = capture(f"{self.name}", [*self.inputs, *late], [*self.outputs, *recording.values], [*self.names, *names], writes)
        joint = optimized(self.program, only=EARLY)
        first = len(self.inputs)
        halves = self.halves = split(joint, len(self.outputs), range(first, first + len(late)), self.memory_budget)
        self.forward_program, self.reverse_program = optimized(halves.forward, only=LATE), optimized(halves.reverse, only=LATE)
        self.forward = compile_program(self.forward_program, self.donated(), self.backend)
        reverse = compile_program(self.reverse_program, backend=self.backend)
        origins = self._origins(recording, pattern)
        count = len(self.outputs)
        origin = [
            origins[n] if kind == "input" else ("output", n) if n < count else ("saved", n - count) for kind, n in halves.reverse_inputs
        ]
        self.reverses[pattern, self.late, None] = Reverse(self, recording, reverse, origin)

    @staticmethod
    def _reverse_inputs(recording: Recording, pattern: Sequence[bool]) -> tuple[list[Recorded], list[str | None]]:
        """What only reverse takes, with names: late inputs, then cotangents."""
        values = [*[v for v, _ in recording.late], *[t._storage.value for t in recording.cotangents]]
        return values, [*[None] * len(recording.late), *[f"d{i}" for i, arrives in enumerate(pattern) if arrives]]

    def _origins(self, recording: Recording, pattern: Sequence[bool]) -> list[tuple[str, int]]:
        """Where the inputs of a joint program come from in terms of a call, in order."""
        arriving = [("cotangent", i) for i, arrives in enumerate(pattern) if arrives]
        return [*[("input", i) for i in range(len(self.inputs))], *[("late", i) for i in range(len(recording.late))], *arriving]

    def backward_from(
        self,
        tracked: Sequence[Made],
        pattern: Sequence[bool],
        late: bool = False,
        recorded: Sequence[bool] | None = None,
        sought: Sequence[Edge] | None = None,
    ) -> Recording:
        """Records backward from the tracked outputs of the pattern to `sought`, of the body if not given."""
        trace = self.outcome.trace
        sought = self.sought if sought is None else sought
        if not late and not self.late:
            try:
                return record_backward(trace, tracked, sought, pattern, self.inputs, False, recorded)
            except WritesMemoryOfCall:
                self.late = True
        return record_backward(trace, tracked, sought, pattern, self.inputs, True, recorded)

    def uses_of(self, recording: Recording) -> Uses:
        """What the backward recorded last relies on."""
        trace, made = self.outcome.trace, self.outcome.made
        placed = [(self.number_of(s), writes) for s, writes in trace.saved.items()]
        outputs = tuple(made[s] for s in trace.saved_made if s in made)
        read = tuple(i for s in recording.read if (i := self.number_of(s)) is not None)
        checked = tuple((i, w) for i, w in placed if i is not None)
        return Uses(checked, outputs, frozenset(trace.readers), frozenset(recording.ran), read)

    def number_of(self, storage: Storage) -> int | None:
        """Which input is the memory of a storage."""
        value = self.outcome.trace.placeholders.get(storage)
        return next((i for i, v in enumerate(self.inputs) if v is value), None)

    def is_exhausted(self, freed: frozenset[Node]) -> bool:
        """Whether backward from any tracked output would read something that was freed."""
        found = self.exhausting.get(freed)
        if found is None:
            full = self.reverses.get(((True,) * len(self.tracked), self.late, None))
            gone = full.uses.readers & freed if full is not None else frozenset()
            ends = [made.edge[0] for made in self.tracked if made.edge is not None]
            found = self.exhausting[freed] = all(not gone.isdisjoint(reached(end)) for end in ends)
        return found

    @cached_property
    def inner(self) -> frozenset[int]:
        """Tracked outputs that others depend on."""
        ends = [made.edge[0] for made in self.tracked if made.edge is not None]
        behind = {end: reached(end) - {end} for end in ends}
        return frozenset(i for i, end in enumerate(ends) if any(end in b for b in behind.values()))

    def reverse(self, pattern: tuple[bool, ...], late: bool = False, slots: tuple[int, ...] | None = None) -> Reverse:
        """The reverse program for gradients that arrive for these tracked outputs, and for memory of the call or of the moment; with
        `slots` it gives the gradients of those tracked outputs instead of what leaves the call."""
        key = pattern, late or self.late, slots
        found = self.reverses.get(key)
        if found is None:
            sought = None if slots is None else [edge for s in slots if (edge := self.tracked[s].edge) is not None]
            recording = self.backward_from(self.tracked, pattern, late, sought=sought)
            inputs, names = self._reverse_inputs(recording, pattern)
            program = capture(f"{self.name}.reverse", [*self.inputs, *inputs], recording.values, [*self.names, *names])
            made = Reverse(self, recording, compile_program(optimized(program), backend=self.backend), self._origins(recording, pattern))
            found = self.reverses[key] = made
        return found

    def call(self, arrays: list[np.ndarray], edges: Sequence[Edge | None]) -> tuple[Sequence[np.ndarray], BodyNode | None]:
        """Runs forward: the outputs, and the node that back-propagates from the tracked ones. `edges` are where gradients of `sought`
        go."""
        outs = self.forward.run(arrays)
        if not self.tracked:
            return outs, None
        n = len(self.outputs)
        return outs[:n], BodyNode(self, edges, arrays, outs)


def reached(root: Node) -> set[Node]:
    """A node and all behind it."""
    seen, stack = {root}, [root]
    while stack:
        for edge in stack.pop()._edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return seen
