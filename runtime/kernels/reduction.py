"""Reductions, statistics, softmax and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel


def _axes(op: Op) -> tuple[tuple[int, ...], bool]:
    dims: Any = op.attrs["dims"]
    return dims, bool(op.attrs["keepdim"])


def _placed(result: Any, out: np.ndarray | None) -> Any:
    return np.asarray(result) if out is None else copied(result, out)


def _reduction(name: str, reduce: Any) -> None:
    @kernel(name)
    def _(op: Op) -> Run:
        axes, keepdims = _axes(op)
        dtype = op.results[0].type.numpy_dtype
        single = dtype == np.float16 and name in ("sum", "prod")

        def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
            if single:
                return _placed(reduce.reduce(x, axis=axes, dtype=np.float32, keepdims=keepdims).astype(np.float16), out)
            return reduce.reduce(x, axis=axes, dtype=dtype, out=out, keepdims=keepdims)

        def plain(x: np.ndarray, out: np.ndarray | None = None) -> Any:
            return reduce.reduce(x, axis=axes, out=out, keepdims=keepdims)

        return run if name in ("sum", "prod") else plain


for _name, _reduce in {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "any": np.logical_or, "all": np.logical_and}.items():
    _reduction(_name, _reduce)


def _count(op: Op) -> int:
    axes, _ = _axes(op)
    shape = op.operands[0].type.shape
    count = 1
    for a in axes:
        count *= shape[a]
    return count


@kernel("mean")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    dtype = op.results[0].type.numpy_dtype
    count = np.float64(_count(op)) if dtype.kind == "f" else _count(op)
    wide = np.float32 if dtype == np.float16 else dtype

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        total = np.add.reduce(x, axis=axes, dtype=wide, keepdims=keepdims)
        return _placed(np.true_divide(total, wide(count) if isinstance(wide, type) else wide.type(count)).astype(dtype, copy=False), out)

    return run


@kernel("var", "std")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    correction: Any = op.attrs["correction"]
    dtype = op.results[0].type.numpy_dtype
    count = _count(op)
    divisor = max(count - correction, 0)
    root = op.name == "std"

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        if x.dtype == np.float16:
            x = x.astype(np.float32)
        centred = x - np.add.reduce(x, axis=axes, keepdims=True) / x.dtype.type(count)
        if centred.dtype.kind == "c":
            squares = centred.real * centred.real + centred.imag * centred.imag
        else:
            squares = np.multiply(centred, centred, centred) if centred.ndim else centred * centred
        result = np.add.reduce(squares, axis=axes, keepdims=keepdims) / squares.dtype.type(divisor)
        if root:
            result = np.sqrt(result)
        return _placed(np.asarray(result).astype(dtype, copy=False), out)

    return run


@kernel("argmax", "argmin")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    keepdim = bool(op.attrs["keepdim"])
    find = np.argmax if op.name == "argmax" else np.argmin
    shape = op.results[0].type.shape

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        if dim is None:
            return _placed(np.asarray(find(x), dtype=np.int64).reshape(shape), out)
        if x.ndim == 0:
            return _placed(np.zeros((), np.int64), out)
        return _placed(find(x, axis=dim, keepdims=keepdim), out)

    return run


def _single(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _safe_max(x: np.ndarray, axes: Any) -> np.ndarray:
    """The maximum to subtract before exp; 0 where it is infinite, so that no inf - inf arises."""
    top = np.maximum.reduce(x, axis=axes, keepdims=True, initial=-np.inf)
    return np.where(np.isinf(top), x.dtype.type(0), top)


@kernel("logsumexp")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    dtype = op.results[0].type.numpy_dtype

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        x = _single(x)
        top = _safe_max(x, axes)
        shifted = x - top
        np.exp(shifted, shifted if shifted.ndim else None)
        total = np.log(np.add.reduce(np.exp(x - top) if not shifted.ndim else shifted, axis=axes, keepdims=keepdims))
        result = total + (top if keepdims else top.reshape(np.shape(total)))
        return _placed(np.asarray(result).astype(dtype, copy=False), out)

    return run


@kernel("softmax")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    half = op.results[0].type.dtype == "f16"

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        if x.size == 0 or x.ndim == 0:
            return _placed(np.ones_like(x) if x.ndim == 0 else np.empty(x.shape, x.dtype), out)
        work = None if half else out
        work = np.subtract(_single(x), np.maximum.reduce(_single(x), axis=dim, keepdims=True), work)
        np.exp(work, work)
        np.true_divide(work, np.add.reduce(work, axis=dim, keepdims=True), work)
        return _placed(work.astype(np.float16), out) if half else work

    return run


@kernel("log_softmax")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    half = op.results[0].type.dtype == "f16"

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        if x.size == 0 or x.ndim == 0:
            return _placed(np.zeros_like(x) if x.ndim == 0 else np.empty(x.shape, x.dtype), out)
        work = None if half else out
        work = np.subtract(_single(x), np.maximum.reduce(_single(x), axis=dim, keepdims=True), work)
        np.subtract(work, np.log(np.add.reduce(np.exp(work), axis=dim, keepdims=True)), work)
        return _placed(work.astype(np.float16), out) if half else work

    return run


@kernel("sort")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    descending = bool(op.attrs["descending"])

    def run(x: np.ndarray, out: Any = None) -> Any:
        if x.ndim == 0:
            values, order = x.copy(), np.zeros((), np.int64)
        else:
            # Descending and stable: sort the reversed array and reverse, so that equal elements keep their order.
            source = np.flip(x, dim) if descending else x
            order = np.argsort(source, axis=dim, kind="stable")
            if descending:
                order = np.flip(x.shape[dim] - 1 - order, dim)
            values = np.take_along_axis(x, order, dim)
        if out is None:
            return np.array(values, order="C"), np.array(order, order="C")
        np.copyto(out[0], values)
        np.copyto(out[1], order)
        return out

    return run
