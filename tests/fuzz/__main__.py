"""`tools/fuzz`: many programs, a report of those that fail."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.checks import check
from tests.fuzz.differences import check_gradients
from tests.fuzz.generate import program_of
from tests.fuzz.shrink import checked, shrunk

MOST_FAILURES = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=2000, metavar="N", help="how many programs (default: 2000)")
    parser.add_argument("--first", type=int, default=1_000_000, metavar="SEED", help="seed of the first program (default: 1000000)")
    parser.add_argument("--seed", type=int, metavar="SEED", help="run the program of this seed alone")
    parser.add_argument("--smooth", action="store_true", help="smooth programs, whose gradients are held against central differences too")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.programs) if arguments.seed is None else [arguments.seed]
    failures, start = 0, time.perf_counter()
    for count, seed in enumerate(seeds, 1):
        program = program_of(seed, smooth=arguments.smooth)
        for test in (check, check_gradients) if arguments.smooth else (check,):
            if checked(test, program) is None:
                continue
            failures += 1
            small = shrunk(program, test)
            print(f"--- seed {seed}: {checked(test, small)}\n{small}\n", flush=True)
        if count % 1000 == 0:
            print(f"{count} programs, {failures} failures, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        if failures >= MOST_FAILURES:
            print(f"stopped after {failures} failures", file=sys.stderr)
            break
    print(f"{count} programs, {failures} failures")
    return 1 if failures else 0


sys.exit(main())
