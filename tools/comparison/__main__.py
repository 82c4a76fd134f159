"""Calls tpc and PyTorch with the same arguments; compares values, dtypes, shapes, gradients to second order and classes of errors."""

from __future__ import annotations

import argparse
import collections
import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import calls as table
import operators
import torch
from both import Call, differences, outcome

import tpc


def compared(calls: Iterable[Call], only: str, gradients: bool) -> tuple[int, dict[str, list[str]]]:
    """How many calls were made, and the differences by name."""
    count, found = 0, collections.defaultdict(list)
    for call in calls:
        if only and only not in call.name:
            continue
        count += 1
        theirs = outcome(torch, call, gradients)
        both = gradients and "derivative" not in theirs.message  # tpc differentiates more than PyTorch does
        said = differences(theirs if both else outcome(torch, call, False), outcome(tpc, call, both))
        if said is not None:
            found[call.name].append(f"{call}\n    {said}")
    return count, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/compare", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="names that contain this")
    parser.add_argument("--values", action="store_true", help="no gradients")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    different = 0
    sources: list[tuple[str, Any]] = [("operators", operators.calls(torch, tpc)), ("public calls", table.calls())]
    for title, calls in sources:
        count, found = compared(calls, options.only, not options.values)
        wrong = sum(map(len, found.values()))
        different += wrong
        for said in found.values():
            print("\n".join(said))
        print(f"{title}: {count} compared, {count - wrong} agree, {wrong} differ in {len(found)} functions\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
