"""What one trace of a function came to: its inputs, the values it made, and its effects on tensors from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tpc.autograd.node import Edge, hook_ids
from tpc.deferred import flush
from tpc.recording import MAX_LITERAL, Recorded, collect, is_fixed
from tpc.storage import Storage
from tpc.tensor import Tensor, View
from tpc.tracing import Trace, tracing
from tpc.tree import flatten


class Source(NamedTuple):
    """Where an input's memory is found at a call: argument number `ref` or what it is a view of, a storage, the `.grad` of a tensor
    source, or a fixed array. Where a gradient goes, it may also be a leaf that the call itself makes."""

    kind: str
    ref: Any


class Made(NamedTuple):
    """A tensor that the trace made: the output (or the source) that is its storage, the view of it, and its gradient edge."""

    output: int
    views: tuple[View, ...]
    value: Recorded
    edge: Edge | None
    leaf: bool = False
    storage: Source | None = None
    base: Source | Made | None = None
    refusal: str | None = None
    grad: Any = None
    """The `Made` (or the source) of its own `.grad`."""


@dataclass
class Outcome:
    """`results` holds, per leaf of the result tree, a `Made`, a `Source` of a tensor that is returned as it came, or a Python object."""

    trace: Trace
    inputs: list[Recorded] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    outputs: list[Recorded] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    structure: Any = None
    storage_source: Callable[[Storage], Source] = lambda storage: Source("storage", storage)
    tensor_source: Callable[[Tensor], Source] = lambda tensor: Source("outside", tensor)
    writes: list[tuple[int, int, int]] = field(default_factory=list)
    """(output, input, number of writes): memory from outside with a new content."""
    touched: list[tuple[int, int]] = field(default_factory=list)
    """(input, number of writes): memory from outside that was written and holds what it held."""
    grads: list[tuple[Source, Made | Source | None]] = field(default_factory=list)
    moved: list[tuple[Source, Made]] = field(default_factory=list)
    """Tensors from outside whose history the trace rewrote."""
    flags: list[tuple[Source, bool]] = field(default_factory=list)
    guards: list[tuple[int, Any, Any]] = field(default_factory=list)
    """(output, expected array, line)."""
    watched: list[tuple[Source, bool, tuple[Any, ...]]] = field(default_factory=list)
    """Tensors whose gradient edge was asked for, whether each was a leaf that requires grad, and its hooks."""
    met: list[tuple[Tensor, Storage, tuple[View, ...]]] = field(default_factory=list)
    """Tensors from outside, with the memory and the views that they had."""
    plain: list[Tensor] = field(default_factory=list)
    """Tensors from outside that had no history where it would have mattered."""
    repeated: list[tuple[int, int]] = field(default_factory=list)
    """(result, earlier result): the same tensor."""
    grads_read: list[tuple[Source, bool]] = field(default_factory=list)
    """Tensors whose `.grad` was read at the start, and whether there was one."""
    made: dict[Storage, int] = field(default_factory=dict)
    """Output number of the memory that the trace made for results."""
    inference: set[int] = field(default_factory=set)
    """Those of them that were made in inference mode."""
    sought: list[tuple[Edge, Source]] = field(default_factory=list)
    """Edges through which gradients leave the trace, and whose they are."""

    @property
    def tracked(self) -> list[Made]:
        """What a caller can back-propagate from."""
        found = [r for r in self.results if isinstance(r, Made) and r.edge is not None]
        found += [m for _, m in self.moved]
        found += [g for _, g in self.grads if isinstance(g, Made) and g.edge is not None]
        found += [m.base for m in found if isinstance(m.base, Made) and m.base.edge is not None]
        return list({id(m): m for m in found}.values())

    def lift_inputs(self, outputs: Sequence[Recorded] = ()) -> None:
        """Takes over placeholders that were made since the last time, and large arrays that the code brought in."""
        known = {id(v) for v in self.inputs}
        for storage, value in self.trace.placeholders.items():
            if id(value) not in known:
                self.inputs.append(value)
                self.sources.append(self.storage_source(storage))
        for value in collect(outputs, self.inputs, through_data=True):
            if is_fixed(value) and value.type.nbytes > MAX_LITERAL:
                self.inputs.append(value)
                self.sources.append(Source("storage", Storage.unknown(value)))


def tensor_of(source: Source, leaves: Sequence[Any]) -> Tensor | None:
    """The tensor that a source is at a call with these arguments."""
    kind, ref = source
    if kind == "arg":
        return leaves[ref]  # type: ignore[no-any-return]
    if kind == "base":
        return leaves[ref]._base  # type: ignore[no-any-return]
    if kind == "outside":
        return ref  # type: ignore[no-any-return]
    owner = tensor_of(ref, leaves) if kind == "grad" else None
    return owner._grad if owner is not None else None


def storage_of(source: Source, leaves: Sequence[Any]) -> Storage:
    """The memory that a source is at a call with these arguments."""
    if source.kind == "storage":
        return source.ref  # type: ignore[no-any-return]
    tensor = tensor_of(source, leaves)
    assert tensor is not None
    return tensor._storage


def run_traced(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], leaves: Sequence[Any], concrete: bool) -> Outcome:
    """Runs `function` under a new trace; `leaves` are the leaves of its arguments. Nothing outside has changed when this returns or
    raises."""
    flush()
    trace = Trace(concrete)
    try:
        with tracing(trace):
            for leaf in leaves:
                if isinstance(leaf, Tensor):
                    leaf._storage.read()
            result = function(*args, **kwargs)
            outcome = _Reader(trace, leaves).read(result)
    except BaseException:
        trace.undo()
        raise
    return outcome


class _Reader:
    """Turns the end of a trace into an `Outcome`."""

    def __init__(self, trace: Trace, leaves: Sequence[Any]) -> None:
        self.trace = trace
        self.out = Outcome(trace)
        self.argument = {id(t): i for i, t in reversed(list(enumerate(leaves))) if isinstance(t, Tensor)}
        self.argument_storage = {id(t._storage): i for i, t in reversed(list(enumerate(leaves))) if isinstance(t, Tensor)}
        self.bases = {id(t._base): i for i, t in enumerate(leaves) if isinstance(t, Tensor) and t._base is not None}
        self.storages = self.out.made
        self.made: dict[int, Made] = {}
        """By tensor."""
        self.leaves: list[tuple[Edge, Made]] = []

    def read(self, result: Any) -> Outcome:
        out, trace = self.out, self.trace
        trace.refuse_hooks()
        found, out.structure = flatten(result)
        first: dict[int, int] = {}
        for i, x in enumerate(found):
            earlier = first.setdefault(id(x), i)
            if isinstance(x, Tensor) and earlier != i:
                out.repeated.append((i, earlier))
                out.results.append(None)
            else:
                out.results.append(self._result(x))
        changes = self._changes()
        self._effects(changes)
        for storage, value in list(trace.values.items()):
            if value is not trace.placeholders.get(storage):
                self._write(storage, value)
            elif storage in trace.writes:
                out.touched.append((list(trace.placeholders).index(storage), trace.writes[storage]))
        for value, expected, where in trace.guards:
            out.guards.append((self._output(value), expected, where))
        out.storage_source, out.tensor_source = self._storage_source, self._tensor_source
        out.lift_inputs(out.outputs)
        out.sought = [(edge, self._tensor_source(t)) for edge, t in trace.input_edges()]
        out.sought += [(edge, Source("made", made)) for edge, made in self.leaves]
        out.met = [(t, t._storage, t._views) for t in trace.met.values() if self._tensor_source(t).kind == "outside"]
        self._watch()
        return out

    def _changes(self) -> list[tuple[Tensor, str, Any]]:
        """What the trace changed on tensors from outside; they are put back. A `.grad` that was None and was set to None unseen may be
        another one in a later call."""
        after = [(obj, name, getattr(obj, name), old) for obj, name, old in self.trace.journal.values()]
        self.edges = {id(obj): obj._edge() for obj, name, _, _ in after if name == "_node"}
        self.trace.undo()
        read = self.trace.grads_read
        emptied = {id(obj) for obj, name, new, _ in after if name == "_grad" and new is None and id(obj) not in read}
        return [(obj, name, new) for obj, name, new, old in after if new is not old or (name == "_grad" and id(obj) in emptied)]

    def _effects(self, changes: list[tuple[Tensor, str, Any]]) -> None:
        for tensor, name, new in changes:
            source = self._tensor_source(tensor)
            if name == "_grad":
                self.out.grads.append((source, None if new is None else self._result(new)))
            elif name == "_leaf":
                self.out.flags.append((source, new))
            elif name == "_node" and tensor._base is None and self.edges[id(tensor)] is not None:
                made = Made(-1, (), tensor._read(), self.edges[id(tensor)])
                self.out.moved.append((source, made))

    def _result(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if x._trace is not self.trace:
            return self._tensor_source(x)
        made = self.made.get(id(x))
        if made is None:
            edge = x._edge()
            leaf = x._node is None and x._leaf
            base = self._result(x._base) if x._base is not None else None
            source, output = None, -1
            if x._storage.trace is not self.trace:
                source = self._storage_source(x._storage)
            else:
                output = self.storages.get(x._storage, -1)
                if output < 0:
                    output = self.storages[x._storage] = self._output(x._storage.read())
                    if x._storage.inference:
                        self.out.inference.add(output)
            made = self.made[id(x)] = Made(
                output, x._views, x._read(), None if leaf else edge, leaf, source, base, x._refusal, self._result(x._grad)
            )
            if leaf and edge is not None:
                self.leaves.append((edge, made))
        return made

    def _output(self, value: Recorded) -> int:
        self.out.outputs.append(value)
        return len(self.out.outputs) - 1

    def _write(self, storage: Storage, value: Recorded) -> None:
        number = list(self.trace.placeholders).index(storage)
        self.out.writes.append((self._output(value), number, self.trace.writes.get(storage, 1)))

    def _tensor_source(self, tensor: Tensor) -> Source:
        if id(tensor) in self.argument:
            return Source("arg", self.argument[id(tensor)])
        if id(tensor) in self.bases:
            return Source("base", self.bases[id(tensor)])
        for owner, grad in self.trace.grads_read.values():
            if grad is tensor:
                return Source("grad", self._tensor_source(owner))
        return Source("outside", tensor)

    def _storage_source(self, storage: Storage) -> Source:
        if id(storage) in self.argument_storage:
            return Source("arg", self.argument_storage[id(storage)])
        for owner, grad in self.trace.grads_read.values():
            if grad is not None and grad._storage is storage:
                return Source("grad", self._tensor_source(owner))
        return Source("storage", storage)

    def _watch(self) -> None:
        for tensor in self.trace.leaves.values():
            if not self.trace.changed(tensor, "_leaf"):
                self.out.watched.append((self._tensor_source(tensor), True, hook_ids(tensor)))
        self.out.plain = [t for t in self.trace.plain.values() if self._tensor_source(t).kind == "outside"]
        for _, tensor in self.trace.boundaries.values():
            self.out.watched.append((self._tensor_source(tensor), False, ()))
        for tensor, grad in self.trace.grads_read.values():
            self.out.grads_read.append((self._tensor_source(tensor), grad is not None))
