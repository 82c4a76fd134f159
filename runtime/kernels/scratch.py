"""Memory that kernels work in, the same again and again: pages that the system has just given out cost more than most work on them."""

from __future__ import annotations

import math
import threading

import numpy as np

from tpc.ir.packing import ALIGNMENT
from tpc.runtime.arena import aligned, array_at

MOST = 1 << 25
"""More bytes than these are not kept."""

Sizes = tuple[int, ...]


class _Held(threading.local):
    """What a thread keeps."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)


_HELD = _Held()


def scratch(dtype: np.dtype, *shapes: Sizes) -> list[np.ndarray]:
    """Arrays of these shapes that hold anything, and are the caller's until its thread asks again."""
    offsets, total = [], 0
    for shape in shapes:
        offsets.append(total)
        total += -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    memory = _HELD.memory
    if memory.nbytes < total:
        memory = aligned(total)
        if total <= MOST:
            _HELD.memory = memory
    return [array_at(memory, offset, shape, dtype) for offset, shape in zip(offsets, shapes, strict=True)]
