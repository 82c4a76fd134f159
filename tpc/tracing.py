"""A trace: one run of user code on placeholders, and everything it does to the world outside, held back.

Memory from outside is lifted when first touched: it becomes an input. What the code writes to it, to `.grad` and to
histories is kept here, or journalled and undone, so that a trace that fails has changed nothing and one that succeeds
has its changes applied by each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tpc.autograd.node import Edge, Grads, Hooks, Node
from tpc.ir.errors import TpcError
from tpc.recording import Recorded, capture, collect, placeholder, resolve_loc, user_frame
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor

GUARD_ELEMENTS = 64
"""Values up to this size that Python looked at become guards; code that looks at larger ones needs the array itself."""


class Untraceable(TpcError, RuntimeError):
    """The code needs an array in the middle of a trace; it can only run in deferred mode."""


class Unready(Untraceable):
    """The code is about to make state that lasts, such as an optimiser does in its first step: this once it runs in deferred mode."""


class Boundary(Node):
    """Where a trace ends and the history of a tensor from outside begins."""

    def __init__(self, tensor: Tensor, outside: Edge) -> None:
        super().__init__((), (tensor._type,))
        self.outside = outside

    def _run(self, grads: Grads) -> Any:
        raise Untraceable(
            "backward() inside a compiled function reaches the history of a tensor that was computed outside of it. Compute that tensor "
            "inside the function, pass it detached, or return the loss and call backward() outside"
        )


class BackwardTrace:
    """What a backward that is being recorded did so far."""

    def __init__(self, writes: dict[Storage, int]) -> None:
        self.writes = writes
        """How often forward wrote memory from outside."""
        self.values: dict[Storage, Recorded] = {}
        """The contents that it found."""
        self.read: set[Storage] = set()
        self.accumulated: list[tuple[Tensor, Tensor]] = []
        """Gradients that passes inside it have for leaves from outside."""


class Trace:
    """The state of one trace. `concrete` says whether placeholders have arrays (the arguments of a first call) or types alone."""

    def __init__(self, concrete: bool) -> None:
        self.concrete = concrete
        self.placeholders: dict[Storage, Recorded] = {}
        """Storages from outside that were read before anything else happened to them."""
        self.late: dict[Storage, Recorded] = {}
        """The same for storages that a backward reads when it runs."""
        self.backward: BackwardTrace | None = None
        """The backward that is recorded after the trace."""
        self.values: dict[Storage, Recorded] = {}
        """Current value of every storage from outside that was touched."""
        self.versions: dict[Storage, int] = {}
        """Version of each when it was lifted; backward may be recorded long after."""
        self.saved: dict[Storage, int] = {}
        """Memory from outside that backward found saved, and how often the trace had written it by then."""
        self.saved_made: set[Storage] = set()
        """Memory made here that backward found saved."""
        self.readers: set[Node] = set()
        """Nodes whose backward read what they had saved."""
        self.writes: dict[Storage, int] = {}
        self.journal: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.leaves: dict[int, Tensor] = {}
        """Tensors from outside whose gradient edge was asked for, by id."""
        self.met: dict[int, Tensor] = {}
        """Tensors from outside that were used."""
        self.hooks: list[tuple[Hooks, dict[int, Any]]] = []
        """Hooks of tensors from outside, and what they were."""
        self.plain: dict[int, Tensor] = {}
        """Tensors from outside that were used where a history would have been followed, and had none."""
        self.boundaries: dict[Edge, tuple[Boundary, Tensor]] = {}
        self.grads_read: dict[int, tuple[Tensor, Tensor | None]] = {}
        """Tensors from outside whose `.grad` was read before it was set, with what it was."""
        self.guards: list[tuple[Recorded, np.ndarray, Any]] = []
        self.modules: dict[int, Any] = {}
        """Modules that were called, by id."""
        self.modules_made: dict[int, Any] = {}
        """Modules made here, whose attributes may change."""

    # --- memory from outside ---

    def is_outside(self, storage: Storage) -> bool:
        """Whether memory is from outside, so that the trace follows what it holds."""
        return storage.trace is None

    def inside(self, operands: Sequence[Any]) -> Sequence[Any]:
        """What stands for these operands in the trace: themselves, as tensors from outside are followed by their memory."""
        return operands

    def read(self, storage: Storage) -> Recorded:
        value = self.values.get(storage)
        if value is None:
            value = self.values[storage] = self._lift(storage) if self.backward is None else self._lift_late(storage)
        if self.backward is not None:
            self.backward.read.add(storage)
        return value

    def _lift_late(self, storage: Storage) -> Recorded:
        self.versions.setdefault(storage, storage.version)
        return self.late.setdefault(storage, placeholder(storage.value.type))

    def _lift(self, storage: Storage) -> Recorded:
        outer, STATE.trace = STATE.trace, None
        try:
            data = storage.array() if self.concrete or storage.value.data is not None else None
        finally:
            STATE.trace = outer
        self.versions[storage] = storage.version
        lifted = self.placeholders[storage] = placeholder(storage.value.type, data)
        return lifted

    def set(self, storage: Storage, value: Recorded) -> None:
        self.read(storage)
        self.values[storage] = value

    def count_write(self, storage: Storage) -> None:
        self.writes[storage] = self.writes.get(storage, 0) + 1

    def version(self, storage: Storage) -> int:
        return self.versions.get(storage, storage.version) + self.writes.get(storage, 0)

    def unpacked(self, storage: Storage) -> None:
        """Notes that backward read a saved tensor that has this memory."""
        if storage in self.versions:
            self.saved[storage] = (self.writes if self.backward is None else self.backward.writes).get(storage, 0)
        else:
            self.saved_made.add(storage)

    def forget_saved(self) -> None:
        """Before backward is recorded: nothing was found saved yet."""
        self.saved.clear()
        self.saved_made.clear()
        self.readers.clear()

    # --- tensors from outside ---

    def remember(self, tensor: Tensor, *attributes: str) -> None:
        """Notes attributes that are about to change, to be put back when the trace is over."""
        for name in attributes:
            self.journal.setdefault((id(tensor), name), (tensor, name, getattr(tensor, name)))

    def changed(self, tensor: Tensor, attribute: str) -> bool:
        return (id(tensor), attribute) in self.journal

    def edge(self, tensor: Tensor) -> Edge | None:
        """Gradient edge of a tensor from outside: what the trace made of it, its accumulation node, or a boundary."""
        if self.changed(tensor, "_node"):
            return (tensor._node, tensor._slot) if tensor._node is not None else None
        if tensor._node is not None:
            outside = (tensor._node, tensor._slot)
            if outside not in self.boundaries:
                self.boundaries[outside] = (Boundary(tensor, outside), tensor)
            return self.boundaries[outside][0], 0
        if not tensor._leaf:
            self.look((tensor,))
            return None
        self.leaves[id(tensor)] = tensor
        return tensor._accumulator(), 0

    def look(self, tensors: Iterable[Any]) -> None:
        """Notes which of the operands are from outside, and which of those have no history where one would be followed."""
        for t in tensors:
            if t.__class__ is not Recorded and t._trace is not self:
                self.met[id(t)] = t
                if STATE.grad_enabled and t._node is None and not t._leaf and not self.changed(t, "_leaf"):
                    self.plain[id(t)] = t

    def hooked(self, hooks: Hooks) -> None:
        """Hooks of a tensor from outside are about to change."""
        self.hooks.append((hooks, dict(hooks)))

    def refuse_hooks(self) -> None:
        """A hook registered anew at each call is no part of a program; one that was removed again is."""
        if any(dict(hooks) != before for hooks, before in self.hooks):
            raise Untraceable("a hook is put on a tensor from outside, and stays there: register it outside, or remove it before the end")

    def grad_was_read(self, tensor: Tensor) -> None:
        if self.backward is not None:
            raise Untraceable("backward reads .grad of a tensor from outside; it can only run in deferred mode")
        if not self.changed(tensor, "_grad"):
            self.grads_read.setdefault(id(tensor), (tensor, tensor._grad))

    def input_edges(self) -> list[tuple[Edge, Tensor]]:
        """Every edge through which a gradient leaves the trace, with its tensor."""
        leaves: list[tuple[Edge, Tensor]] = [((t._accumulator(), 0), t) for t in self.leaves.values()]
        return leaves + [((boundary, 0), t) for boundary, t in self.boundaries.values()]

    def undo(self) -> dict[tuple[int, str], tuple[Any, str, Any]]:
        """Puts everything back; returns what had changed as {key: (tensor, attribute, value the trace gave)}."""
        for hooks, before in reversed(self.hooks):
            hooks.clear()
            hooks.update(before)
        changes = {}
        for key, (obj, name, old) in self.journal.items():
            new = getattr(obj, name)
            if new is not old:
                changes[key] = (obj, name, new)
            setattr(obj, name, old)
        return changes

    # --- looking at values ---

    def evaluate(self, value: Recorded) -> np.ndarray:
        """The array that a value has in this call; the program gets a guard that later calls have it too."""
        where = resolve_loc(STATE.loc or user_frame())
        depends = self._depends_on_inputs(value)
        if depends and self.backward is not None:
            raise Untraceable(f"backward looks at a value at {where}, which is known only when it runs; it can only run in deferred mode")
        if depends and not self.concrete:
            raise Untraceable(
                f"the value of a tensor was asked for at {where}, but tpc.trace has only its type; use tpc.where instead of a branch"
            )
        if self._depends_on_gradients(value):
            raise Untraceable(
                f"the value of a tensor that depends on a gradient from outside was asked for at {where}: backward is recorded before "
                "there is one"
            )
        array = self.peek(value)
        if depends and array.size > GUARD_ELEMENTS:
            raise Untraceable(
                f"{value.type} was turned into an array at {where}: inside a compiled function only small values may be looked at. Use tpc "
                "functions on the tensor, or tpc.where for a choice"
            )
        if depends and not any(v is value for v, _, _ in self.guards):
            self.guards.append((value, array, where))
        return array

    def peek(self, value: Recorded) -> np.ndarray:
        """The array, without a guard."""
        if value.data is None:
            from tpc.runtime.interpreter import interpret

            graph = collect([value])
            leaves = [v for v in graph if v.data is not None]
            made = [v for v in graph if v.data is None and type(v.type) is not tuple]
            arrays = interpret(capture("peek", leaves, made, through_data=False), [v.data for v in leaves])  # type: ignore[misc]
            for v, array in zip(made, arrays, strict=True):
                v.data = array
        assert value.data is not None
        return value.data

    def _depends_on_inputs(self, value: Recorded) -> bool:
        inputs = {id(p) for p in self.placeholders.values()}
        reached = collect([value], through_data=True)
        return any(id(v) in inputs or (v.defn is None and not v.operands and v.data is None) for v in reached)

    def _depends_on_gradients(self, value: Recorded) -> bool:
        return any(v.defn is None and not v.operands and v.data is None for v in collect([value]))


@contextmanager
def tracing(trace: Trace | None) -> Any:
    """Runs the block under a trace."""
    outer, STATE.trace = STATE.trace, trace
    try:
        yield trace
    finally:
        STATE.trace = outer


def forget_examples(trace: Trace, outputs: list[Recorded]) -> None:
    """Drops the arrays of the first call from the graph: placeholders and whatever was looked at."""
    for value in collect(outputs, through_data=True):
        if value.defn is not None or value.operands:
            value.data = None
    for p in trace.placeholders.values():
        p.data = None
