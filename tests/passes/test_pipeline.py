"""The pipeline: order, hooks, errors; and what its reports say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.ir.programs import programs
from tpc.ir.errors import VerifyError
from tpc.ir.parser import parse_program
from tpc.ir.plan import plan_memory
from tpc.ir.program import Program
from tpc.ir.verify import verify
from tpc.passes import pipeline, report
from tpc.passes.cse import cse
from tpc.passes.schedule import schedule

TEXT = """
program @f (%x: f32[64], %y: f32[64]) -> (f32[64]) {
  %0 = exp %x : f32[64]    @A#0
  %1 = exp %x : f32[64]    @ABackward#0
  %2 = mul %0, %1 : f32[64]    @ABackward#0
  %3 = neg %2 : f32[64]    @ABackward#0
  return %3
}"""


def test_watch_sees_every_pass():
    seen = []
    pipeline.run(parse_program(TEXT), watch=lambda name, program: seen.append((name, len(program.ops))))
    assert seen == [("input", 4), ("simplify", 4), ("cse", 3), ("partition", 3), ("fuse", 1), ("schedule", 1)]


def test_passes_can_be_skipped():
    names = [pipeline.pass_name(p) for p in pipeline.standard(skip=("fuse", "partition"))]
    assert names == ["simplify", "cse", "schedule"]
    with pytest.raises(ValueError, match="no pass is called 'fold'"):
        pipeline.standard(skip=("fold",))


def test_errors_say_in_which_pass():
    def broken(program: Program) -> Program:
        return Program(program.name, (), program.outputs, program.ops)

    with pytest.raises(VerifyError) as caught:
        pipeline.run(parse_program(TEXT), (cse, broken), verify=verify)
    assert caught.value.__notes__ == ["in pass broken (2 of 2)"]


def test_reports():
    before = parse_program(TEXT)
    after = pipeline.run(before)
    (fused,) = report.fusions(after)
    assert fused == report.Fused(("exp", "mul", "neg"), ("A#0", "ABackward#0"), 512)
    memory = report.memory(before, after)
    assert (memory.before, memory.after) == (512, 256)


@settings(deadline=None)
@given(programs())
def test_schedule_never_needs_more(case):
    program, _ = case
    assert plan_memory(schedule(program)).peak_bytes <= plan_memory(program).peak_bytes


@settings(deadline=None, max_examples=50)
@given(programs())
def test_passes_are_deterministic_and_settle(case):
    program, _ = case
    after = pipeline.run(program, verify=verify)
    assert str(pipeline.run(program)) == str(after)
    for function in pipeline.standard(skip=("partition",)):
        once = function(program)
        assert str(function(once)) == str(once), pipeline.pass_name(function)
