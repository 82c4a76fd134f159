"""Random numbers from Philox 4x64 (Salmon et al. 2011): a function of key and counter alone, the same wherever it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel


def stream(state: np.ndarray) -> np.random.Generator:
    """The numbers that belong to a state."""
    return np.random.Generator(np.random.Philox(key=int(state[0]), counter=int(state[1])))


def _next(state: np.ndarray, numbers: int) -> np.ndarray:
    """The state behind a draw of that many numbers, each of which may have used up to four blocks."""
    after = state.copy()
    after[1] = np.uint64((int(state[1]) + 4 * max(numbers, 1)) % 2**64)
    return after


def _drawn(op: Op, draw: Any) -> Run:
    numbers = op.results[0].type.numel
    dtype = op.results[0].type.numpy_dtype

    def run(state: np.ndarray, out: Any = None) -> Any:
        result = np.asarray(draw(stream(state))).astype(dtype, copy=False)
        after = _next(state, numbers)
        if out is None:
            return result, after
        copied(result, out[0])
        copied(after, out[1])
        return out

    return run


@kernel("rand")
def _(op: Op) -> Run:
    type = op.results[0].type
    work = np.float64 if type.dtype == "f64" else np.float32
    if type.dtype == "f16":
        # 11 bits, so that rounding cannot give 1.
        return _drawn(op, lambda g: g.integers(0, 2048, type.shape) / 2048)
    return _drawn(op, lambda g: g.random(type.shape, work))


@kernel("randn")
def _(op: Op) -> Run:
    type = op.results[0].type
    if type.dtype[0] == "c":
        # Unit variance in all: half in each part.
        return _drawn(op, lambda g: (g.standard_normal(type.shape) + 1j * g.standard_normal(type.shape)) * np.sqrt(0.5))
    work = np.float64 if type.dtype == "f64" else np.float32
    return _drawn(op, lambda g: g.standard_normal(type.shape, work))


@kernel("randint")
def _(op: Op) -> Run:
    attrs: Any = op.attrs
    return _drawn(op, lambda g: g.integers(attrs["low"], attrs["high"], op.results[0].type.shape))


@kernel("randperm")
def _(op: Op) -> Run:
    return _drawn(op, lambda g: g.permutation(op.results[0].type.shape[0]))
