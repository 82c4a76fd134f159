"""Memory of a run: the arena, and output arrays that are used again once nobody else holds them."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from tpc.ir.packing import ALIGNMENT

RECYCLED_FROM = 1 << 16
"""Outputs of at least this many bytes are used again. Smaller ones cost NumPy less than it costs to ask."""


def aligned(nbytes: int) -> np.ndarray:
    """Uninitialised bytes that start at a multiple of the alignment."""
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes]


def array_at(memory: np.ndarray, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The array that lies at this byte of `memory`."""
    return np.ndarray(shape, dtype, memory, offset)


def recycler(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], np.ndarray]:
    """A function that gives an uninitialised array that nobody else holds, if it can one that it gave before.

    Two are remembered: a training step reads the parameters that its last call gave while it computes the next ones. Views
    and buffers made of an array hold a reference to it, so an array without other references is seen by nobody.
    """
    first: np.ndarray | None = None
    second: np.ndarray | None = None
    held, empty = sys.getrefcount, np.empty

    def take() -> np.ndarray:
        nonlocal first, second
        if first is not None and held(first) == ALONE:
            return first
        if second is not None and held(second) == ALONE:
            first, second = second, first
            return first
        first, second = empty(shape, dtype), first
        return first

    return take


def _alone() -> int:
    """What `sys.getrefcount` says of an array that only one closure holds, measured because it differs between Pythons."""
    only: object = object()

    def count() -> int:
        return sys.getrefcount(only)

    return count()


ALONE = _alone() if getattr(sys, "_is_gil_enabled", lambda: True)() else 0
"""The reference count that means "held by nobody else"; 0, which is never met, where counts say nothing (free threading)."""
