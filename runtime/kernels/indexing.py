"""Reading and writing by index. Every index is checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel
from tpc.runtime.kernels.shape import based


def _checked(index: np.ndarray, size: int, dim: int) -> np.ndarray:
    """The index as int64; `IndexError` where it leaves its axis."""
    index = index.astype(np.int64, copy=False)
    if index.size:
        low, high = index.min(), index.max()
        if low < -size or high >= size:
            bad = int(low if low < -size else high)
            raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
    return index


def _key(indices: Sequence[np.ndarray], axes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * len(shape)
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = _checked(index, shape[axis], axis)
    return tuple(key)


@kernel("index")
def _(op: Op) -> Run:
    axes: Any = op.attrs["axes"]
    count = len(op.operands)
    shape = op.operands[0].type.shape
    single = axes[0] if len(axes) == 1 else None

    def run(x: np.ndarray, *rest: Any) -> Any:
        out = rest[count - 1] if len(rest) == count else None
        if single is not None:
            return np.take(x, _checked(rest[0], shape[single], single), axis=single, out=out, mode="wrap" if out is not None else "raise")
        return copied(x[_key(rest[: count - 1], axes, shape)], out)

    return run


@kernel("index_put")
def _(op: Op) -> Run:
    axes: Any = op.attrs["axes"]
    count = len(op.operands)
    shape = op.operands[0].type.shape
    accumulate = bool(op.attrs["accumulate"])

    def run(x: np.ndarray, values: np.ndarray, *rest: Any) -> np.ndarray:
        out = rest[count - 2] if len(rest) == count - 1 else None
        key = _key(rest[: count - 2], axes, shape)
        values = values.copy() if out is not None and np.may_share_memory(out, values) else values
        result = based(x, out)
        if accumulate:
            np.add.at(result, key, values)
        else:
            result[key] = values
        return result

    return run


def _along(op: Op, index: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Index arrays for every axis: `index` along `dim`, positions elsewhere."""
    dim: Any = op.attrs["dim"]
    if not shape:
        return ()
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[dim] = _wrapped(_checked(index, shape[dim], dim), shape[dim], dim)
    return tuple(grid)


def _wrapped(index: np.ndarray, size: int, dim: int) -> np.ndarray:
    if index.size and index.min() < 0:
        raise IndexError(f"index {int(index.min())} is out of bounds for dimension {dim} with size {size}")
    return index


@kernel("gather")
def _(op: Op) -> Run:
    shape = op.operands[0].type.shape

    def run(x: np.ndarray, index: np.ndarray, out: np.ndarray | None = None) -> Any:
        return copied(x[(*_along(op, index, shape), ...)] if x.ndim else x, out)

    return run


def _cut(src: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The part of the source that the index covers."""
    return src[tuple(slice(n) for n in index.shape)]


@kernel("scatter")
def _(op: Op) -> Run:
    shape = op.operands[0].type.shape

    def run(x: np.ndarray, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        key = _along(op, index, shape)
        part = _cut(src, index)
        part = part.copy() if out is not None and np.may_share_memory(out, part) else part
        result = based(x, out)
        result[(*key, ...)] = part
        return result

    return run


_REDUCE = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add}


@kernel("scatter_reduce")
def _(op: Op) -> Run:
    reduce: Any = op.attrs["reduce"]
    include = bool(op.attrs["include_self"])
    shape = op.operands[0].type.shape
    combine = _REDUCE[reduce]

    def run(x: np.ndarray, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        key = (*_along(op, index, shape), ...)
        part = _cut(src, index)
        part = part.copy() if out is not None and np.may_share_memory(out, part) else part
        result = based(x, out)
        if not include:
            result[key] = _neutral(reduce, result.dtype)
        combine.at(result, key, part)
        if reduce == "mean":
            count = np.full(result.shape, int(include), np.int64)
            np.add.at(count, key, 1)
            np.maximum(count, 1, count)
            divided = result // count if result.dtype.kind in "iu" else result / count.astype(result.dtype)
            np.copyto(result, divided, where=count > int(include))
        return result

    return run


def _neutral(reduce: str, dtype: np.dtype) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    info = np.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


@kernel("index_select")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    size = op.operands[0].type.shape[dim]

    def run(x: np.ndarray, index: np.ndarray, out: np.ndarray | None = None) -> Any:
        index = _wrapped(_checked(index, size, dim), size, dim)
        return np.take(x, index, axis=dim, out=out, mode="wrap" if out is not None else "raise")

    return run


@kernel("index_add")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    size = op.operands[0].type.shape[dim]
    where = (slice(None),) * dim

    def run(x: np.ndarray, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        index = _wrapped(_checked(index, size, dim), size, dim)
        src = src.copy() if out is not None and np.may_share_memory(out, src) else src
        result = based(x, out)
        np.add.at(result, (*where, index), src)
        return result

    return run


@kernel("masked_scatter")
def _(op: Op) -> Run:
    def run(x: np.ndarray, mask: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        count = int(np.count_nonzero(mask))
        if count > src.size:
            raise RuntimeError(f"masked_scatter: number of elements in source ({src.size}) is less than number of ones in mask ({count})")
        values = src.reshape(-1)[:count].copy()
        result = based(x, out)
        result[mask] = values
        return result

    return run


@kernel("nonzero")
def _(op: Op) -> Run:
    expected: Any = op.attrs["count"]

    def run(mask: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        found = np.argwhere(mask) if mask.ndim else np.zeros((int(bool(mask)), 0), np.int64)
        if len(found) != expected:
            raise RuntimeError(f"nonzero: this program was made for {expected} non-zero elements, but there are {len(found)}")
        return copied(found.astype(np.int64, copy=False), out)

    return run
