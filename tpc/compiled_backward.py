"""Backward of compiled calls: the node that runs a reverse program, for first and for higher derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tpc.autograd.engine import Pass
from tpc.autograd.node import Edge, Grads, Node
from tpc.autograd.saved import SECOND_TIME
from tpc.backward_recording import Effect, Recording
from tpc.batching.compiled_calls import is_transformed, transformed
from tpc.outcome import Made
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor, from_array
from tpc.tracing import Untraceable, tracing

if TYPE_CHECKING:
    from tpc.body import Body


class Uses(NamedTuple):
    """What one backward relies on: memory that nobody may have written since, and saved tensors that must not have been freed."""

    inputs: tuple[tuple[int, int], ...]
    """(input, writes to it by the call)"""
    outputs: tuple[int, ...]
    readers: frozenset[Node]
    """Nodes of the trace that read what they had saved."""
    ran: frozenset[Node]
    read: tuple[int, ...]
    """Inputs that backward reads, saved or not."""


class Effects:
    """What a reverse program leaves behind besides gradients, and where."""

    def __init__(self, body: Body, effects: Sequence[Effect]) -> None:
        self.places = [(effect, _edge_of(body, effect), _place(body, effect.storage)) for effect in effects]

    def apply(self, node: BodyNode, arrays: Sequence[np.ndarray]) -> None:
        for (effect, edge, place), array in zip(self.places, arrays, strict=True):
            if effect.leaf is None:
                node.write(place, array, effect.writes)
                continue
            target = effect.leaf._edge() if edge is None else node._edges[edge]
            if target is not None:
                Pass(True, STATE.grad_enabled).run([(target, from_array(array))], None)


def _edge_of(body: Body, effect: Effect) -> int | None:
    """Which edge leads to the leaf that a gradient is for; None for a leaf that is always the same one."""
    if effect.leaf is None:
        return None
    source = body.outcome.tensor_source(effect.leaf)
    if source.kind == "outside":
        return None
    found = next((i for i, (_, s) in enumerate(body.outcome.sought) if s == source), None)
    if found is None:
        raise Untraceable("a pass inside backward reaches an argument that forward did not use; it can only run in deferred mode")
    return found


def _place(body: Body, storage: Storage | None) -> int | Storage | None:
    """The input that is the memory of a storage, or a storage that no call hands over."""
    number = body.number_of(storage) if storage is not None else None
    return storage if number is None else number


class Reverse:
    """A reverse program, where its inputs come from, which of the sought edges get a gradient, and what it does besides."""

    def __init__(self, body: Body, recording: Recording, executable: Any, origin: Sequence[tuple[str, int]]) -> None:
        self.executable, self.origin, self.present = executable, tuple(origin), recording.present
        self.uses = body.uses_of(recording)
        self.late = [_place(body, storage) for _, storage in recording.late]
        self.effects = Effects(body, recording.effects)

    def run(self, node: BodyNode, grads: Grads, effects: bool = True) -> list[np.ndarray | None]:
        assert node.inputs is not None
        assert node.outputs is not None
        pools: dict[str, Sequence[Any]] = {
            "input": node.inputs,
            "output": node.outputs,
            "saved": node.outputs[len(node.body.outputs) :],
            "cotangent": [g._array() if g is not None else None for g in grads],
            "late": [node.read(place) for place in self.late],
        }
        outs = self.executable.run([pools[kind][i] for kind, i in self.origin])
        if effects:
            self.effects.apply(node, outs[sum(self.present) :])
        found = iter(outs)
        return [next(found) if there else None for there in self.present]


class SpentNode(Node):
    """The history of a result that was back-propagated inside the compiled function."""

    def _run(self, grads: Grads) -> Sequence[Any]:
        raise RuntimeError(f"{SECOND_TIME} (inside a compiled function)")


class BodyNode(Node):
    """Back-propagates one compiled call."""

    _has_inside = True

    def __init__(self, body: Body, edges: Sequence[Edge | None], inputs: list[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        super().__init__(edges, [m.value.type for m in body.tracked])
        self.body = body
        self.inputs: list[np.ndarray] | None = inputs
        self.outputs: Sequence[np.ndarray] | None = outputs
        self.versions: list[tuple[Storage, int]] = []
        """The memory of the inputs and its versions when the call began."""
        self.contents: list[Any] = []
        """What that memory held when the call was over."""
        self.views: dict[int, Tensor] = {}
        """Inputs that are views of it."""
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
        return [from_array(a) if a is not None else None for a in self._reverse(pattern).run(self, grads)]

    def _reverse(self, pattern: tuple[bool, ...], slots: tuple[int, ...] | None = None) -> Reverse:
        reverse = self.body.reverse(pattern, slots=slots)
        self._check(reverse.uses)
        if self._has_changed(reverse.uses):
            reverse = self.body.reverse(pattern, late=True, slots=slots)
            self._check(reverse.uses)
        return reverse

    def _whole(self, grads: Grads, captured: Sequence[int]) -> Grads:
        seen = {*captured, *(self._tensor_hooks or ()), *(self._retaining or ())}
        slots = tuple(sorted(seen & self.body.inner)) if seen else ()
        if not slots or all(g is None for g in grads):
            return grads
        if self.inputs is None:
            raise RuntimeError(f"{SECOND_TIME} ({self.name()})")
        if STATE.grad_enabled:
            raise RuntimeError(
                f"the gradient of one result of {self.name()} with respect to another cannot be differentiated again; call autograd.grad "
                "inside the compiled function"
            )
        reverse = self._reverse(tuple(g is not None for g in grads), slots)
        whole = list(grads)
        for slot, array in zip(slots, reverse.run(self, grads, effects=False), strict=True):
            whole[slot] = from_array(array) if array is not None else None
        return whole

    # --- memory ---

    def read(self, place: int | Storage | None) -> np.ndarray:
        """What an input of the call, or other memory, holds now."""
        if isinstance(place, Storage):
            return place.array()
        assert place is not None
        view = self.views.get(place)
        return self.versions[place][0].array() if view is None else np.ascontiguousarray(view._array())

    def write(self, place: int | Storage | None, array: np.ndarray, count: int) -> None:
        """Gives memory a new content, by `count` writes."""
        view = self.views.get(place) if isinstance(place, int) else None
        if view is not None:
            outer, STATE.grad_enabled = STATE.grad_enabled, False
            view._write(from_array(array))
            STATE.grad_enabled = outer
            storage = view._storage
        else:
            storage = place if isinstance(place, Storage) else self.versions[place or 0][0]
            storage.replace(array)
        storage.version += count - 1

    def _has_changed(self, uses: Uses) -> bool:
        """Whether memory that backward reads holds something else than when the call was over."""
        contents, versions = self.contents, self.versions
        return any([contents[i] is not versions[i][0].value for i in uses.read if i < len(contents)])

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
        second = self._second(pattern, tracked, False)
        self._check(second.uses)
        if self._has_changed(second.uses):
            second = self._second(pattern, tracked, True)
            self._check(second.uses)
        edges = [*self._edges, *[g._edge() for g in arriving]]
        arrays = [*self.inputs, *[self.read(place) for place in second.late], *[g._array() for g in arriving]]
        outs, node = second.body.call(arrays, edges)
        if node is not None:
            node.versions, node.contents, node.views = self.versions, self.contents, self.views
        second.effects.apply(self, outs[second.count :])
        made = []
        for index, slot in second.results:
            tensor = from_array(outs[index]) if index is not None else None
            if tensor is not None and node is not None and slot is not None:
                tensor._node, tensor._slot = node, slot
            made.append(tensor)
        return made

    def _second(self, pattern: tuple[bool, ...], recorded: tuple[bool, ...], late: bool) -> Second:
        second = self.body.second
        if second is None or (second.pattern, second.recorded, second.late_memory) != (pattern, recorded, late):
            second = self.body.second = Second(self.body, pattern, recorded, late)
        return second

    def _release(self) -> None:
        self.freed = self.freed | self.ran if self.freed else self.ran
        if self.body.is_exhausted(self.freed):
            self.inputs, self.outputs, self.made, self.contents = None, None, {}, []


class Second:
    """The reverse computation of a body as a body: what a second derivative from outside needs. `recorded` says which cotangents have
    a history."""

    def __init__(self, first: Body, pattern: tuple[bool, ...], recorded: tuple[bool, ...], late: bool) -> None:
        from tpc.body import Body

        self.pattern, self.recorded, self.late_memory = pattern, recorded, late
        recording = first.backward_from(first.tracked, pattern, late, recorded)
        self.uses = first.uses_of(recording)
        self.late = [_place(first, storage) for _, storage in recording.late]
        self.effects = Effects(first, recording.effects)
        self.count = sum(recording.present)
        tracked: list[Made] = []
        self.results: list[tuple[int | None, int | None]] = []
        """For each sought edge the output that is its gradient, and the slot of its history."""
        with tracing(first.outcome.trace):
            number = 0
            for g in recording.gradients:
                if g is None:
                    self.results.append((None, None))
                    continue
                edge = g._edge()
                self.results.append((number, len(tracked) if edge is not None else None))
                if edge is not None:
                    tracked.append(Made(number, (), g._read(), edge, False))
                number += 1
            self.cotangents = recording.cotangents
            seeds: list[Edge] = [(t._accumulator(), 0) for t in self.cotangents]
            cotangents = [t._read() for t in self.cotangents]
        self.accumulators = [edge[0] for edge in seeds]
        inputs = [*first.inputs, *[v for v, _ in recording.late], *cotangents]
        names = [*first.names, *[None] * (len(inputs) - len(first.inputs))]
        self.body = Body(
            f"{first.name}.reverse",
            first.outcome,
            inputs,
            recording.values,
            tracked,
            [*first.sought, *seeds],
            names,
            backend=first.backend,
        )
