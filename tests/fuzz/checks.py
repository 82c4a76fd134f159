"""Everything that is held against each other for one program."""

from __future__ import annotations

from typing import Any

import tpc
from tests.fuzz.interpreted import check_programs
from tests.fuzz.modes import compare, compiled_at_once, quiet, reassociated, run
from tests.fuzz.program import Program
from tpc import deferred


def check(program: Program) -> str | None:
    """Runs a program in the modes and says where they differ first."""
    with quiet():
        expected = run(program, tpc)
        found = compare(program, expected, run(program, tpc, flush=deferred.flush), False)
        if found:
            return f"deferred against flushed at every step: {found}"
        with compiled_at_once():
            found = compare(program, expected, run(program, tpc), False)
        if found:
            return f"deferred against deferred executables: {found}"
        compiled: list[Any] = []

        def compile(body: Any) -> Any:
            compiled.append(tpc.compile(body, memory_budget=program.budget, backend="numpy"))
            return compiled[0]

        got = run(program, tpc, compile)
        found = compare(program, expected, got, not compiled[0].deferred, reassociated(program))
        if found:
            return f"deferred against compiled: {found}"
    return check_programs(program, expected[0])
