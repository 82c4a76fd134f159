"""Gradients of weights without columns, where windows move in steps of one.

Note: flat windows. The samples stand one after the other in a grid whose rows, and samples, end with zeros, as many as the window reaches
beyond the array; the zeros at the end of one row are those before the next. From the flat position of a place to that of an element of its
window it is a fixed number of steps, whatever the place. So all that an element of the window meets is a stretch of the grid, and its
gradient is the product of that with the gradients of the places, which are 0 at positions that are no places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tpc.runtime.kernels.registry import Run
from tpc.runtime.kernels.scratch import scratch

Sizes = tuple[int, ...]

TILE = 1024
"""Positions that are worked on at a time, for one element of the window after the other: they stay in the cache."""
CHUNK = 1 << 18
"""Elements of input and gradient that are laid out at a time."""
WASTE = 1.35
"""More positions than places by this factor do not pay."""
LEAST = 16
"""Fewer channels than these leave BLAS too little to do at a time."""
MOST = 48
"""With more outputs than these, columns serve often enough to be worth laying out."""


class Taps:
    """The grid of a convolution of x [n, c, *size] with w [o, c, *kernel] that gives y."""

    def __init__(self, x: Sizes, w: Sizes, y: Sizes, attrs: Mapping[str, Any]) -> None:
        self.samples, self.channels, self.size = x[0], x[1], x[2:]
        self.outputs, self.kernel, self.places = w[0], w[2:], y[2:]
        low, high, dilation = attrs["low"], attrs["high"], attrs["dilation"]
        beyond = [max(a, b) for a, b in zip(low, high, strict=True)]
        self.grid = tuple(max(n + b, p) for n, b, p in zip(self.size, beyond, self.places, strict=True))
        self.each = math.prod(self.grid)
        steps = [math.prod(self.grid[d + 1 :]) for d in range(len(self.grid))]
        self.lead = sum(a * s for a, s in zip(low, steps, strict=True))
        strides = [d * s for d, s in zip(dilation, steps, strict=True)]
        self.offsets = [sum(k * t for k, t in zip(element, strides, strict=True)) for element in np.ndindex(*self.kernel)]
        """How far the elements of the window are from its place, plus `lead`."""
        self.pays = (
            all(s == 1 for s in attrs["stride"])
            and attrs["groups"] == 1
            and min(*x, *w, *y) > 0
            and self.channels >= LEAST
            and self.outputs <= MOST
            and self.each <= WASTE * math.prod(self.places)
        )
        self.together = max(1, min(self.samples, CHUNK // max(1, (self.channels + self.outputs) * self.each)))

    def inside(self, grid: np.ndarray, samples: int, size: Sizes) -> np.ndarray:
        """The elements of so many samples in a grid [channels, positions], as [samples, channels, *size]."""
        parts = grid[:, : samples * self.each].reshape(len(grid), samples, *self.grid)
        return parts[(slice(None), slice(None), *(slice(0, n) for n in size))].swapaxes(0, 1)

    def weight_gradient(self, result: Sizes, dtype: np.dtype, careful: Run) -> Run:
        """The kernel. `careful` is called where a sum is not finite: an infinite element times the 0 of a position that is no place."""

        def run(g: np.ndarray, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            positions = self.together * self.each
            elements, gradients, sums = scratch(
                dtype,
                (self.channels, positions + max(self.lead, *self.offsets)),
                (self.outputs, positions),
                (len(self.offsets), self.outputs, self.channels),
            )
            for array in (elements, gradients, sums):
                array[...] = 0
            for first in range(0, self.samples, self.together):
                count = min(self.together, self.samples - first)
                self.inside(elements[:, self.lead :], count, self.size)[...] = x[first : first + count]
                self.inside(gradients, count, self.places)[...] = g[first : first + count]
                self._add(elements, gradients[:, : count * self.each], sums)
            if not np.isfinite(sums).all():
                return careful(g, x, out)  # type: ignore[no-any-return]
            total = np.empty(result, dtype) if out is None else out
            total.reshape(self.outputs, self.channels, -1)[...] = sums.transpose(1, 2, 0)
            return total

        return run

    def _add(self, elements: np.ndarray, gradients: np.ndarray, sums: np.ndarray) -> None:
        """Adds the products of laid out samples, tile by tile."""
        count = gradients.shape[1]
        step = -(-count // max(1, round(count / TILE)))
        for first in range(0, count, step):
            tile = gradients[:, first : first + step]
            for offset, total in zip(self.offsets, sums, strict=True):
                begin = first + offset
                np.add(total, np.matmul(tile, elements[:, begin : begin + tile.shape[1]].T), total)
