"""Reading and writing by index. Every index is checked before anything is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpc.ir.ops.indexing import indexed_shape
from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel
from tpc.runtime.kernels.shape import based


class OutOfRangeError(IndexError, RuntimeError):
    """An index leaves its axis. PyTorch raises the one class in some functions and the other in others."""


def checked_index(index: np.ndarray, size: int, dim: int, wrap: bool = True) -> np.ndarray:
    """The index as int64 in [0, size); `IndexError` where it leaves its axis. Negative numbers count from the end if `wrap`."""
    index = index.astype(np.int64, copy=False)
    # Seen as unsigned, negative numbers are too large as well.
    if not index.size or int(index.view(np.uint64).max()) < size:
        return index
    low, high = int(index.min()), int(index.max())
    if high >= size or low < (-size if wrap else 0):
        raise OutOfRangeError(f"index {high if high >= size else low} is out of bounds for dimension {dim} with size {size}")
    return np.where(index < 0, index + size, index)


def _key(indices: Sequence[np.ndarray], axes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * len(shape)
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = checked_index(index, shape[axis], axis)
    return tuple(key)


def _apart(array: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The array, copied if writing into `out` would change it."""
    return array.copy() if out is not None and np.may_share_memory(out, array) else array


WIDE = 32
"""From this width on, whole rows are added where they are not the same: fewer indices than one for every element."""
BLOCK = 1 << 14
"""Elements of a block of rows."""
APART = 8
"""If fewer than one in so many rows is the first of its kind, the rest is added element by element."""


class Rows:
    """Adding rows of a source to rows of an array, whose axes from `first` on, `axes` many, are addressed by one flat index."""

    def __init__(self, shape: tuple[int, ...], first: int, axes: int) -> None:
        self.before = math.prod(shape[:first])
        self.count = math.prod(shape[first : first + axes])
        self.width = math.prod(shape[first + axes :])

    def add(self, result: np.ndarray, index: np.ndarray, source: np.ndarray) -> None:
        """Adds in order of the index, so that sums round the same way on every path. `result` is C-contiguous."""
        if not source.size:
            return
        rows = index if self.before == 1 else (np.arange(self.before)[:, None] * self.count + index).reshape(-1)
        source = source.reshape(-1, self.width)
        if self.width >= WIDE:
            rows, left = self._add_apart(result.reshape(-1, self.width), rows, source)
            source = source[left]
        flat = rows if self.width == 1 else (rows[:, None] * self.width + np.arange(self.width)).reshape(-1)
        np.add.at(result.reshape(-1), flat, source.reshape(-1))

    def _add_apart(self, target: np.ndarray, rows: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Adds first the first source of each row, then the second, and so on. What is left when that stops to pay: rows, and the
        numbers of their sources."""
        left, firsts = np.arange(len(rows)), np.empty(len(target), np.intp)
        while len(rows):
            numbers = np.arange(len(rows))
            # of several values written to one place the last stays
            firsts[rows[::-1]] = numbers[::-1]
            is_first = firsts[rows] == numbers
            now = np.flatnonzero(is_first)
            if len(now) * APART < len(rows):
                break
            self._add_different(target, rows[now], source, left[now])
            later = np.flatnonzero(~is_first)
            rows, left = rows[later], left[later]
        return rows, left

    def _add_different(self, target: np.ndarray, rows: np.ndarray, source: np.ndarray, taken: np.ndarray) -> None:
        """Adds rows of the source to rows that are all different, in blocks: fresh memory costs more than the sums."""
        step = max(1, BLOCK // self.width)
        sums, added = (np.empty((min(step, len(rows)), self.width), target.dtype) for _ in range(2))
        for first in range(0, len(rows), step):
            here, there = rows[first : first + step], taken[first : first + step]
            old, new = sums[: len(here)], added[: len(here)]
            np.take(target, here, axis=0, out=old, mode="clip")
            np.take(source, there, axis=0, out=new, mode="clip")
            np.add(old, new, old)
            target[here] = old


@kernel("index")
def _(op: Op) -> Run:
    axes: Any = op.attrs["axes"]
    count = len(op.operands)
    shape = op.operands[0].type.shape
    single = axes[0] if len(axes) == 1 else None

    def run(x: np.ndarray, *rest: Any) -> Any:
        out = rest[count - 1] if len(rest) == count else None
        if single is not None:
            index = checked_index(rest[0], shape[single], single)
            return np.take(x, index, axis=single, out=out, mode="clip" if shape[single] else "raise")
        return copied(x[_key(rest[: count - 1], axes, shape)], out)

    return run


@kernel("index_put")
def _(op: Op) -> Run:
    axes: Any = op.attrs["axes"]
    count = len(op.operands)
    shape = op.operands[0].type.shape
    accumulate = bool(op.attrs["accumulate"])
    together = axes[-1] - axes[0] == len(axes) - 1
    rows = Rows(shape, axes[0], len(axes)) if together else None
    sizes = tuple(shape[a] for a in axes)
    target = indexed_shape("index_put", op.operands[0].type, [v.type for v in op.operands[2:]], axes)

    def run(x: np.ndarray, values: np.ndarray, *rest: Any) -> np.ndarray:
        out = rest[count - 2] if len(rest) == count - 1 else None
        key, values = _key(rest[: count - 2], axes, shape), _apart(values, out)
        result = based(x, out)
        if not accumulate:
            result[key] = values
        elif rows is None:
            np.add.at(result, key, values)
        else:
            index = np.ravel_multi_index(np.broadcast_arrays(*(key[a] for a in axes)), sizes).reshape(-1)
            rows.add(result, index, np.broadcast_to(values, target))
        return result

    return run


def _flat(op: Op) -> Callable[[np.ndarray], np.ndarray]:
    """Flat positions in a C-contiguous array of operand 0's shape: the index along `dim`, its own place along the other axes."""
    dim: Any = op.attrs["dim"]
    shape, extent = op.operands[0].type.shape, op.operands[1].type.shape
    if not shape:
        return lambda index: checked_index(index, 1, 0, wrap=False)
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]

    def flat(index: np.ndarray) -> np.ndarray:
        positions: np.ndarray = checked_index(index, shape[dim], dim, wrap=False) * strides[dim]
        for d, n in enumerate(extent):
            if d != dim and n > 1:
                positions += (np.arange(n) * strides[d]).reshape(n, *(1,) * (len(extent) - d - 1))
        return positions

    return flat


@kernel("gather")
def _(op: Op) -> Run:
    flat = _flat(op)
    empty = op.operands[0].type.numel == 0

    def run(x: np.ndarray, index: np.ndarray, out: np.ndarray | None = None) -> Any:
        positions = flat(index)
        if empty:
            return np.empty(index.shape, x.dtype) if out is None else out
        # Positions are checked already; other modes than "raise" spare `out` a buffer.
        return np.take(x.reshape(-1), positions, out=out, mode="clip")

    return run


def _cut(src: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The part of the source that the index covers."""
    return src[tuple(slice(n) for n in index.shape)]


@kernel("scatter")
def _(op: Op) -> Run:
    flat = _flat(op)

    def run(x: np.ndarray, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        positions, part = flat(index), _apart(_cut(src, index), out)
        result = based(x, out)
        result.reshape(-1)[positions] = part
        return result

    return run


_REDUCE = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add}


@kernel("scatter_reduce")
def _(op: Op) -> Run:
    reduce: Any = op.attrs["reduce"]
    include = bool(op.attrs["include_self"])
    flat, combine = _flat(op), _REDUCE[reduce]

    def run(x: np.ndarray, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        positions, part = flat(index).reshape(-1), _apart(_cut(src, index), out)
        result = based(x, out)
        line = result.reshape(-1)
        if not include:
            line[positions] = _neutral(reduce, line.dtype)
        combine.at(line, positions, part.reshape(-1))
        if reduce == "mean":
            count = np.full(line.shape, int(include), np.int64)
            np.add.at(count, positions, 1)
            np.maximum(count, 1, out=count)
            divided = line // count.astype(line.dtype) if line.dtype.kind in "iu" else line / count.astype(line.dtype)
            np.copyto(line, divided, where=count > int(include))
        return result

    return run


def _neutral(reduce: str, dtype: np.dtype) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    info = np.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


@kernel("index_select")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    size = op.operands[0].type.shape[dim]

    def run(x: np.ndarray, index: np.ndarray, out: np.ndarray | None = None) -> Any:
        return np.take(x, checked_index(index, size, dim, wrap=False), axis=dim, out=out, mode="clip" if size else "raise")

    return run


@kernel("index_add")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    shape = op.operands[0].type.shape
    rows = Rows(shape, dim, 1)

    def run(x: np.ndarray, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        index, src = checked_index(index, shape[dim], dim, wrap=False), _apart(src, out)
        result = based(x, out)
        rows.add(result, index, src)
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
