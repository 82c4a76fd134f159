"""Where the elements of a sliding window lie: which places it has, and which elements of the array each of its own meets there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Slices = tuple[slice, ...]


def place(*parts: Any) -> Any:
    """An index made of parts."""
    return parts


class Meeting(NamedTuple):
    """One element of the window: at the places `at` it meets the array's elements `inside`."""

    element: tuple[int, ...]
    at: Slices
    inside: Slices


def axis_meetings(size: int, kernel: int, stride: int, low: int, dilation: int, first: int, last: int) -> list[tuple[slice, slice] | None]:
    """For each element of a window on one axis: the places, counted from `first` and before `last`, at which it is inside the array,
    and the elements it meets there."""
    found: list[tuple[slice, slice] | None] = []
    for k in range(kernel):
        start = k * dilation - low
        begin = max(first, -(start // stride))
        end = min(last, (size - 1 - start) // stride + 1)
        if end <= begin:
            found.append(None)
        else:
            found.append((slice(begin - first, end - first), slice(begin * stride + start, (end - 1) * stride + start + 1, stride)))
    return found


class Windows:
    """The meetings of every element of a window, in order, at the places `first` to `last` of the first axis and all of the others."""

    def __init__(
        self, size: Sequence[int], kernel: Sequence[int], places: Sequence[int], attrs: Mapping[str, Any],
        rows: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.size, self.kernel = tuple(size), tuple(kernel)
        first, last = rows if rows is not None else (0, places[0])
        self.places = (last - first, *places[1:])
        dilation = attrs.get("dilation", (1,) * len(self.kernel))
        ends = [(first, last), *[(0, n) for n in places[1:]]]
        self.axes = [
            axis_meetings(n, k, stride, low, d, *end)
            for n, k, stride, low, d, end in zip(size, kernel, attrs["stride"], attrs["low"], dilation, ends, strict=True)
        ]
        self.meetings = list(self._all())
        self.inside = all(m is not None and m[0] == slice(0, n) for axis, n in zip(self.axes, self.places, strict=True) for m in axis)
        """Whether the window never reaches beyond the array."""

    def _all(self) -> Iterator[Meeting]:
        for element in itertools.product(*map(range, self.kernel)):
            met = [axis[k] for axis, k in zip(self.axes, element, strict=True)]
            if None not in met:
                yield Meeting(element, tuple(m[0] for m in met if m), tuple(m[1] for m in met if m))

    def copy(self, x: np.ndarray, columns: np.ndarray) -> None:
        """Writes what every element meets: `x` is [..., *size], `columns` is [..., *kernel, *places] and 0 where nothing is met."""
        for element, at, inside in self.meetings:
            columns[place(..., *element, *at)] = x[place(..., *inside)]

    def add(self, columns: np.ndarray, x: np.ndarray) -> None:
        """The transpose of `copy`: adds every column to the elements it was met by."""
        for element, at, inside in self.meetings:
            part = x[place(..., *inside)]
            np.add(part, columns[place(..., *element, *at)], part)
