"""The interpreter: values, ownership of outputs, checks of inputs, errors."""

from __future__ import annotations

import gc
import weakref
from unittest import mock

import numpy as np
import pytest

from tpc.ir.parser import parse_program
from tpc.runtime import interpreter
from tpc.runtime.interpreter import interpret

AFFINE = """
program @affine (%x: f32[2,3], %w: f32[3,4], %b: f32[4]) -> (f32[2,4]) {
  %0 = matmul %x, %w : f32[2,4]
  %1 = add %0, %b : f32[2,4]
  return %1
}"""


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape, dtype=np.float32)


def test_values():
    x, w, b = floats(2, 3), floats(3, 4), floats(4)
    (y,) = interpret(parse_program(AFFINE), [x, w, b])
    assert np.array_equal(y, x @ w + b)
    assert y.dtype == np.float32


def test_a_fusion_runs_its_body():
    program = parse_program("""
    program @f (%x: f32[2,3], %y: f32[3]) -> (f32[2,3], f32[2]) {
      %0, %1 = fusion %x, %y : f32[2,3], f32[2]
        body @fused (%a: f32[2,3], %b: f32[3]) {
          %0 = mul %a, %b : f32[2,3]
          %1 = sum %0 {dims=[1], keepdim=false} : f32[2]
          return %0, %1
        }
      return %0, %1
    }""")
    x, y = floats(2, 3), floats(3)
    product, total = interpret(program, [x, y])
    assert np.array_equal(product, x * y)
    assert np.array_equal(total, (x * y).sum(1))


def test_outputs_are_arrays_of_their_own():
    program = parse_program("""
    program @f (%x: f32[4]) -> (f32[4], f32[2,2], f32[2], f32[4], f32[4], f32[2,2]) {
      %0 = reshape %x {shape=[2,2]} : f32[2,2]
      %1 = slice %x {starts=[1], limits=[3], steps=[1]} : f32[2]
      %2 = exp %x : f32[4]
      %3 = reshape %2 {shape=[2,2]} : f32[2,2]
      return %x, %0, %1, %2, %2, %3
    }""")
    x = floats(4)
    outputs = interpret(program, [x])
    arrays = [x, *outputs]
    assert not any(np.may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    assert all(a.flags.c_contiguous and a.flags.owndata for a in outputs)
    np.testing.assert_array_equal(outputs[2], x[1:3])


def test_inputs_in_any_memory_order_give_the_same_bits():
    x, w, b = floats(2, 3), floats(3, 4), floats(4)
    program = parse_program(AFFINE)
    (plain,) = interpret(program, [x, w, b])
    (strided,) = interpret(program, [np.asfortranarray(x), np.asfortranarray(w), np.repeat(b, 2)[::2]])
    assert plain.tobytes() == strided.tobytes()


def test_values_are_freed_after_their_last_use():
    program = parse_program("""
    program @f (%x: f32[4]) -> (f32[4]) {
      %0 = exp %x : f32[4]
      %1 = neg %0 : f32[4]
      %2 = sin %1 : f32[4]
      return %2
    }""")
    alive, made = [], []
    bind = interpreter.bind

    def watched(op):
        def run(*arrays):
            gc.collect()
            alive.append(sum(r() is not None for r in made))
            result = bind(op)(*arrays)
            made.append(weakref.ref(result))
            return result

        return run

    with mock.patch.object(interpreter, "bind", watched):
        interpret(program, [floats(4)])
    assert alive == [0, 1, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([floats(2, 3)], "@affine takes 3 inputs, but 1 were given"),
        ([floats(2, 3), floats(3, 5), floats(4)], "input w of @affine is f32[3,4], but the array given is f32[3,5]"),
        ([floats(2, 3), floats(3, 4), np.zeros(4)], "input b of @affine is f32[4], but the array given is f64[4]"),
    ],
)
def test_inputs_are_checked(arrays: list[np.ndarray], message: str):
    with pytest.raises(ValueError) as caught:
        interpret(parse_program(AFFINE), arrays)
    assert str(caught.value) == message


def test_errors_keep_their_class_and_say_where():
    program = parse_program("""
    program @f (%x: f32[4], %i: i64[2]) -> (f32[2]) {
      %0 = neg %x : f32[4]
      %1 = index %0, %i {axes=[0]} : f32[2]   loc("model.py":7)
      return %1
    }""")
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4") as caught:
        interpret(program, [floats(4), np.array([0, 4])])
    assert caught.value.__notes__ == ["in %1 = index f32[4], i64[2] at model.py:7"]


def test_no_warnings_leak():
    program = parse_program("""
    program @f (%x: f32[2]) -> (f32[2]) {
      %0 = log %x : f32[2]
      %1 = div %0, %x : f32[2]
      %2 = cast %1 {dtype="f32"} : f32[2]
      return %2
    }""")
    (y,) = interpret(program, [np.float32([0, -1])])
    np.testing.assert_array_equal(y, [-np.inf, np.nan])
