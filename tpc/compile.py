"""`tpc.compile`: a function recorded once per signature and run as a program afterwards."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpc.argument_kinds import kind, refusal
from tpc.autograd.node import Edge, hook_ids
from tpc.body import Body
from tpc.deferred import flush
from tpc.dtype import default_dtype
from tpc.names import input_names, reachable, reached
from tpc.nn.signature import signature
from tpc.nn.tree import Tree
from tpc.outcome import Outcome, run_traced, storage_of, tensor_of
from tpc.pipeline import runs_native
from tpc.recording import leaf
from tpc.results import Results
from tpc.state import STATE, WRITING
from tpc.storage import REARRANGED, Storage
from tpc.straight import MISS, alias_pattern, straight
from tpc.strides import is_contiguous
from tpc.surroundings import Surroundings
from tpc.tensor import Tensor, from_array
from tpc.tracing import Unready, Untraceable, forget_examples
from tpc.tree import LEAF, flatten, unflatten

MAX_VARIANTS = 8
"""Recordings kept per signature; a function whose guards fail more often runs in deferred mode."""


class GuardFailed(Exception):
    """A value that Python looked at is another one in this call."""


def compile(
    function: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    memory_budget: float = 1.0,
    backend: str | None = None,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Any = None,
) -> Any:
    """Compiles a function or module; also a decorator, with or without arguments.

    The first call with a signature (containers, dtypes, shapes, requires_grad, Python values) records what the function does; later
    calls run the program. Tensors from outside are read anew at each call, and what the function writes to them, `.grad` included, is
    written at each call. With `fullgraph=True`, code that cannot be recorded is an error instead of running deferred. `memory_budget`
    from 1.0 (fastest) to 0.0 (least memory) says how much may be kept for backward; `ValueError` outside of that. `backend` is
    "numpy" or "native" (`RuntimeError` without llvmlite); by itself `config.backend`. `dynamic`, `mode`, `options` are accepted and have
    no effect.
    """
    if not isinstance(memory_budget, (int, float)) or not 0.0 <= memory_budget <= 1.0:
        raise ValueError(f"memory_budget must be between 0.0 and 1.0, not {memory_budget!r}")
    if backend is not None:
        runs_native(backend)
    if function is None:
        return functools.partial(compile, fullgraph=fullgraph, memory_budget=memory_budget, backend=backend)
    if not callable(function):
        raise TypeError(f"tpc.compile takes a function or a module, not {type(function).__name__}")
    return Compiled(function, fullgraph, float(memory_budget), backend)


class Compiled:
    """A compiled function: call it as the original."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool, memory_budget: float, backend: str | None = None) -> None:
        self.function, self.fullgraph, self.memory_budget, self.backend = function, fullgraph, memory_budget, backend
        self.variants: dict[Any, list[Variant]] = {}
        self.deferred: set[Any] = set()
        self.unready: set[Any] = set()
        """Keys of calls that could not be recorded for the state they made."""
        self.modules: dict[int, Any] = {}
        """Modules that recordings depend on."""
        self.modes: Any = ()
        self.around = Surroundings(function)
        self.arrangement = REARRANGED.count
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is not None or STATE.transforming or STATE.anomaly:
            return self.function(*args, **kwargs)
        leaves: Sequence[Any]
        if not kwargs and all([a.__class__ is Tensor for a in args]):
            leaves, structure = args, len(args)
        else:
            leaves, structure = flatten((args, kwargs))
        if self.arrangement != REARRANGED.count:
            self._drop_rearranged()
        if self.around.places and self.around.changed():
            self._set_modes()
        key = (self.modes, structure, STATE.grad_enabled, STATE.inference, STATE.saved_hooks, *[kind(x) for x in leaves])
        if STATE.pending:
            flush()
        for variant in self.variants.get(key, ()):
            if variant.writes:
                with WRITING:
                    result = variant.attempt(leaves)
            else:
                result = variant.attempt(leaves)
            if result is not MISS:
                return result
        return self._record(key, leaves, structure, args, kwargs)

    def _drop_rearranged(self) -> None:
        """Some tensor somewhere has other memory now, or sees it otherwise: forgets the recordings that knew it as it was."""
        self.arrangement = REARRANGED.count
        self._set_modes()
        for key, known in self.variants.items():
            self.variants[key] = [v for v in known if all(t._storage is s and t._views is w for t, s, w in v.outcome.met)]

    def _meet_modules(self, called: dict[int, Any], leaves: Sequence[Any]) -> None:
        """Recordings depend on the modules that were called, captured or given."""
        found = [x for _, x in reached(self.function)] if not self.modules else []
        met = {**called, **{id(x): x for x in (*found, *leaves) if isinstance(x, Tree)}}
        if not met.keys() <= self.modules.keys():
            self.modules |= met

    def _set_modes(self) -> None:
        self.modes = signature(self.modules.values()), self.around.settings, default_dtype()

    def _record(self, key: Any, leaves: Sequence[Any], structure: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if key in self.deferred or len(self.around.states) > MAX_VARIANTS:
            return self.function(*args, **kwargs)
        known = self.variants.setdefault(key, [])
        try:
            if len(known) >= MAX_VARIANTS:
                lines = {str(where) for v in known for _, _, where in v.outcome.guards}
                raise Untraceable(f"values that the code looks at keep changing, at {', '.join(sorted(lines)) or 'several places'}")
            if any(isinstance(x, np.ndarray) for x in leaves):
                raise Untraceable("an argument is a NumPy array, whose content may change unseen; pass tpc.from_numpy(array)")
            with WRITING:
                self.around.look()
                try:
                    variant = Variant(self, leaves, structure, args, kwargs)
                finally:
                    self.around.settle()
                self._meet_modules(variant.outcome.trace.modules, leaves)
                self._set_modes()
                if len(self.around.states) > MAX_VARIANTS:
                    raise Untraceable(f"Python values that the code reads keep changing: {', '.join(self.around.restless())}")
                known = self.variants.setdefault((self.modes, *key[1:]), [])
                known.insert(0, variant)
                return variant.call(leaves)
        except Untraceable as reason:
            if not isinstance(reason, Unready) or key in self.unready:
                if self.fullgraph:
                    raise
                self.deferred.add(key)
                name = getattr(self.function, "__name__", type(self.function).__name__)
                warnings.warn(f"{name} runs in deferred mode, not compiled: {reason}", UserWarning, stacklevel=3)
            self.unready.add(key)
        except GuardFailed as missed:
            if missed.__cause__ is not None:
                raise missed.__cause__ from None
            known.remove(variant)
        return self.function(*args, **kwargs)


class Variant:
    """One recording: how to find its inputs, the body, and what to do with the outputs."""

    def __init__(self, owner: Compiled, leaves: Sequence[Any], structure: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        stand_ins = [_stand_in(x) for x in leaves]
        self.viewed = [i for i, (x, s) in enumerate(zip(leaves, stand_ins, strict=True)) if x is not s]
        if self.viewed:
            args, kwargs = (tuple(stand_ins), {}) if structure.__class__ is int else unflatten(structure, stand_ins)
        outcome = self.outcome = run_traced(owner.function, args, kwargs, stand_ins, concrete=True)
        self._refuse_aliased_views(leaves)
        names = input_names(owner.function, outcome, args, kwargs)
        self.sought = [source for _, source in outcome.sought]
        flagged = [tensor_of(source, leaves) for source, flag in outcome.flags if flag]
        self.becoming = [i for i, source in enumerate(self.sought) if any(tensor_of(source, leaves) is t for t in flagged)]
        self.body = Body(
            getattr(owner.function, "__name__", type(owner.function).__name__),
            outcome,
            outcome.inputs,
            outcome.outputs,
            outcome.tracked,
            [e for e, _ in outcome.sought],
            names,
            outcome.writes,
            owner.memory_budget,
            owner.backend,
        )
        self.tracked = {id(m): i for i, m in enumerate(self.body.tracked)}
        self.spent = len(self.tracked) < len(outcome.tracked)
        self.own_leaves = [(i, source.ref) for i, source in enumerate(self.sought) if source.kind == "made"]
        forget_examples(outcome.trace, outcome.outputs)
        self.aliases = alias_pattern(leaves)
        self.outside = _outside(outcome)
        self.bound = _bound(owner.function, leaves, self.outside)
        self.free = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and i not in [n for n, _, _ in self.bound]]
        """Tensor arguments that must not be on memory from outside."""
        self.single = outcome.structure == LEAF
        self.writes = bool(outcome.writes or outcome.touched or outcome.grads)
        """Whether a call changes memory that other threads may see."""
        straight_way = straight(self, leaves)
        if straight_way is not None:
            self.attempt = straight_way  # type: ignore[assignment, method-assign]

    def _refuse_aliased_views(self, leaves: Sequence[Any]) -> None:
        """An argument that is a view is handed over by value. That shows where its memory is written under another name, or its base's
        history moves."""
        if any(source.kind == "arg" and source.ref in self.viewed for source, _ in self.outcome.moved):
            raise Untraceable("an argument that is a view is written where its base has a history; write the base instead")
        if not self.viewed or not self.outcome.writes:
            return
        seen = [id(t._storage) for t in leaves if isinstance(t, Tensor)]
        lifted = {id(s) for s in self.outcome.trace.placeholders}
        for i in self.viewed:
            storage = id(leaves[i]._storage)
            if seen.count(storage) > 1 or storage in lifted:
                raise Untraceable(f"argument {i} is a view of memory that the function also reaches otherwise and writes")

    # --- each call ---

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether the tensors stand as they stood when this was recorded: aliasing, leaves, `.grad` there or not."""
        outcome = self.outcome
        if alias_pattern(leaves) != self.aliases:
            return False
        for i, tensor, storage in self.bound:
            if leaves[i]._storage is not storage or (tensor is not None and leaves[i] is not tensor):
                return False
        if self.outside and any(id(leaves[i]._storage) in self.outside for i in self.free):
            return False
        for plain in outcome.plain:
            if plain._leaf or plain._node is not None or (plain._base is not None and plain._tracked()):
                return False
        for source, is_leaf, hooks in outcome.watched:
            tensor = tensor_of(source, leaves)
            if tensor is None or (tensor._node is None) != is_leaf or not tensor._tracked() or (is_leaf and hook_ids(tensor) != hooks):
                return False
        for source, there in outcome.grads_read:
            tensor = tensor_of(source, leaves)
            if tensor is None or (tensor._grad is not None) != there:
                return False
        return True

    def attempt(self, leaves: Sequence[Any]) -> Any:
        """The result of a call on these arguments, or MISS where it is not this recording that fits."""
        if not self.fits(leaves):
            return MISS
        try:
            return self.call(leaves)
        except GuardFailed:
            return MISS

    def call(self, leaves: Sequence[Any]) -> Any:
        outcome = self.outcome
        storages = [storage_of(source, leaves) for source in outcome.sources]
        arrays = [s.value.data if s.shared is None and s.value.data is not None else s.array() for s in storages]
        for i in self.viewed:
            self._read_views(arrays, leaves, i)
        donated = self.body.donated()
        for i in donated:
            _own(storages[i], arrays, i)
        edges: list[Edge | None] = (
            [t._edge() if (t := tensor_of(s, leaves)) is not None else None for s in self.sought] if self.tracked or self.spent else []
        )
        for i in self.becoming:
            leaf_to_be = tensor_of(self.sought[i], leaves)
            if leaf_to_be is not None and edges:
                edges[i] = leaf_to_be._accumulator(), 0
        versions = []
        if self.tracked:
            versions = [(s, s.version) for s in storages]
            # What backward reads must not change when NumPy code writes memory that it shares.
            arrays = [a.copy() if s.shared is not None else a for a, s in zip(arrays, storages, strict=True)]
        given = list(arrays)
        try:
            outs, node = self.body.call(arrays, edges)
        except Exception as error:
            if outcome.guards:
                # The values that were looked at may be what no longer holds; a fault of the code itself comes back when it is recorded
                # again.
                raise GuardFailed from error
            raise
        for output, expected, _ in outcome.guards:
            if not _same(outs[output], expected):
                raise GuardFailed
        for number, count in outcome.touched:
            storages[number].version += count
        for output, number, count in outcome.writes:
            self._write_back(storages[number], outs[output], given[number], count, leaves, number)
        if node is not None:
            node.versions, node.contents = versions, [s.value for s in storages]
            if self.viewed:
                node.views = {n: leaves[s.ref] for n, s in enumerate(outcome.sources) if s.kind == "arg" and s.ref in self.viewed}
        return Results(self, outs, node, edges, leaves).give()

    def _read_views(self, arrays: list[np.ndarray], leaves: Sequence[Any], i: int) -> None:
        for number, source in enumerate(self.outcome.sources):
            if source == ("arg", i):
                arrays[number] = np.ascontiguousarray(leaves[i]._array())

    def _write_back(self, storage: Storage, new: np.ndarray, old: np.ndarray, count: int, leaves: Sequence[Any], number: int) -> None:
        source = self.outcome.sources[number]
        if source.kind == "arg" and source.ref in self.viewed:
            target = leaves[source.ref]
            outer, STATE.grad_enabled = STATE.grad_enabled, False
            target._write(from_array(new))
            target._storage.version += count - 1
            STATE.grad_enabled = outer
            return
        if storage.shared is not None:
            np.copyto(storage.shared, new)
        elif new is not old:
            storage.value = leaf(new)
        storage.version += count


def _outside(outcome: Outcome) -> frozenset[int]:
    """Memory that the recording knows as no argument's: a call where it comes as one needs a recording of its own."""
    storages = [s.ref for s in outcome.sources if s.kind == "storage"] + [storage for _, storage, _ in outcome.met]
    storages += [source.ref._storage for source, _, _ in outcome.watched if source.kind == "outside"]
    return frozenset(id(s) for s in storages)


def _bound(function: Any, leaves: Sequence[Any], outside: frozenset[int]) -> list[tuple[int, Tensor | None, Storage]]:
    """Arguments that the function also reaches otherwise, as (number, tensor, memory). The recording cannot tell the two ways apart, and
    is good for that very tensor, or for a tensor on that very memory."""
    captured = [t for _, t in reachable(function)]
    tensors, memory = {id(t) for t in captured}, {id(t._storage) for t in captured} | outside
    arguments = [(i, t) for i, t in enumerate(leaves) if isinstance(t, Tensor) and id(t._storage) in memory]
    return [(i, t if id(t) in tensors else None, t._storage) for i, t in arguments]


def _stand_in(x: Any) -> Any:
    """An argument that is a view of memory in order is recorded as a tensor of its own: where it lies in its base is no part of the
    program."""
    if not isinstance(x, Tensor) or not x._views or not is_contiguous(x):
        return x
    made = from_array(np.ascontiguousarray(x._array()))
    edge = x._edge()
    if x._node is not None and edge is not None:
        made._node, made._slot = edge
    made._leaf = x._leaf
    made._grad = x._grad
    made._refusal = refusal(x)
    return made


def _own(storage: Storage, arrays: list[np.ndarray], i: int) -> None:
    """Makes sure that nobody else sees the memory that the program will overwrite."""
    array = arrays[i]
    # References: the storage's value, the list, this frame, getrefcount's argument. Its value: the storage, getrefcount's argument.
    if storage.shared is not None or sys.getrefcount(array) > 4 or sys.getrefcount(storage.value) > 2 or not array.flags.writeable:
        arrays[i] = array.copy()
        if storage.shared is None:
            storage.value = leaf(arrays[i])


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def signature_of(function: Any) -> inspect.Signature | None:
    """The signature of a function, where Python knows one."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


__all__ = ["Compiled", "Outcome", "compile"]
