"""Timing one workload on several peers, round by round, after their values were compared."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import sleep

import numpy as np
from peers import Peer, PeerError, Process

SETTLE = 0.05
"""Seconds between two peers: thread pools wait actively for a while after their work."""
TOLERANCE = 2e-4
"""Largest difference from hand-written NumPy, in terms of the largest element of an array."""


@dataclass
class Row:
    """What came of one workload on one peer; times in seconds, one per round."""

    workload: str
    peer: str
    times: list[float] = field(default_factory=list)
    first: float = 0.0
    bytes: int = 0
    error: str | None = None

    @property
    def median(self) -> float:
        return median(self.times)

    @property
    def spread(self) -> float:
        """Middle half of the rounds, as a share of the median."""
        low, high = np.percentile(self.times, [25, 75])
        return float((high - low) / self.median)

    def against(self, other: Row) -> float:
        """The median of the rounds' ratios to another peer, which ran in the same rounds."""
        return median(a / b for a, b in zip(self.times, other.times, strict=True))


def run(workload: str, peers: list[Peer], rounds: int, seconds: float) -> list[Row]:
    """One row per peer. A peer that fails or computes other values than the first is not timed, and its row says why."""
    rows = [Row(workload, peer.name) for peer in peers]
    processes = [Process(peer) for peer in peers]
    try:
        with tempfile.TemporaryDirectory() as folder:
            _compare(workload, processes, rows, Path(folder))
        for _ in range(rounds):
            for process, row in zip(processes, rows, strict=True):
                if row.error is None:
                    row.times.append(process.ask("time", seconds=seconds)["seconds"])
                    sleep(SETTLE)
        for process, row in zip(processes, rows, strict=True):
            if row.error is None:
                row.bytes = process.ask("memory")["bytes"]
    finally:
        for process in processes:
            process.close()
    return rows


def _compare(workload: str, processes: list[Process], rows: list[Row], folder: Path) -> None:
    """Builds the workload everywhere, runs three steps, and holds the values against those of the first peer."""
    expected: list[np.ndarray] | None = None
    for number, (process, row) in enumerate(zip(processes, rows, strict=True)):
        path = folder / f"{number}.npz"
        try:
            process.ask("build", workload=workload)
            row.first = process.ask("values", path=str(path))["first"]
            with np.load(path) as file:
                found = list(file.values())
        except PeerError as failure:
            row.error = str(failure)
            continue
        if expected is None:
            expected = found
        else:
            row.error = difference(found, expected)


def difference(found: list[np.ndarray], expected: list[np.ndarray]) -> str | None:
    """Why two lists of results do not agree; None if they do."""
    if len(found) != len(expected):
        return f"gives {len(found)} results, not {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.shape != b.shape:
            return f"result {i} has shape {a.shape}, not {b.shape}"
        error = np.abs(a.astype(np.float64) - b).max(initial=0.0)
        scale = np.abs(b).max(initial=0.0)
        if not error <= TOLERANCE * scale:
            return f"result {i} differs by {error:.2g} where the largest element is {scale:.2g}"
    return None
