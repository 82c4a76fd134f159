"""Runs of ops that native code takes, as lines of an executable: small ones many to a call, large ones alone and over threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.native.calls import KernelCall, Pointer, segment
from tpc.runtime.native.parts import Location, Memory, Part, parts_of
from tpc.runtime.workers import run_shared

if TYPE_CHECKING:
    from tpc.runtime.lowering import Lowering

SHARED_FROM = 1 << 19
"""Kernels with at least so much work are shared between threads, units as in `Part.work`."""
RELEASED_FROM = 1 << 17
"""Segments with at least so much work let other Python threads run meanwhile."""
PARTS_PER_THREAD = 2
LEAST_STEP = 64
"""Threads' shares of one flat loop begin at multiples of so many elements: whole cache lines."""


class Segments:
    """Collects ops for native code; everything else in the executable has to come after a `close`."""

    def __init__(self, lowering: Lowering, folder: Path | None) -> None:
        self.lowering = lowering
        self.folder = folder
        self.memory = Memory(lowering.plan)
        self.waiting: list[tuple[Op, Part]] = []

    def take(self, op: Op) -> bool:
        """Takes an op, or writes down what waits and leaves the op to the caller."""
        parts = parts_of(op, self.memory)
        if parts is None:
            self.close()
            return False
        for part in parts:
            if self.lowering.threads > 1 and part.work >= SHARED_FROM and part.range > 1:
                self.close()
                self._share(op, part)
            else:
                self.waiting.append((op, part))
        return True

    def close(self) -> None:
        """Writes what waits as one call."""
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        calls = [_Call(part, 0, part.range) for _, part in waiting]
        releases = sum(part.work for _, part in waiting) >= RELEASED_FROM
        self._line([calls], releases, waiting[0][0])

    def _share(self, op: Op, part: Part) -> None:
        count = min(self.lowering.threads * PARTS_PER_THREAD, part.range)
        step = -(-part.range // count)
        if part.range >= LEAST_STEP * count:
            step = -(-step // LEAST_STEP) * LEAST_STEP
        calls = [[_Call(part, start, min(start + step, part.range))] for start in range(0, part.range, step)]
        self._line(calls, True, op)

    def _line(self, shares: Sequence[Sequence[_Call]], releases: bool, op: Op) -> None:
        """A line that runs every list of calls, at the same time if there are several."""
        code, names = self.lowering.code, list[str]()
        made = [segment([call.resolved(self, names) for call in share], releases, self.folder) for share in shares]
        name = code.bind("n", made[0] if len(made) == 1 else _shared(made, self.lowering.threads))
        arguments = ", ".join(names)
        code.line(f"if {name}({arguments}) is not None: {code.bind('failed', _failed)}({name}, {arguments})", op)

    def pointer(self, location: Location, names: list[str]) -> Pointer:
        """Where a location is, relative to one of the arguments, which are entered into `names`."""
        place, lowering = location.place, self.lowering
        if place.kind == "constant":
            assert location.constant is not None
            array = lowering.code.shared[lowering.name(location.constant)]
            return Pointer(0, int(array.ctypes.data) + location.offset)
        if place.kind == "arena":
            name = lowering.memory()
        else:
            name = lowering.inputs[place.index] if place.kind == "input" else lowering.output(place.index)
        if name not in names:
            names.append(name)
        return Pointer(names.index(name) + 1, location.offset)


class _Call(NamedTuple):
    """A kernel over a part of its range."""

    part: Part
    start: int
    stop: int

    def resolved(self, segments: Segments, names: list[str]) -> KernelCall:
        pointers = tuple(segments.pointer(location, names) for location in self.part.operands)
        return KernelCall(self.part.address(segments.folder), self.start, self.stop, pointers)


def _shared(parts: Sequence[Callable[..., int | None]], threads: int) -> Callable[..., int | None]:
    """Several segments as one function, run by several threads."""
    count = len(parts)

    def run(*arrays: np.ndarray) -> int | None:
        results: list[int] = []

        def work(numbers: Any, thread: int) -> None:
            results.extend(result for number in numbers if (result := parts[number](*arrays)) is not None)

        run_shared(work, count, threads)
        return results[0] if results else None

    return run


def _failed(run: Callable[..., int | None], *arrays: np.ndarray) -> None:
    """Called where a segment did not run: it wants arrays of NumPy's own class and no subclass of it."""
    if run(*map(np.asarray, arrays)) is not None:
        raise TypeError("an executable runs on NumPy arrays")
