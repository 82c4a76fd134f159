"""Places for storages of known lifetimes in one piece of memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from tpc.ir.storage import Storage

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector register."""


def pack(storages: Sequence[Storage]) -> tuple[dict[Storage, int], int]:
    """Offsets of storages in one arena, and its size: the better of two ways to place them."""
    return min(_best_fit(storages), _largest_first(storages), key=lambda packed: packed[1])


def live_peak(storages: Sequence[Storage]) -> int:
    """The most bytes that are in use at once: no packing can do with less."""
    changes: dict[int, int] = {}
    for storage in storages:
        changes[storage.start] = changes.get(storage.start, 0) + _padded(storage)
        changes[storage.end + 1] = changes.get(storage.end + 1, 0) - _padded(storage)
    peak = live = 0
    for time in sorted(changes):
        live += changes[time]
        peak = max(peak, live)
    return peak


def _padded(storage: Storage) -> int:
    return -(-storage.nbytes // ALIGNMENT) * ALIGNMENT


def _best_fit(storages: Sequence[Storage]) -> tuple[dict[Storage, int], int]:
    """In order of time, each into the smallest gap that holds it."""
    offsets: dict[Storage, int] = {}
    gaps: list[tuple[int, int]] = []
    busy: list[tuple[int, int, int]] = []
    size = 0
    for storage in sorted(storages, key=lambda s: s.start):
        while busy and busy[0][0] < storage.start:
            _, offset, nbytes = busy.pop(0)
            _free(gaps, offset, nbytes)
        nbytes = _padded(storage)
        fitting = [(length, offset) for offset, length in gaps if length >= nbytes]
        if fitting:
            length, offset = min(fitting)
            gaps.remove((offset, length))
        else:
            last = gaps.pop() if gaps and sum(gaps[-1]) == size else (size, 0)
            offset, length = last[0], nbytes
            size = offset + nbytes
        if length > nbytes:
            insort(gaps, (offset + nbytes, length - nbytes))
        offsets[storage] = offset
        insort(busy, (storage.end, offset, nbytes))
    return offsets, size


def _free(gaps: list[tuple[int, int]], offset: int, nbytes: int) -> None:
    """Adds a gap and joins it with its neighbours."""
    if nbytes == 0:
        return
    insort(gaps, (offset, nbytes))
    at = gaps.index((offset, nbytes))
    if at + 1 < len(gaps) and offset + nbytes == gaps[at + 1][0]:
        gaps[at : at + 2] = [(offset, nbytes + gaps[at + 1][1])]
    if at > 0 and sum(gaps[at - 1]) == offset:
        gaps[at - 1 : at + 1] = [(gaps[at - 1][0], gaps[at - 1][1] + gaps[at][1])]


FEW = 512
"""Up to this many storages the quadratic way to place them is tried."""


def _largest_first(storages: Sequence[Storage]) -> tuple[dict[Storage, int], int]:
    """In order of size, each at the lowest offset that is free for as long as it lives."""
    offsets: dict[Storage, int] = {}
    if len(storages) > FEW:
        return _best_fit(storages)
    placed: list[tuple[int, Storage]] = []
    size = 0
    for storage in sorted(storages, key=lambda s: (-s.nbytes, s.start)):
        offset = 0
        for start, other in placed:
            if other.start <= storage.end and storage.start <= other.end:
                if start >= offset + _padded(storage):
                    break
                offset = max(offset, start + _padded(other))
        offsets[storage] = offset
        insort(placed, (offset, storage), key=lambda item: item[0])
        size = max(size, offset + _padded(storage))
    return offsets, size
