"""Control flow in programs: the executable gives the interpreter's bits, whatever surrounds the op and whoever runs it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.runtime.reference import reference
from tpc.ir.parser import parse_program
from tpc.pipeline import optimized
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret

BRANCHES = """
program @f (%p: bool[], %x: f32[3]) -> (f32[3], f32[3]) {
  %0 = exp %x : f32[3]
  %1, %2 = cond %p, %0, %x : f32[3], f32[3]
    body @true (%a: f32[3], %b: f32[3]) {
      %0 = mul %a, %b : f32[3]
      %1 = sin %0 : f32[3]
      return %1, %a
    }
    body @false (%a: f32[3], %b: f32[3]) {
      return %b, %b
    }
  %3 = add %1, %0 : f32[3]
  return %3, %2
}"""

COUNTDOWN = """
program @f (%n: i64[], %x: f32[2]) -> (i64[], f32[2]) {
  %0, %1 = while_loop %n, %x {carried=2} : i64[], f32[2]
    body @condition (%n: i64[], %x: f32[2]) {
      %0 = constant {value=0, dtype="i64"} : i64[]
      %1 = gt %n, %0 : bool[]
      return %1
    }
    body @body (%n: i64[], %x: f32[2]) {
      %0 = constant {value=1, dtype="i64"} : i64[]
      %1 = sub %n, %0 : i64[]
      %2 = add %x, %x : f32[2]
      return %1, %2
    }
  return %0, %1
}"""

NESTED = """
program @f (%c: f32[2], %xs: f32[LENGTH,2], %n: i64[]) -> (f32[2], f32[LENGTH,2]) {
  %0, %1 = scan %c, %xs, %n {carried=1, scanned=1, length=LENGTH, reverse=REVERSE} : f32[2], f32[LENGTH,2]
    body @step (%c: f32[2], %x: f32[2], %n: i64[]) {
      %0 = constant {value=2, dtype="i64"} : i64[]
      %1 = lt %n, %0 : bool[]
      %2 = cond %1, %c, %x : f32[2]
        body @true (%c: f32[2], %x: f32[2]) {
          %0 = add %c, %x : f32[2]
          return %0
        }
        body @false (%c: f32[2], %x: f32[2]) {
          %0 = scan %c {carried=1, scanned=0, length=3, reverse=false} : f32[2]
            body @again (%c: f32[2]) {
              %0 = sin %c : f32[2]
              return %0
            }
          %1 = mul %0, %x : f32[2]
          return %1
        }
      return %2, %c
    }
  return %0, %1
}"""


def runs(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results, after a check that every way to run the program gives these bits, twice, and leaves the inputs alone."""
    program = parse_program(text)
    given = [np.array(a) for a in arrays]
    want = reference(program, given)
    for ready in (program, optimized(program)):
        for threads in (1, 2):
            run = Executable(ready, threads=threads).run
            for _ in range(2):
                got = run(given)
                assert [a.tobytes() for a in got] == [a.tobytes() for a in want]
                assert not any(np.shares_memory(a, b) for a in got for b in given)
    assert [a.tobytes() for a in interpret(program, given)] == [a.tobytes() for a in want]
    assert all(np.array_equal(a, b) for a, b in zip(given, arrays, strict=True))
    return want


@pytest.mark.parametrize("holds", [True, False])
def test_cond_runs_one_branch(holds):
    x = np.float32([0.5, -1.0, 2.0])
    y, kept = runs(BRANCHES, np.array(holds), x)
    e = np.exp(x)
    np.testing.assert_allclose(y, np.sin(e * x) + e if holds else x + e, rtol=1e-6)
    np.testing.assert_allclose(kept, e if holds else x, rtol=1e-6)


@pytest.mark.parametrize("n", [-1, 0, 1, 5])
def test_while_loop_runs_until_the_condition_fails(n):
    left, x = runs(COUNTDOWN, np.array(n), np.float32([1.0, 3.0]))
    assert left == min(n, 0)
    assert x.tolist() == [2.0 ** max(n, 0), 3 * 2.0 ** max(n, 0)]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_nested_control_flow(length, reverse, n):
    xs = np.arange(2 * length, dtype=np.float32).reshape(length, 2) + 1
    text = NESTED.replace("LENGTH", str(length)).replace("REVERSE", str(reverse).lower())
    last, before = runs(text, np.float32([0.5, 0.25]), xs, np.array(n))
    c, seen = np.float32([0.5, 0.25]), np.zeros((length, 2), np.float32)
    for i in range(length)[::-1] if reverse else range(length):
        seen[i] = c
        c = c + xs[i] if n < 2 else np.sin(np.sin(np.sin(c))) * xs[i]
    np.testing.assert_allclose(last, c, rtol=1e-6)
    np.testing.assert_allclose(before, seen, rtol=1e-6)


def test_a_loop_that_hands_its_state_round():
    """Results of one iteration are operands of the next: none may be written over before it was read."""
    text = """
    program @f (%n: i64[], %a: f32[2], %b: f32[2]) -> (i64[], f32[2], f32[2]) {
      %0, %1, %2 = while_loop %n, %a, %b {carried=3} : i64[], f32[2], f32[2]
        body @condition (%n: i64[], %a: f32[2], %b: f32[2]) {
          %0 = constant {value=0, dtype="i64"} : i64[]
          %1 = gt %n, %0 : bool[]
          return %1
        }
        body @body (%n: i64[], %a: f32[2], %b: f32[2]) {
          %0 = constant {value=1, dtype="i64"} : i64[]
          %1 = sub %n, %0 : i64[]
          %2 = add %a, %b : f32[2]
          return %1, %b, %2
        }
      return %0, %1, %2
    }"""
    _, a, b = runs(text, np.array(10), np.float32([0, 1]), np.float32([1, 1]))
    assert (a.tolist(), b.tolist()) == ([55.0, 89.0], [89.0, 144.0])


def test_threads_share_one_executable():
    run = Executable(parse_program(COUNTDOWN), threads=2).run
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda n: run([np.array(n), np.ones(2, np.float32)]), list(range(20)) * 20)
        for n, (left, x) in zip(list(range(20)) * 20, results, strict=True):
            assert (left, x.tolist()) == (0, [2.0**n] * 2)


def test_what_a_body_raises_reaches_the_caller_with_the_ops():
    text = """
    program @f (%p: bool[], %x: i64[2]) -> (i64[2]) {
      %0 = cond %p, %x : i64[2]
        body @true (%x: i64[2]) {
          %0 = constant {value=0, dtype="i64"} : i64[]
          %1 = floor_divide %x, %0 : i64[2]
          return %1
        }
        body @false (%x: i64[2]) {
          return %x
        }
      return %0
    }"""
    program = parse_program(text)
    for run in (Executable(program, threads=1).run, lambda arrays: interpret(program, arrays)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError") as caught:
            run([np.array(True), np.array([1, 2])])
        assert ["floor_divide" in note for note in caught.value.__notes__] == [True, False]
        assert run([np.array(False), np.array([1, 2])])[0].tolist() == [1, 2]
