"""Convolution as products of matrices: windows are laid out as columns, block by block, and BLAS does the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel
from tpc.runtime.kernels.scratch import scratch
from tpc.runtime.kernels.taps import Taps
from tpc.runtime.kernels.windows import Windows, place

BLOCK = 1 << 19
"""Elements of a block of columns: small enough for the cache, large enough for BLAS."""
JOINED = 400
"""Samples with fewer places than these share a block, if eight do, even though their results have to be sorted out afterwards."""

Sizes = tuple[int, ...]
EVERY = slice(None)


class Tile:
    """A part of the work: samples `first` to `last`, and all of their places or some rows of them."""

    def __init__(self, first: int, last: int, windows: Windows, rows: slice) -> None:
        self.first, self.last, self.windows, self.rows = first, last, windows, rows
        self.samples = last - first
        self.count = math.prod(windows.places)


class Convolution:
    """The geometry of a convolution of x [n, c, *size] with w [o, c / groups, *kernel], cut into tiles."""

    def __init__(self, x: Sizes, w: Sizes, y: Sizes, attrs: Mapping[str, Any]) -> None:
        self.samples, self.channels, self.size = x[0], x[1], x[2:]
        self.outputs, self.kernel, self.places = w[0], w[2:], y[2:]
        self.groups: int = attrs["groups"]
        self.depth = math.prod(w[1:])
        self.matrices = (self.groups, self.outputs // self.groups, self.depth)
        """The weights as matrices, one per group."""
        self.attrs = attrs
        self.pointwise = all(k == 1 for k in self.kernel) and not any((*attrs["low"], *attrs["high"]))
        moves = zip(self.size, self.kernel, self.places, attrs["stride"], attrs["low"], attrs["dilation"], strict=True)
        self.padded = tuple(max(a + n, (p - 1) * s + (k - 1) * d + 1) for n, k, p, s, a, d in moves)
        """The size with the zeros around that windows reach."""
        self.tiles = list(self._tiles())
        self.most = max((t.samples * t.count for t in self.tiles), default=0)
        self.together = max((t.samples for t in self.tiles), default=0)

    def _tiles(self) -> list[Tile]:
        each = self.channels * math.prod(self.kernel) * math.prod(self.places)
        if each == 0 or self.samples == 0:
            return []
        if each <= BLOCK:
            few = math.prod(self.places) >= JOINED or each > BLOCK // 4
            together = 1 if few else min(self.samples, 2 * BLOCK // each)
            windows = Windows(self.size, self.kernel, self.places, self.attrs)
            rows = slice(0, self.places[0])
            return [Tile(n, min(n + together, self.samples), windows, rows) for n in range(0, self.samples, together)]
        height = max(1, self.places[0] * BLOCK // each)
        bands = [(r, min(r + height, self.places[0])) for r in range(0, self.places[0], height)]
        parts = [(Windows(self.size, self.kernel, self.places, self.attrs, band), slice(*band)) for band in bands]
        return [Tile(n, n + 1, windows, rows) for n in range(self.samples) for windows, rows in parts]

    def outputs_of(self, tile: Tile, y: np.ndarray) -> np.ndarray:
        """What belongs to a tile, of an array in the shape of the result, as [outputs, samples, *places]."""
        return y[tile.first : tile.last, :, tile.rows].swapaxes(0, 1)

    def as_matrix(self, tile: Tile, y: np.ndarray) -> np.ndarray:
        """The same as [groups, outputs / groups, samples * places]: a view where there is one sample."""
        return self.outputs_of(tile, y).reshape(self.groups, self.outputs // self.groups, tile.samples * tile.count)


class Columns:
    """The windows of an array as columns, tile by tile in the same memory, which is the thread's: `spare` elements of it are left over."""

    def __init__(self, c: Convolution, x: np.ndarray, dtype: np.dtype, spare: int = 0) -> None:
        self.c, self.x = c, x
        self.bare = c.padded == c.size
        around = (0,) if self.bare else (c.together, c.channels, *c.padded)
        self.grid, self.buffer, self.spare = scratch(dtype, around, (c.channels * math.prod(c.kernel) * c.most,), (spare,))
        self.grid[...] = 0
        self.inside = tuple(slice(a, a + n) for a, n in zip(c.attrs["low"], c.size, strict=True))
        self.laid_out = -1

    def of(self, tile: Tile) -> np.ndarray:
        """The columns of a tile: [groups, depth, samples * places]."""
        c, grid = self.c, self._padded(tile)
        shape = (c.channels, *c.kernel, tile.samples, *tile.windows.places)
        steps = grid.strides[2:]
        within = [d * s for d, s in zip(c.attrs["dilation"], steps, strict=True)]
        between = [m * s for m, s in zip(c.attrs["stride"], steps, strict=True)]
        begin = grid[:, :, tile.rows.start * c.attrs["stride"][0] :]
        columns = self.buffer[: math.prod(shape)].reshape(shape)
        view = as_strided(begin, shape, (grid.strides[1], *within, grid.strides[0], *between), writeable=False)
        np.copyto(columns, view)
        return columns.reshape(c.groups, c.depth, tile.samples * tile.count)

    def _padded(self, tile: Tile) -> np.ndarray:
        """The samples of a tile with zeros around."""
        samples = self.x[tile.first : tile.last]
        if self.bare:
            return samples
        if self.laid_out != tile.first:
            self.grid[place(slice(tile.samples), EVERY, *self.inside)] = samples
            self.laid_out = tile.first
        return self.grid


def _work(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _in_work(run: Run, dtype: np.dtype) -> Run:
    """Half precision computed in single."""
    if dtype != np.float16:
        return run
    single = np.dtype(np.float32)
    return lambda a, b, out=None: copied(run(a.astype(single), b.astype(single)).astype(np.float16), out)


def forward(c: Convolution, result: Sizes, dtype: np.dtype) -> Run:
    """y = w * x, tile by tile."""
    if c.pointwise:
        return _pointwise(c, result)

    def run(x: np.ndarray, w: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        y = np.empty(result, dtype) if out is None else out
        if not c.tiles:
            y[...] = 0
            return y
        weights, joined = w.reshape(c.matrices), c.together > 1
        columns = Columns(c, x, dtype, c.outputs * c.most if joined else 0)
        for tile in c.tiles:
            if joined:
                product = columns.spare[: c.outputs * tile.samples * tile.count].reshape(*c.matrices[:2], -1)
                target = c.outputs_of(tile, y)
                target[...] = np.matmul(weights, columns.of(tile), out=product).reshape(target.shape)
            else:
                np.matmul(weights, columns.of(tile), out=c.as_matrix(tile, y))
        return y

    return run


def _pointwise(c: Convolution, result: Sizes) -> Run:
    """A window of one element: one product per sample and group."""
    steps = tuple(slice(None, None, s) for s in c.attrs["stride"])
    strided = any(s > 1 for s in c.attrs["stride"])

    def run(x: np.ndarray, w: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        x = x[place(..., *steps)] if strided else x
        product = np.matmul(
            w.reshape(c.matrices),
            x.reshape(c.samples, c.groups, c.depth, math.prod(c.places)),
            out=None if out is None else out.reshape(c.samples, *c.matrices[:2], math.prod(c.places)),
        )
        return product.reshape(result) if out is None else out

    return run


@kernel("conv")
def _(op: Op) -> Run:
    (x, w), y = (v.type for v in op.operands), op.result.type
    c = Convolution(x.shape, w.shape, y.shape, op.attrs)
    return _in_work(forward(c, y.shape, _work(y.numpy_dtype)), y.numpy_dtype)


# --- gradients ----------------------------------------------------------------------------------


@kernel("conv_input_grad")
def _(op: Op) -> Run:
    (g, w), x = (v.type for v in op.operands), op.result.type
    run = _flipped(g.shape, w.shape, x.shape, op.attrs, _work(x.numpy_dtype))
    if run is None:
        run = _spread(Convolution(x.shape, w.shape, g.shape, op.attrs), x.shape, _work(x.numpy_dtype))
    return _in_work(run, x.numpy_dtype)


def _flipped(g: Sizes, w: Sizes, x: Sizes, attrs: Mapping[str, Any], dtype: np.dtype) -> Run | None:
    """Where the window moves in steps of one, the gradient is the convolution of `g` with the flipped window."""
    groups, others = attrs["groups"], len(w) - 2
    kernel, dilation = w[2:], attrs["dilation"]
    low = tuple(d * (k - 1) - b for d, k, b in zip(dilation, kernel, attrs["low"], strict=True))
    if any(s != 1 for s in attrs["stride"]) or min(low) < 0 or (w[0] > 2 * w[1] * groups and max(kernel) > 1):
        return None
    turned = (x[1], w[0] // groups, *kernel)
    high = tuple(n + d * (k - 1) - m - b for n, d, k, m, b in zip(x[2:], dilation, kernel, g[2:], low, strict=True))
    c = Convolution(g, turned, x, {"stride": attrs["stride"], "low": low, "high": high, "dilation": dilation, "groups": groups})
    convolve = forward(c, x, dtype)
    order = (0, 2, 1, *range(3, 3 + others))
    backwards = place(..., *[slice(None, None, -1)] * others)

    def run(g: np.ndarray, w: np.ndarray, out: np.ndarray | None = None) -> Any:
        split = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]).transpose(order)[backwards]
        # BLAS wants rows that go forwards
        return convolve(g, np.ascontiguousarray(split).reshape(turned), out)

    return run


def _spread(c: Convolution, result: Sizes, dtype: np.dtype) -> Run:
    """Columns of gradients, added to where the windows were."""
    # a product over one element is no business of BLAS
    multiply = np.multiply if c.matrices[1] == 1 else np.matmul

    def run(g: np.ndarray, w: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        x = np.empty(result, dtype) if out is None else out
        x[...] = 0
        weights = w.reshape(c.matrices).swapaxes(1, 2)
        (buffer,) = scratch(dtype, (c.channels * math.prod(c.kernel) * c.most,))
        for tile in c.tiles:
            gradient = c.as_matrix(tile, g)
            shape = (c.channels, *c.kernel, tile.samples, *tile.windows.places)
            columns = buffer[: math.prod(shape)]
            multiply(weights, gradient, out=columns.reshape(c.groups, c.depth, tile.samples * tile.count))
            columns = columns.reshape(shape)
            part = x[tile.first : tile.last].swapaxes(0, 1)
            for element, at, inside in tile.windows.meetings:
                target = part[place(EVERY, EVERY, *inside)]
                np.add(target, columns[place(EVERY, *element, EVERY, *at)], target)
        return x

    return run


@kernel("conv_weight_grad")
def _(op: Op) -> Run:
    (g, x), w = (v.type for v in op.operands), op.result.type
    dtype = _work(w.numpy_dtype)
    run = _weights_by_columns(Convolution(x.shape, w.shape, g.shape, op.attrs), w.shape, dtype)
    if (taps := Taps(x.shape, w.shape, g.shape, op.attrs)).pays:
        run = taps.weight_gradient(w.shape, dtype, run)
    return _in_work(run, w.numpy_dtype)


def _weights_by_columns(c: Convolution, result: Sizes, dtype: np.dtype) -> Run:
    """The sum of the products of gradients and columns."""

    def run(g: np.ndarray, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        total = np.empty(result, dtype) if out is None else out
        sums, columns = total.reshape(c.matrices), Columns(c, x, dtype)
        sums[...] = 0
        for tile in c.tiles:
            sums += np.matmul(c.as_matrix(tile, g), columns.of(tile).swapaxes(1, 2))
        return total

    return run


# --- windows as columns -------------------------------------------------------------------------


@kernel("im2col")
def _(op: Op) -> Run:
    x, y = op.operands[0].type, op.result.type
    kernel: Any = op.attrs["kernel"]
    count = len(kernel)
    windows = Windows(x.shape[x.rank - count :], kernel, y.shape[y.rank - count :], op.attrs)

    def run(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(y.shape, y.numpy_dtype) if out is None else out
        if not windows.inside:
            result[...] = 0
        windows.copy(x, result)
        return result

    return run


@kernel("col2im")
def _(op: Op) -> Run:
    columns, x = op.operands[0].type, op.result.type
    size: Any = op.attrs["size"]
    count = len(size)
    kernel, places = columns.shape[columns.rank - 2 * count : columns.rank - count], columns.shape[columns.rank - count :]
    windows = Windows(size, kernel, places, op.attrs)
    half = x.dtype == "f16"

    def run(columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(x.shape, x.numpy_dtype) if out is None or half else out
        total = np.zeros(x.shape, np.float32) if half else result
        total[...] = 0
        windows.add(columns, total)
        return copied(total.astype(np.float16), out) if half else result

    return run
