"""Deferred mode: computing what was recorded, when somebody looks.

All live pending values of the thread are computed together, so that nothing is ever computed twice. The structure of
the graph is looked up in a cache: the first time a structure is seen it is interpreted, later it has an executable.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import RLock
from typing import Any

import numpy as np

from tpc.ir.ops.elementwise import copy
from tpc.ir.ops.shape import broadcast_to
from tpc.ir.program import Program
from tpc.recording import Recorded, capture, collect
from tpc.state import STATE

CACHE_ENTRIES = 512

_lock = RLock()
"""Held while graphs are computed: two threads may hold pieces of one graph."""


class _Entry:
    __slots__ = ("executable", "program", "runs")

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runs = 0
        self.executable: Any = None

    def run(self, arrays: list[np.ndarray]) -> Sequence[np.ndarray]:
        self.runs += 1
        if self.executable is None:
            if self.runs < 3:
                from tpc.runtime.interpreter import interpret

                return interpret(self.program, arrays)
            from tpc.pipeline import compile_program, optimized

            # Machine code takes too long to make for what may run a handful of times.
            self.executable = compile_program(optimized(self.program), backend="numpy")
        return self.executable.run(arrays)  # type: ignore[no-any-return]


_cache: OrderedDict[tuple[Any, ...], _Entry] = OrderedDict()


def compute(value: Recorded) -> np.ndarray:
    """The array of a recorded value; everything else that waits in this thread is computed with it."""
    trace = STATE.trace
    if trace is not None:
        # Also where the array is at hand, as an argument's is: a later call may have another.
        return trace.evaluate(value)
    if value.data is None and not _fill(value):
        flush((value,))
    assert value.data is not None
    return value.data


def _fill(value: Recorded) -> bool:
    """Computes a value that is one number throughout, such as the gradient that a pass starts with, which needs no program."""
    if value.defn not in (copy, broadcast_to) or not value.operands[0].is_constant:
        return False
    value.settle(np.full(value.type.shape, value.operands[0].attrs["value"], value.type.numpy_dtype))
    return True


def flush(asked: tuple[Recorded, ...] = ()) -> None:
    """Computes every pending value that a live storage holds, and those asked for.

    Where the joint run raises, the asked values are computed by themselves, so that a fault elsewhere is reported by whoever looks at it.
    """
    if STATE.trace is not None:
        return
    with _lock:
        pending, STATE.pending = STATE.pending, []
        wanted = {id(v): v for v in asked if v.data is None}
        for reference in pending:
            storage = reference()
            if storage is not None and storage.value.data is None:
                wanted[id(storage.value)] = storage.value
        if not wanted:
            return
        try:
            _run(list(wanted.values()))
        except Exception:
            waiting = [v for v in asked if v.data is None]
            if len(waiting) == len(wanted):
                raise
            if waiting:
                STATE.pending = [r for r in pending if (s := r()) is not None and s.value.data is None]
                _run(waiting)
            else:
                _run_one_by_one(list(wanted.values()))


def _run_one_by_one(values: list[Recorded]) -> None:
    for value in values:
        try:
            if value.data is None:
                _run([value])
        except Exception:
            pass


def _run(outputs: list[Recorded]) -> None:
    graph = collect(outputs)
    leaves = [v for v in graph if v.data is not None]
    key = _structure(graph, outputs)
    entry = _cache.get(key)
    if entry is None:
        entry = _cache[key] = _Entry(capture("deferred", leaves, outputs, through_data=False))
        if len(_cache) > CACHE_ENTRIES:
            _cache.popitem(last=False)
    else:
        _cache.move_to_end(key)
    arrays = entry.run([v.data for v in leaves])  # type: ignore[misc]
    for value, array in zip(outputs, arrays, strict=True):
        value.settle(array)


def _structure(graph: list[Recorded], outputs: list[Recorded]) -> tuple[Any, ...]:
    number = {}
    parts: list[Any] = []
    for i, value in enumerate(graph):
        number[id(value)] = i
        if value.data is not None:
            parts.append(value.type)
        elif value.is_constant:
            parts.append((value.attrs["dtype"], repr(value.attrs["value"])))
        else:
            # Bodies that are alike are one object, which the entry keeps alive; their repr says too little.
            bodies = value.attrs.get("bodies")
            told = repr(value.attrs) if value.attrs else None
            parts.append((value.defn, told, bodies, value.index, *[number[id(v)] for v in value.operands]))
    parts.append(tuple(number[id(v)] for v in outputs))
    return tuple(parts)
