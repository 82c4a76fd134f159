"""Windows that move in steps of one, on arrays whose axes are laid out as one.

Note: flat windows. The samples stand one after the other in a grid whose rows, and samples, end with zeros, as many as the window reaches
beyond the array; the zeros at the end of one row are those before the next. From the flat position of a place to that of an element of its
window it is a fixed number of steps, whatever the place. So the column of that element is a stretch of the grid, and the columns of all
elements are one strided view of it. At positions that are no places the columns hold what happens to lie there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

Sizes = tuple[int, ...]

TILE = 1 << 17
"""Elements of columns that are made at a time: they are still in the cache when they are multiplied."""
LEAST, MOST = 256, 2048
"""Positions of a tile."""
CHUNK = 1 << 18
"""Elements of input and result that are laid out at a time."""
WASTE = 1.35
"""More positions than places by this factor do not pay."""


class Stretch(NamedTuple):
    """Positions `first` to `last` of the grid and the columns there, as [groups, depth, positions]."""

    first: int
    last: int
    columns: np.ndarray


class Planes:
    """The grid of a convolution of x [n, c, *size] with w [o, c / groups, *kernel] that gives y."""

    def __init__(self, x: Sizes, w: Sizes, y: Sizes, attrs: Mapping[str, Any]) -> None:
        self.samples, self.channels, self.size = x[0], x[1], x[2:]
        self.outputs, self.kernel, self.places = w[0], w[2:], y[2:]
        self.groups: int = attrs["groups"]
        low, high, dilation = attrs["low"], attrs["high"], attrs["dilation"]
        self.depth = math.prod(w[1:])
        beyond = [max(a, b) for a, b in zip(low, high, strict=True)]
        self.grid = tuple(max(n + b, p) for n, b, p in zip(self.size, beyond, self.places, strict=True))
        steps = [math.prod(self.grid[d + 1 :]) for d in range(len(self.grid))]
        self.each = math.prod(self.grid)
        self.lead = sum(a * s for a, s in zip(low, steps, strict=True))
        self.taps = [d * s for d, s in zip(dilation, steps, strict=True)]
        """Positions from one element of the window to the next, along each axis."""
        self.reach = sum((k - 1) * t for k, t in zip(self.kernel, self.taps, strict=True))
        self.pays = all(s == 1 for s in attrs["stride"]) and min(*x, *w, *y) > 0 and self.each <= WASTE * math.prod(self.places)
        self.together = max(1, min(self.samples, CHUNK // max(1, (self.channels + self.outputs) * self.each)))
        wide = TILE // max(1, self.groups * self.depth)
        self.tile = min(max(LEAST, min(MOST, wide)), self.together * self.each)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Samples that are laid out together."""
        for first in range(0, self.samples, self.together):
            yield first, min(first + self.together, self.samples)

    def _inside(self, grid: np.ndarray, samples: int, size: Sizes) -> np.ndarray:
        """The elements of the samples in a grid [channels, positions], as [samples, channels, *size]."""
        parts = grid[:, : samples * self.each].reshape(len(grid), samples, *self.grid)
        return parts[(slice(None), slice(None), *(slice(0, n) for n in size))].swapaxes(0, 1)

    def empty_grid(self, dtype: np.dtype) -> np.ndarray:
        """Zeros to lay samples out in."""
        return np.zeros((self.channels, self.together * self.each + max(self.lead, self.reach)), dtype)

    def lay_out(self, x: np.ndarray, grid: np.ndarray) -> None:
        """Puts samples into the grid; what lies between them stays 0."""
        self._inside(grid[:, self.lead :], len(x), self.size)[...] = x

    def results(self, grid: np.ndarray, samples: int) -> np.ndarray:
        """What a grid [outputs, positions] holds at the places of so many samples, as [samples, outputs, *places]."""
        return self._inside(grid, samples, self.places)

    def buffer(self, dtype: np.dtype) -> np.ndarray:
        """Memory for the columns of a tile."""
        return np.empty(self.groups * self.depth * self.tile, dtype)

    def stretches(self, grid: np.ndarray, samples: int, buffer: np.ndarray) -> Iterator[Stretch]:
        """The columns of the samples in a grid, tile by tile, all in the same memory."""
        strides = (grid.strides[0], *(t * grid.itemsize for t in self.taps), grid.itemsize)
        total = samples * self.each
        for first in range(0, total, self.tile):
            last = min(first + self.tile, total)
            shape = (self.channels, *self.kernel, last - first)
            columns = buffer[: math.prod(shape)].reshape(shape)
            np.copyto(columns, as_strided(grid[:, first:], shape, strides, writeable=False))
            yield Stretch(first, last, columns.reshape(self.groups, self.depth, last - first))
