"""Backward of a traced function, recorded after the trace: gradients, and what backward does to the world outside.

Note: time of reading. Backward runs later than forward. Memory from outside that forward read is taken from the call: it is the same as
long as nobody wrote it. Where somebody did, or where backward writes it itself, and for memory that backward alone reads, the array of
the moment counts: such inputs are *late*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tpc.autograd.engine import Pass
from tpc.autograd.node import Edge, Node
from tpc.ir.ops.elementwise import copy
from tpc.outcome import Made
from tpc.recording import MAX_LITERAL, Recorded, collect, is_fixed, placeholder
from tpc.storage import Storage
from tpc.tensor import Tensor
from tpc.tracing import BackwardTrace, Trace, Untraceable, tracing


class WritesMemoryOfCall(Exception):
    """Backward writes memory that forward read: it has to be recorded with late inputs."""


class Effect(NamedTuple):
    """What backward leaves behind: a gradient to be accumulated into a leaf from outside, or the new content of memory."""

    value: Recorded
    leaf: Tensor | None
    storage: Storage | None = None
    writes: int = 0
    """How often the memory was written."""


class Recording(NamedTuple):
    """One backward. `late` are the inputs that are read when it runs; `read` is memory of the call that it reads."""

    cotangents: list[Tensor]
    gradients: list[Tensor | None]
    values: list[Recorded]
    """The gradients that there are, then the values of the effects."""
    effects: list[Effect]
    late: list[tuple[Recorded, Storage]]
    read: set[Storage]
    ran: set[Node]

    @property
    def present(self) -> tuple[bool, ...]:
        """Which of the sought edges get a gradient."""
        return tuple(g is not None for g in self.gradients)


def record_backward(
    trace: Trace,
    tracked: Sequence[Made],
    sought: Sequence[Edge],
    pattern: Sequence[bool],
    inputs: Sequence[Recorded],
    late: bool = False,
    recorded: Sequence[bool] | None = None,
) -> Recording:
    """Records backward from the tracked values that a gradient arrives for, to `sought`. With `recorded`, which says what cotangents have a
    history, the gradients can be differentiated themselves."""
    trace.forget_saved()
    with _backward(trace, late) as world:
        roots, cotangents = [], []
        for i, (made, arrives) in enumerate(zip(tracked, pattern, strict=True)):
            if arrives and made.edge is not None:
                t = Tensor(Storage(placeholder(made.value.type)), made.value.type)
                t._leaf = recorded is not None and recorded[i]
                cotangents.append(t)
                roots.append((made.edge, t))
        run = Pass(retain_graph=True, create_graph=recorded is not None, goes_on=True)
        run.run(roots, sought)
        effects = _effects(trace, world, late)
        values = [g._read() for g in run.captured if g is not None] + [e.value for e in effects]
    known = [*inputs, *[t._storage.value for t in cotangents]]
    return Recording(cotangents, run.captured, values, effects, _late(trace, values, known), world.read, run.needed or set())


@contextmanager
def _backward(trace: Trace, late: bool) -> Iterator[BackwardTrace]:
    """Runs the block under the trace, which afterwards stands as it stood after forward."""
    kept = trace.values, trace.writes, trace.journal, trace.hooks, trace.grads_read
    world = trace.backward = BackwardTrace(dict(trace.writes))
    trace.values = {} if late else dict(trace.values)
    trace.writes, trace.journal, trace.hooks, trace.grads_read = dict(trace.writes), {}, [], {}
    world.values = dict(trace.values)
    try:
        with tracing(trace):
            yield world
            trace.refuse_hooks()
            for tensor, name, old in trace.journal.values():
                if name in ("_grad", "_leaf", "_edits") and getattr(tensor, name) is not old:
                    raise Untraceable(f"backward changes {name.strip('_')} of a tensor from outside; it can only run in deferred mode")
    finally:
        trace.undo()
        trace.backward = None
        trace.values, trace.writes, trace.journal, trace.hooks, trace.grads_read = kept


def _effects(trace: Trace, world: BackwardTrace, late: bool) -> list[Effect]:
    effects = [Effect(grad._read(), leaf) for leaf, grad in world.accumulated]
    for storage, value in list(trace.values.items()):
        before = world.values.get(storage, trace.late.get(storage))
        if _without_copies(value) is before:
            continue
        if not late and storage in trace.placeholders:
            raise WritesMemoryOfCall
        effects.append(Effect(value, None, storage, trace.writes.get(storage, 0) - world.writes.get(storage, 0)))
    return effects


def _without_copies(value: Recorded) -> Recorded:
    """What a value is a copy of: memory that was set and set back has not changed."""
    while value.defn is copy:
        (value,) = value.operands
    return value


def _late(trace: Trace, values: Sequence[Recorded], known: Sequence[Recorded]) -> list[tuple[Recorded, Storage]]:
    """Inputs that no call hands over: memory that is read when backward runs, and large arrays that its code brought in."""
    reached = collect(values, known, through_data=True)
    memory = {id(p): storage for storage, p in trace.late.items()}
    found = [(v, memory[id(v)]) for v in reached if id(v) in memory]
    return found + [(v, Storage.unknown(v)) for v in reached if is_fixed(v) and v.type.nbytes > MAX_LITERAL]
