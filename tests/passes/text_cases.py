"""Pass tests as IR text: pairs of programs, before and after.

    // PASSES: simplify cse

    // CASE: equal ops merge
    program @f (...) -> (...) { ... }
    // EXPECT
    program @f (...) -> (...) { ... }

A `PASSES` line inside a case holds for that case. A pass may be given numbers: `partition(memory_budget=0.0)`. `lifetime` comes
last, if at all; what is expected then is the printed plan.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tpc.ir.compare import same_program
from tpc.ir.parser import parse_program
from tpc.ir.plan import Plan
from tpc.ir.plan_printer import print_plan
from tpc.ir.program import Program
from tpc.ir.verify import verify
from tpc.passes import pipeline
from tpc.passes.lifetime import lifetime
from tpc.passes.simplify import simplify
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret

PASSES = {p.__name__: p for p in (*pipeline.PASSES, lifetime)}


@dataclass(frozen=True)
class Case:
    path: Path
    line: int
    title: str
    passes: str
    before: str
    expected: str | None

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line} {self.title}"


def cases(path: Path) -> Iterator[Case]:
    """The cases of a file, in order."""
    head, *parts = re.split(r"^// CASE: ", path.read_text(), flags=re.MULTILINE)
    common = _passes(head)
    line = head.count("\n") + 1
    for part in parts:
        title, rest = part.split("\n", 1)
        before, *expected = re.split(r"^// EXPECT *\n", rest, flags=re.MULTILINE)
        yield Case(path, line, title, _passes(before) or common or "", before, expected[0].strip() + "\n" if expected else None)
        line += part.count("\n")


def _passes(text: str) -> str | None:
    found = re.search(r"^// PASSES: (.*)$", text, flags=re.MULTILINE)
    return found[1].strip() if found else None


def functions(spec: str) -> list:
    """The passes that a line names."""
    found = []
    for name, arguments in re.findall(r"(\w+)(?:\(([^)]*)\))?", spec):
        keywords = {k.arg: ast.literal_eval(k.value) for k in ast.parse(f"f({arguments})", mode="eval").body.keywords}
        if name == simplify.__name__:
            keywords["evaluate"] = interpret
        found.append(partial(PASSES[name], **keywords))
    return found


def run_case(case: Case) -> str:
    """Runs a case and checks all that can be checked without the expected text, which is returned."""
    before = parse_program(case.before)
    verify(before)
    *passes, last = functions(case.passes)
    if last.func is not lifetime:
        passes.append(last)
    after = pipeline.run(before, passes, verify=verify)
    assert (why := same_program(after, parse_program(str(after)), origin=True)) is None, f"does not round-trip: {why}"
    again = pipeline.run(after, passes, verify=verify)
    assert str(again) == str(after), f"a second run changes the result to\n{again}"
    check_values(before, after)
    if last.func is not lifetime:
        return f"{after}\n".replace("\n\n", "\n")
    plan = last(after)
    check_plan(plan)
    return f"{print_plan(plan)}\n"


def inputs_of(program: Program) -> list[np.ndarray]:
    """Seeded arrays for the inputs of a program; small integers, so that they serve as indices too."""
    rng = np.random.default_rng(7)
    arrays = []
    for value in program.inputs:
        dtype, shape = value.type.numpy_dtype, value.type.shape
        numbers = rng.standard_normal(shape) if dtype.kind in "fc" else rng.integers(0, 2, shape)
        arrays.append(np.asarray(numbers).astype(dtype).reshape(shape))
    return arrays


def check_values(before: Program, after: Program) -> None:
    """Both programs give the same bits."""
    arrays = inputs_of(before)
    for position, (want, have) in enumerate(zip(interpret(before, arrays), interpret(after, arrays), strict=True)):
        assert have.dtype == want.dtype and have.shape == want.shape
        assert np.array_equal(have, want, equal_nan=want.dtype.kind in "fc"), f"output {position} changes from {want} to {have}"


def check_plan(plan: Plan) -> None:
    """The executable gives what the interpreter gives, twice, and leaves inputs alone unless they are donated."""
    executable, arrays = Executable(plan), inputs_of(plan.program)
    wanted = interpret(plan.program, arrays)
    for _ in range(2):
        given = [a.copy() for a in arrays]
        for want, have in zip(wanted, executable.run(given), strict=True):
            assert np.array_equal(have, want, equal_nan=want.dtype.kind in "fc")
        for i, (old, new) in enumerate(zip(arrays, given, strict=True)):
            assert i in plan.donated or np.array_equal(old, new)


def update(path: Path, texts: dict[int, str]) -> None:
    """Rewrites the expectations of a file; `texts` holds what came out for the case at each line."""
    head, *parts = re.split(r"^(?=// CASE: )", path.read_text(), flags=re.MULTILINE)
    done, line = [head], head.count("\n") + 1
    for part in parts:
        before = re.split(r"^// EXPECT *\n", part, flags=re.MULTILINE)[0]
        done.append(f"{before.rstrip()}\n// EXPECT\n{texts[line]}\n" if line in texts else part)
        line += part.count("\n")
    path.write_text("".join(done).rstrip() + "\n")
