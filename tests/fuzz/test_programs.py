"""Random user programs: every mode gives the same bits, and gradients are slopes.

`tools/fuzz --programs 50000` runs more of them, and makes those that fail smaller.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.checks import check
from tests.fuzz.differences import check_gradients
from tests.fuzz.generate import program_of, programs
from tests.fuzz.program import Program

SEEDS_PER_TEST = 100
DRAWN = 400
"""Programs that hypothesis draws, and shrinks where they fail; drawing takes it as long as running them."""

ALL = settings(max_examples=DRAWN, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)


@ALL
@given(programs())
def test_drawn_programs_agree_in_every_mode(program: Program) -> None:
    _fail(check(program), program)


@pytest.mark.parametrize("first", range(0, 1200, SEEDS_PER_TEST))
def test_programs_agree_in_every_mode(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        program = program_of(seed)
        _fail(check(program), program, f"tools/fuzz --seed {seed}")


@pytest.mark.parametrize("first", range(0, 400, SEEDS_PER_TEST))
def test_gradients_of_smooth_programs_are_slopes(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        program = program_of(seed, smooth=True)
        _fail(check_gradients(program), program, f"tools/fuzz --smooth --seed {seed}")


def _fail(difference: str | None, program: Program, command: str = "") -> None:
    if difference is not None:
        pytest.fail(f"{difference}\n\n{program}\n{command}", pytrace=False)
