"""Control flow: bodies run as programs of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tpc.ir.program import Op, Program
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel

Runner: TypeAlias = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
"""Runs one body: arrays of its outputs, which may be used again by later runs once they are let go."""


@kernel("cond", "while_loop", "scan")
def _(op: Op) -> Run:
    from tpc.runtime.executable import Executable

    run = bound(op, lambda body: Executable(body, threads=1).run)
    count, single = len(op.operands), len(op.results) == 1

    def call(*arrays: Any) -> Any:
        results = run(arrays[:count])
        out = arrays[count] if len(arrays) > count else None
        if out is None:
            return np.array(results[0]) if single else tuple(np.array(r) for r in results)
        for target, result in zip((out,) if single else out, results, strict=True):
            copied(result, target)
        return out

    return call


def bound(op: Op, runner: Callable[[Program], Runner]) -> Runner:
    """What the op does, with bodies run as `runner` says."""
    return _MEANING[op.name](op, [runner(body) for body in op.bodies])


def _cond(op: Op, bodies: Sequence[Runner]) -> Runner:
    true, false = bodies
    return lambda arrays: (true if arrays[0] else false)(arrays[1:])


def _while(op: Op, bodies: Sequence[Runner]) -> Runner:
    condition, body = bodies
    carried: Any = op.attrs["carried"]

    def run(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        state, rest = list(arrays[:carried]), arrays[carried:]
        while condition([*state, *rest])[0]:
            state = list(body([*state, *rest]))
        return state

    return run


def _scan(op: Op, bodies: Sequence[Runner]) -> Runner:
    (body,) = bodies
    attrs: Any = op.attrs
    carried, first, length = attrs["carried"], attrs["carried"] + attrs["scanned"], attrs["length"]
    steps = range(length)[::-1] if attrs["reverse"] else range(length)
    types = [r.type for r in op.results[carried:]]

    def run(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        state, scanned, rest = list(arrays[:carried]), arrays[carried:first], arrays[first:]
        stacked = [np.empty(t.shape, t.numpy_dtype) for t in types]
        for i in steps:
            results = body([*state, *[np.asarray(x[i]) for x in scanned], *rest])
            state = list(results[:carried])
            for whole, part in zip(stacked, results[carried:], strict=True):
                whole[i] = part
        return [*state, *stacked]

    return run


_MEANING: dict[str, Callable[[Op, Sequence[Runner]], Runner]] = {"cond": _cond, "while_loop": _while, "scan": _scan}
