"""Reductions, statistics, softmax and sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel

add: Any = np.add.reduce
top_of: Any = np.maximum.reduce

CASCADE = 256
"""From this many rows on, sums over rows go in two levels, or single precision would lose digits to the growing total."""


def _axes(op: Op) -> tuple[tuple[int, ...], bool]:
    dims: Any = op.attrs["dims"]
    return dims, bool(op.attrs["keepdim"])


def _placed(result: Any, out: np.ndarray | None) -> Any:
    return np.asarray(result) if out is None else copied(result, out)


def summing(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool, dtype: np.dtype) -> Run:
    """A kernel for the sum over some axes. Along the last axis NumPy adds pairwise, but along others one row after the other."""

    def plain(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return add(x, axes, dtype, out, keepdims)

    if len(axes) != 1 or axes[0] == len(shape) - 1 or shape[axes[0]] < CASCADE or dtype.kind not in "fc":
        return plain
    axis, rows = axes[0], shape[axes[0]]
    group = math.isqrt(rows)
    even = rows - rows % group
    split = (*shape[:axis], even // group, group, *shape[axis + 1 :])
    whole, rest = ((slice(None),) * axis + (slice(*ends),) for ends in ((even,), (even, rows)))

    def cascade(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        groups = add(x[whole].reshape(split), axis=axis + 1, dtype=dtype)
        total = add(groups, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
        return total if even == rows else np.add(total, add(x[rest], axis=axis, dtype=dtype, keepdims=keepdims), total)

    return cascade


@kernel("sum")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    dtype, shape = op.results[0].type.numpy_dtype, op.operands[0].type.shape
    if dtype != np.float16:
        return summing(shape, axes, keepdims, dtype)
    total = summing(shape, axes, keepdims, np.dtype(np.float32))
    return lambda x, out=None: _placed(total(x).astype(dtype), out)


@kernel("prod")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    dtype = op.results[0].type.numpy_dtype
    multiply: Any = np.multiply.reduce
    if dtype != np.float16:
        return lambda x, out=None: multiply(x, axis=axes, dtype=dtype, out=out, keepdims=keepdims)
    return lambda x, out=None: _placed(multiply(x, axis=axes, dtype=np.float32, keepdims=keepdims).astype(dtype), out)


def _plain(name: str, reduce: Any) -> None:
    @kernel(name)
    def _(op: Op) -> Run:
        axes, keepdims = _axes(op)
        return lambda x, out=None: reduce(x, axis=axes, out=out, keepdims=keepdims)


for _name, _ufunc in {"amax": np.maximum, "amin": np.minimum, "any": np.logical_or, "all": np.logical_and}.items():
    _plain(_name, _ufunc.reduce)


def _count(op: Op) -> int:
    """How many elements are reduced to one."""
    axes, _ = _axes(op)
    return math.prod(op.operands[0].type.shape[a] for a in axes)


def _work(dtype: np.dtype) -> np.dtype:
    """What half precision is computed in."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


@kernel("mean")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    dtype = op.results[0].type.numpy_dtype
    work = _work(dtype)
    total, count = summing(op.operands[0].type.shape, axes, keepdims, work), work.type(_count(op))
    if dtype == np.float16:
        return lambda x, out=None: _placed((total(x) / count).astype(dtype), out)

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return np.true_divide(total(x, out), count, out)

    return run


@kernel("var", "std")
def _(op: Op) -> Run:
    axes, keepdims = _axes(op)
    correction: Any = op.attrs["correction"]
    type, dtype = op.operands[0].type, op.results[0].type.numpy_dtype
    work, real = _work(type.numpy_dtype), _work(dtype)
    count = _count(op)
    divisor = real.type(max(count - correction, 0))
    total, squares = summing(type.shape, axes, True, work), summing(type.shape, axes, keepdims, real)
    root = op.name == "std"

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        centred = np.asarray(np.subtract(x, total(x) / work.type(count), dtype=work))
        if work.kind == "c":
            square = centred.real * centred.real + centred.imag * centred.imag
        else:
            square = np.multiply(centred, centred, centred)
        result = squares(square) / divisor
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


@kernel("logsumexp")
def _(op: Op) -> Run:
    axes, _ = _axes(op)
    shape, dtype = op.operands[0].type.shape, op.results[0].type.numpy_dtype
    work = _work(dtype)
    total = summing(shape, axes, True, work)
    result_shape = op.results[0].type.shape

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        # An infinite maximum is not subtracted: inf - inf would be NaN.
        top = top_of(x, axis=axes, keepdims=True, initial=-np.inf).astype(work)
        shift = np.where(np.isinf(top), work.type(0), top)
        terms = np.asarray(np.subtract(x, shift, dtype=work))
        result = np.asarray(np.log(total(np.exp(terms, terms))) + shift).reshape(result_shape)
        return _placed(result.astype(dtype, copy=False), out)

    return run


def _normaliser(name: str, finish: Any) -> None:
    """softmax and log_softmax: `finish(x - max(x), out)` along an axis."""

    @kernel(name)
    def _(op: Op) -> Run:
        type = op.results[0].type
        dtype, work = type.numpy_dtype, _work(type.numpy_dtype)
        axis: Any = op.attrs["dim"] - type.rank if type.rank else None  # type: ignore[operator]
        if type.numel == 0:
            return lambda x, out=None: np.empty(x.shape, x.dtype) if out is None else out

        def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
            shifted = np.empty(x.shape, work) if out is None or dtype != work else out
            np.subtract(x, top_of(x, axis=axis, keepdims=True), shifted, dtype=work)
            finish(shifted, axis)
            return shifted if dtype == work else _placed(shifted.astype(dtype), out)

        return run


def _softmax(shifted: np.ndarray, axis: int) -> None:
    np.exp(shifted, shifted)
    np.true_divide(shifted, add(shifted, axis=axis, keepdims=True), shifted)


def _log_softmax(shifted: np.ndarray, axis: int) -> None:
    np.subtract(shifted, np.log(add(np.exp(shifted), axis=axis, keepdims=True)), shifted)


_normaliser("softmax", _softmax)
_normaliser("log_softmax", _log_softmax)


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
