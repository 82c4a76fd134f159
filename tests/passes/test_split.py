"""Joint programs taken apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.programs import programs
from tests.passes.text_cases import inputs_of
from tests.runtime.reference import reference
from tpc.ir.parser import parse_program
from tpc.ir.program import Program
from tpc.ir.verify import verify
from tpc.passes.split import Split, split

JOINT = """
program @f (%x: f32[8,8], %w: f32[8,8], %dy: f32[8,8]) -> (f32[8,8], f32[8,8], f32[8,8]) {
  %0 = matmul %x, %w : f32[8,8]    @Gelu#0
  %1 = tanh %0 : f32[8,8]    @Gelu#0
  %2 = mul %0, %1 : f32[8,8]    @Gelu#0
  %3 = square %1 : f32[8,8]    @GeluBackward#0
  %4 = mul %3, %dy : f32[8,8]    @GeluBackward#0
  %5 = permute %w {dims=[1,0]} : f32[8,8]    @GeluBackward#0
  %6 = matmul %4, %5 : f32[8,8]    @GeluBackward#0
  %7 = permute %x {dims=[1,0]} : f32[8,8]    @GeluBackward#0
  %8 = matmul %7, %4 : f32[8,8]    @GeluBackward#0
  return %2, %6, %8
}"""


def run_split(halves: Split, joint: Program, arrays: list[np.ndarray], count: int) -> list[np.ndarray]:
    """Forward, then reverse on what it saved."""
    verify(halves.forward)
    verify(halves.reverse)
    outs = reference(halves.forward, [arrays[i] for i in halves.forward_inputs])
    given_arrays = [outs[n] if kind == "forward" else arrays[n] for kind, n in halves.reverse_inputs]
    return outs[:count] + reference(halves.reverse, given_arrays)


@pytest.mark.parametrize("budget", [1.0, 0.5, 0.0])
def test_halves_compute_what_the_whole_does(budget):
    joint = parse_program(JOINT)
    arrays = inputs_of(joint)
    halves = split(joint, 1, {2}, budget)
    for want, have in zip(reference(joint, arrays), run_split(halves, joint, arrays, 1), strict=True):
        assert np.array_equal(want, have)


def test_what_is_saved():
    joint = parse_program(JOINT)
    full = split(joint, 1, {2})
    assert [(s.made_by, s.decision) for s in full.saved] == [
        ("square", "kept"), ("permute", "recomputed"), ("w", "input"), ("permute", "recomputed"), ("x", "input"),
    ]  # fmt: skip
    least = split(joint, 1, {2}, 0.0)
    assert {s.made_by for s in least.saved if s.decision == "kept"} == set()
    assert len(least.forward.outputs) == 1
    assert [least.reverse.inputs[n].name for n in range(3)] == ["x", "w", "dy"]


def test_an_output_is_not_saved_twice():
    text = """
    program @f (%x: f32[8], %dy: f32[8]) -> (f32[8], f32[8]) {
      %0 = exp %x : f32[8]
      %1 = mul %0, %dy : f32[8]
      return %0, %1
    }"""
    halves = split(parse_program(text), 1, {1})
    assert len(halves.forward.outputs) == 1
    assert halves.reverse_inputs == (("forward", 0), ("input", 1))
    assert [s.decision for s in halves.saved] == ["output"]


def test_writes_follow_their_inputs():
    text = """
    program @f (%dy: f32[8], %x: f32[8], %n: i64[]) -> (f32[8], i64[] into %n, f32[8]) {
      %0 = exp %x : f32[8]
      %1 = constant {value=1, dtype="i64"} : i64[]
      %2 = add %n, %1 : i64[]
      %3 = mul %0, %dy : f32[8]
      return %0, %2, %3
    }"""
    halves = split(parse_program(text), 2, {0})
    assert halves.forward.writes == (None, 1)
    assert halves.forward_inputs == (1, 2)


def test_wrong_arguments():
    joint = parse_program(JOINT)
    with pytest.raises(ValueError, match="num_forward_outputs must be between 0 and 3, not 4"):
        split(joint, 4, {2})
    with pytest.raises(ValueError, match="cotangent_inputs names input 5 of a program that has 3"):
        split(joint, 1, {5})
    with pytest.raises(ValueError, match="an output of forward depends on a cotangent"):
        split(joint, 2, {2})


@settings(deadline=None, max_examples=60)
@given(programs(), st.sampled_from([0.0, 0.3, 1.0]), st.data())
def test_random_programs(case, budget, data):
    program, arrays = case
    cotangents = data.draw(st.sets(st.integers(0, len(program.inputs) - 1), max_size=2))
    late: set = {program.inputs[i] for i in cotangents}
    for op in program.ops:
        if not late.isdisjoint(op.operands):
            late.update(op.results)
    outputs = sorted(program.outputs, key=late.__contains__)
    joint = Program(program.name, program.inputs, outputs, program.ops)
    count = sum(v not in late for v in outputs)
    halves = split(joint, count, cotangents, budget)
    for want, have in zip(reference(joint, arrays), run_split(halves, joint, arrays, count), strict=True):
        assert np.array_equal(want, have, equal_nan=want.dtype.kind in "fc")


def test_an_input_that_forward_overwrites_is_saved():
    text = """
    program @f (%x: f32[8], %dy: f32[8]) -> (f32[8] into %x, f32[8]) {
      %0 = exp %x : f32[8]
      %1 = mul %x, %dy : f32[8]
      return %0, %1
    }"""
    joint = parse_program(text)
    halves = split(joint, 1, {1})
    assert halves.reverse_inputs == (("forward", 1), ("input", 1))
    assert [(s.made_by, s.decision) for s in halves.saved] == [("x", "kept")]
    arrays = inputs_of(joint)
    run_split(halves, joint, arrays, 1)
