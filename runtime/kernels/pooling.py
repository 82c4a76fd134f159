"""Pooling: a window of k elements is combined in k passes over whole arrays, axis by axis where the elements are only added or compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel
from tpc.runtime.kernels.windows import Windows

BLOCK = 1 << 17
"""Elements of an array that are worked on together, so that the passes find them in the cache."""

Sizes = tuple[int, ...]


def _ends(array_shape: Sizes, count: int) -> tuple[int, Sizes]:
    """How many arrays of `count` axes there are, and their shape."""
    at = len(array_shape) - count
    return math.prod(array_shape[:at]), array_shape[at:]


def _blocks(arrays: int, each: int) -> Iterator[slice]:
    together = max(1, BLOCK // max(each, 1))
    for first in range(0, arrays, together):
        yield slice(first, min(first + together, arrays))


class _Passes:
    """One pass per axis, first to last: the rows come first, where neighbours in memory are combined with neighbours."""

    def __init__(self, size: Sizes, places: Sizes, attrs: Any) -> None:
        count = len(size)
        dilation = attrs.get("dilation", (1,) * count)
        self.steps: list[tuple[Sizes, Windows]] = []
        for d in range(count):
            kernel = tuple(k if i == d else 1 for i, k in enumerate(attrs["kernel"]))
            moves = {
                "stride": tuple(s if i == d else 1 for i, s in enumerate(attrs["stride"])),
                "low": tuple(b if i == d else 0 for i, b in enumerate(attrs["low"])),
                "dilation": tuple(n if i == d else 1 for i, n in enumerate(dilation)),
            }
            made = (*size[:d], places[d], *size[d + 1 :])
            if any(n > 1 for n in (kernel[d], moves["stride"][d])) or made != size or moves["low"][d]:
                self.steps.append((made, Windows(size, kernel, made, moves)))
            size = made

    def run(self, x: np.ndarray, y: np.ndarray, combine: Callable[..., Any], start: Any) -> None:
        """Combines the windows of `x` into `y`, beginning with `start` where no element is met."""
        for number, (shape, windows) in enumerate(self.steps):
            last = number == len(self.steps) - 1
            target = y if last else np.empty((len(x), *shape), y.dtype)
            begun = False
            for _, at, inside in windows.meetings:
                part, source = target[(slice(None), *at)], x[(slice(None), *inside)]
                if not begun and part.shape == target.shape:
                    np.copyto(target, source)
                elif not begun:
                    target[...] = start
                    combine(part, source, out=part)
                else:
                    combine(part, source, out=part)
                begun = True
            if not begun:
                target[...] = start
            x = target
        if not self.steps:
            np.copyto(y, x)


def _lowest(dtype: np.dtype) -> Any:
    if dtype.kind == "f":
        return -np.inf
    return np.iinfo(dtype).min if dtype.kind in "iu" else False


def _pooling(op: Op, combine: Callable[..., Any], start: Callable[[np.dtype], Any], work: np.dtype) -> Run:
    x, y = op.operands[0].type, op.result.type
    kernel: Any = op.attrs["kernel"]
    arrays, size = _ends(x.shape, len(kernel))
    _, places = _ends(y.shape, len(kernel))
    passes, neutral, each = _Passes(size, places, op.attrs), start(work), math.prod(size)

    def run(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(y.shape, work) if out is None or out.dtype != work else out
        source, target = x.reshape(arrays, *size), result.reshape(arrays, *places)
        for block in _blocks(arrays, each):
            passes.run(source[block], target[block], combine, neutral)
        return result if work == y.numpy_dtype else copied(result.astype(y.numpy_dtype), out)

    return run


def _work(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype == np.float16 else dtype


@kernel("max_pool")
def _(op: Op) -> Run:
    return _pooling(op, np.maximum, _lowest, op.result.type.numpy_dtype)


@kernel("sum_pool")
def _(op: Op) -> Run:
    return _pooling(op, np.add, lambda dtype: 0, _work(op.result.type.numpy_dtype))


def _positions(size: Sequence[int], inside: Sequence[slice]) -> np.ndarray:
    """Flat positions of a part of an array."""
    total = np.zeros((1,) * len(size), np.int64)
    for d, (n, part) in enumerate(zip(size, inside, strict=True)):
        along = np.arange(n)[part] * math.prod(size[d + 1 :])
        total = total + along.reshape(-1, *(1,) * (len(size) - d - 1))
    return total


@kernel("max_pool_indices")
def _(op: Op) -> Run:
    x, y = op.operands[0].type, op.result.type
    kernel: Any = op.attrs["kernel"]
    arrays, size = _ends(x.shape, len(kernel))
    _, places = _ends(y.shape, len(kernel))
    windows, floating = Windows(size, kernel, places, op.attrs), x.numpy_dtype.kind == "f"
    passes, codes, each = _Passes(size, places, op.attrs), _Codes(windows, op.attrs), math.prod(size)
    careful = _one_by_one(windows)

    def block(x: np.ndarray, found: np.ndarray) -> None:
        best = np.empty(found.shape, x.dtype)
        passes.run(x, best, np.maximum, _lowest(x.dtype))
        if floating and np.isnan(best).any():
            careful(x, found)
        else:
            codes.look_up(x, best, found)

    def run(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(y.shape, np.int64) if out is None else out
        source, target = x.reshape(arrays, *size), result.reshape(arrays, *places)
        for part in _blocks(arrays, each):
            block(source[part], target[part])
        return result

    return run


class _Codes:
    """Which element of each window equals a value: found as the largest of small numbers that fall along the window, so that the first
    of several equal ones counts; a table says what they mean."""

    def __init__(self, windows: Windows, attrs: Any) -> None:
        strides = [math.prod(windows.size[d + 1 :]) for d in range(len(windows.size))]
        self.met = [(at, inside, len(windows.meetings) - i) for i, (_, at, inside) in enumerate(windows.meetings)]
        self.dtype = np.dtype(np.uint8 if len(self.met) < 256 else np.uint32)
        self.steps = np.zeros(len(self.met) + 1, np.int64)
        """By code: positions from the first element of a window to the one that is meant."""
        for (element, _, _), (_, _, code) in zip(windows.meetings, self.met, strict=True):
            self.steps[code] = sum(k * d * s for k, d, s in zip(element, attrs["dilation"], strides, strict=True))
        starts = [np.arange(n) * m - a for n, m, a in zip(windows.places, attrs["stride"], attrs["low"], strict=True)]
        self.starts = np.asarray(sum(np.ix_(*(start * s for start, s in zip(starts, strides, strict=True)))), np.int64)
        """The position of the first element of each window."""

    def look_up(self, x: np.ndarray, values: np.ndarray, found: np.ndarray) -> None:
        """Writes the flat positions of `values` in x, and -1 where no element is equal."""
        codes = np.zeros(values.shape, self.dtype)
        for at, inside, code in self.met:
            here = (slice(None), *at)
            equal = np.equal(x[(slice(None), *inside)], values[here]).view(np.uint8)
            np.maximum(codes[here], np.multiply(equal, code, dtype=self.dtype), out=codes[here])
        np.add(np.take(self.steps, codes), self.starts, out=found)
        if not codes.all():
            found[codes == 0] = -1


def _one_by_one(windows: Windows) -> Callable[[np.ndarray, np.ndarray], None]:
    """The positions of the largest elements, where there may be NaN."""
    met = [(at, inside, _positions(windows.size, inside)) for _, at, inside in windows.meetings]

    def block(x: np.ndarray, found: np.ndarray) -> None:
        best = np.full(found.shape, _lowest(x.dtype), x.dtype)
        found[...] = -1
        for at, inside, positions in met:
            here, value, index = best[(slice(None), *at)], x[(slice(None), *inside)], found[(slice(None), *at)]
            # The first of equal elements stays; of several NaN the last one does.
            better = np.greater(value, here) | (index < 0) | np.isnan(value)
            np.copyto(here, value, where=better)
            np.copyto(index, np.broadcast_to(positions, index.shape), where=better)

    return block


@kernel("max_pool_grad")
def _(op: Op) -> Run:
    g, x = op.operands[0].type, op.result.type
    kernel: Any = op.attrs["kernel"]
    arrays, size = _ends(x.shape, len(kernel))
    _, places = _ends(g.shape, len(kernel))
    work, each, count = _work(x.numpy_dtype), math.prod(size), math.prod(places)

    def run(g: np.ndarray, indices: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(x.shape, work) if out is None or out.dtype != work else out
        result[...] = 0
        target, source, chosen = result.reshape(-1), g.reshape(arrays, count), indices.reshape(arrays, count)
        for block in _blocks(arrays, each):
            index, values = chosen[block], source[block]
            # seen as unsigned, the -1 of a window without elements is too large as well
            if not index.size or int(index.view(np.uint64).max()) < each:
                np.add.at(target, (index + np.arange(block.start, block.stop)[:, None] * each).reshape(-1), values.reshape(-1))
            else:
                rows, columns = np.nonzero((index >= 0) & (index < each))
                np.add.at(target, index[rows, columns] + (rows + block.start) * each, values[rows, columns])
        return result if work == x.numpy_dtype else copied(result.astype(x.numpy_dtype), out)

    return run


@kernel("sum_pool_grad")
def _(op: Op) -> Run:
    g, x = op.operands[0].type, op.result.type
    kernel: Any = op.attrs["kernel"]
    arrays, size = _ends(x.shape, len(kernel))
    _, places = _ends(g.shape, len(kernel))
    steps, work = _Passes(size, places, op.attrs).steps, _work(x.numpy_dtype)
    shapes = [size, *[shape for shape, _ in steps]]

    def block(g: np.ndarray, total: np.ndarray) -> None:
        for number in range(len(steps) - 1, -1, -1):
            target = total if number == 0 else np.empty((len(g), *shapes[number]), work)
            target[...] = 0
            for _, at, inside in steps[number][1].meetings:
                part = target[(slice(None), *inside)]
                np.add(part, g[(slice(None), *at)], part)
            g = target
        if not steps:
            np.copyto(total, g)

    def run(g: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(x.shape, work) if out is None or out.dtype != work else out
        source, target = g.reshape(arrays, *places), result.reshape(arrays, *size)
        for part in _blocks(arrays, math.prod(size)):
            block(source[part], target[part])
        return result if work == x.numpy_dtype else copied(result.astype(x.numpy_dtype), out)

    return run
