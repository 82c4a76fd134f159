"""Every pass on IR text: exact result, round trip, a second run that changes nothing, equal values."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.passes.text_cases import Case, cases, run_case, update

HERE = Path(__file__).parent
CASES = [case for path in sorted(HERE.glob("*.tir")) for case in cases(path)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_text(case: Case, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update"):
        pytest.skip("expectations are being rewritten")
    have = run_case(case)
    assert case.expected is not None, "there is no `// EXPECT`; write one, or run pytest with --update"
    if have != case.expected:
        diff = "".join(difflib.unified_diff(case.expected.splitlines(True), have.splitlines(True), "expected", "result"))
        pytest.fail(f"{case.path}:{case.line}\n{diff}\nto accept: pytest {case.path.parent} --update", pytrace=False)


def test_update(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--update"):
        pytest.skip("only with --update")
    for path in sorted(HERE.glob("*.tir")):
        update(path, {case.line: run_case(case) for case in cases(path)})
