"""What is kept between the phases: budgets, costs, and that shortcuts and cuts agree."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.programs import programs
from tpc.ir.parser import parse_program
from tpc.ir.program import Program
from tpc.passes.partition import partition, plan_saved
from tpc.passes.report import saved_tensors
from tpc.passes.saved import Demand, choose, cut, obvious

CHAIN = """
program @step (%x: f32[64,64], %s: u64[2]) -> (f32[64,64], f32[64,64], u64[2]) {
  %0, %1 = rand %s {shape=[64,64], dtype="f32"} : f32[64,64], u64[2]
  %2 = mul %x, %0 : f32[64,64]    @Noise#0  loc("model.py":3)
  %3 = exp %2 : f32[64,64]    @Swish#0  loc("model.py":4)
  %4 = matmul %3, %3 : f32[64,64]    @Swish#0  loc("model.py":5)
  %5 = tanh %4 : f32[64,64]    @Swish#0  loc("model.py":6)
  %6 = sin %5 : f32[64,64]
  %7 = mul %4, %5 : f32[64,64]    @SwishBackward#0  loc("model.py":9)
  %8 = matmul %7, %3 : f32[64,64]    @SwishBackward#0  loc("model.py":10)
  %9 = mul %8, %2 : f32[64,64]    @NoiseBackward#0  loc("model.py":12)
  return %6, %9, %1
}"""
SIZE = 64 * 64 * 4


def kept_bytes(program: Program, memory_budget: float) -> int:
    return sum(s.held_bytes for s in saved_tensors(program, memory_budget))


def test_less_budget_keeps_fewer_bytes():
    program = parse_program(CHAIN)
    kept = [kept_bytes(program, b) for b in (1.0, 0.75, 0.5, 0.25, 0.0)]
    assert kept[0] == 4 * SIZE
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == SIZE, "the random numbers, or their product, have to be kept"
    for budget, have in zip((0.75, 0.5, 0.25), kept[1:], strict=False):
        assert have <= budget * kept[0]


def test_report_says_what_where_and_why():
    rows = {(s.made_by, s.decision): s for s in saved_tensors(parse_program(CHAIN), 0.0)}
    exp = rows["exp", "recomputed"]
    assert exp.scopes == ("Swish#0",) and str(exp.loc) == "model.py:4" and exp.nbytes == SIZE and exp.held_bytes == 0
    assert [(r.op, str(r.loc)) for r in exp.readers] == [("matmul", "model.py:10")]
    assert rows["mul", "kept"].held_bytes == SIZE
    random = {s.made_by: s for s in saved_tensors(parse_program(CHAIN.replace("mul %8, %2", "mul %8, %0")), 1.0)}["rand"]
    assert "random" in random.reason


@pytest.mark.parametrize("budget", [-0.1, 1.5, float("nan"), float("inf"), None, "half", True])
def test_a_budget_is_a_number_between_0_and_1(budget):
    with pytest.raises(ValueError, match=r"memory_budget must be a number between 0\.0 and 1\.0"):
        partition(parse_program(CHAIN), budget)


def test_choices_repeat():
    first = [(c.decision, c.value.type, c.reason) for c in plan_saved(parse_program(CHAIN), 0.5)]
    assert first == [(c.decision, c.value.type, c.reason) for c in plan_saved(parse_program(CHAIN), 0.5)]


@settings(deadline=None, max_examples=60)
@given(programs(), st.data())
def test_the_shortcut_is_a_minimum_cut(case, data):
    program, _ = case
    values = [v for op in program.ops for v in op.results]
    wanted = tuple(dict.fromkeys(data.draw(st.lists(st.sampled_from(values), max_size=4)))) if values else ()
    demand = Demand(wanted, frozenset(program.inputs), data.draw(st.booleans()))
    kept = obvious(demand)
    if kept is not None and wanted:
        assert sum(v.type.nbytes for v in kept) == sum(v.type.nbytes for v in cut(demand, demand.cone(), 1.0) - demand.free)


def test_nothing_wanted_nothing_kept():
    assert choose(Demand((), frozenset()), 0.5) == []


def test_full_budget_needs_no_graph_library():
    code = (
        "import sys; from tpc.ir.parser import parse_program; from tpc.passes.pipeline import run;"
        f"run(parse_program({CHAIN!r})); sys.exit('networkx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
