"""Results as text and as JSON."""

from __future__ import annotations

from typing import Any

from measures import Cost
from rounds import Row

HEADING = f"{'workload':10} {'peer':14} {'ms':>9} {'spread':>7} {'/NumPy':>7} {'/torch':>7} {'first ms':>9} {'MB':>6}"


def print_rows(rows: list[Row], first: bool) -> None:
    """The rows of one workload. Ratios are medians over rounds; MB is peak memory above the inputs."""
    if first:
        print(HEADING)
    for row in rows:
        if row.error is not None:
            print(f"{row.workload:10} {row.peer:14} {row.error}")
            continue
        ratios = [f"{r:7.2f}" if r is not None else f"{'-':>7}" for r in ratios_of(row, rows)]
        print(
            f"{row.workload:10} {row.peer:14} {row.median * 1e3:9.4g} {row.spread:7.0%} {' '.join(ratios)} "
            f"{row.first * 1e3:9.4g} {row.bytes / 1e6:6.0f}"
        )
    print(flush=True)


def ratios_of(row: Row, rows: list[Row]) -> tuple[float | None, float | None]:
    """Times as shares of those of hand-written NumPy and of eager PyTorch."""
    by_name = {r.peer: r for r in rows if r.error is None}
    found = [row.against(by_name[name]) if name in by_name else None for name in ("NumPy", "torch eager")]
    return found[0], found[1]


def print_costs(name: str, costs: list[Cost]) -> None:
    for what, whose, seconds in costs:
        print(f"{name:10} {whose:14} {seconds * 1e6:12.2f} us  {what}")
    print(flush=True)


def as_json(rows: list[Row], costs: list[Cost]) -> dict[str, Any]:
    made = []
    for row in rows:
        same = [r for r in rows if r.workload == row.workload]
        entry: dict[str, Any] = {"workload": row.workload, "peer": row.peer}
        if row.error is not None:
            made.append({**entry, "error": row.error})
            continue
        numpy, torch = ratios_of(row, same)
        entry.update(seconds=row.median, spread=row.spread, to_numpy=numpy, to_torch=torch, first_call=row.first, peak_bytes=row.bytes)
        made.append({**entry, "rounds": row.times})
    return {"workloads": made, "costs": [{"what": what, "peer": whose, "seconds": seconds} for what, whose, seconds in costs]}
