"""The executable: who owns memory, threads, errors, blocks."""

from __future__ import annotations

import threading
from unittest import mock

import numpy as np
import pytest

from tpc.ir.parser import parse_program
from tpc.passes import pipeline
from tpc.passes.lifetime import lifetime
from tpc.runtime import blocks
from tpc.runtime.arena import RECYCLED_FROM, recycler
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret

STEP = """
program @step (%p: f32[64,512], %g: f32[64,512]) -> (f32[64,512] into %p, f32[]) {
  %0 = constant {value=0.1, dtype="f32"} : f32[]
  %1 = mul %g, %0 : f32[64,512]
  %2 = sub %p, %1 : f32[64,512]
  %3 = square %g : f32[64,512]
  %4 = sum %3 {dims=[0,1], keepdim=false} : f32[]
  return %2, %4
}"""


def executable(text: str, donated=(), fused: bool = True, threads: int = 1) -> Executable:
    program = parse_program(text)
    if fused:
        program = pipeline.run(program, pipeline.standard(interpret))
    return Executable(lifetime(program, donated), threads=threads)


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def test_outputs_belong_to_the_caller():
    run = executable(STEP).run
    p, g = arrays((64, 512), (64, 512))
    first, _ = run([p, g])
    kept = first.copy()
    second, _ = run([p + 1, g])
    assert first is not second
    assert np.array_equal(first, kept)


def test_an_output_without_other_holders_is_used_again():
    run = executable(STEP).run
    inputs = arrays((64, 512), (64, 512))
    addresses = set()
    for _ in range(5):
        out, _ = run(inputs)
        addresses.add(out.ctypes.data)
        del out
    assert len(addresses) == 1


def test_a_view_keeps_an_output():
    run = executable(STEP).run
    p, g = arrays((64, 512), (64, 512))
    view = run([p, g])[0][3:5]
    kept = view.copy()
    for n in range(4):
        run([p + n, g])
    assert np.array_equal(view, kept)


def test_recycler_alternates_between_two_held_arrays():
    take = recycler((RECYCLED_FROM,), np.dtype(np.uint8))
    a = take()
    b = take()
    assert a is not b
    first = a.ctypes.data
    del a
    c = take()
    assert c.ctypes.data == first
    assert c is not b


def test_donated_input_is_overwritten_and_returned():
    p, g = arrays((64, 512), (64, 512))
    wanted = interpret(parse_program(STEP), [p, g])
    out, total = executable(STEP, donated=[0]).run([p, g])
    assert out is p
    assert np.array_equal(out, wanted[0])
    assert np.array_equal(total, wanted[1])


def test_inputs_in_any_memory_order_give_the_same_bits():
    text = """
    program @f (%x: f32[37,41]) -> (f32[41], f32[37], f32[]) {
      %0 = sum %x {dims=[0], keepdim=false} : f32[41]
      %1 = sum %x {dims=[1], keepdim=false} : f32[37]
      %2 = sum %x {dims=[0,1], keepdim=false} : f32[]
      return %0, %1, %2
    }"""
    (x,) = arrays((37, 41))
    run = executable(text).run
    wide = np.zeros((37, 82), np.float32)
    wide[:, ::2] = x
    for other in (np.asfortranarray(x), wide[:, ::2]):
        for a, b in zip(run([x]), run([other]), strict=True):
            assert np.array_equal(a, b)


def test_runs_in_many_threads_at_once():
    run = executable(STEP, threads=2).run
    failures = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            p, g = (rng.standard_normal((64, 512), dtype=np.float32) for _ in range(2))
            out, _ = run([p, g])
            if not np.array_equal(out, p - g * np.float32(0.1)):
                failures.append(seed)

    with mock.patch.multiple(blocks, CACHE_BYTES=4096, SHARED_FROM=1, LEAST_ELEMENTS=1):
        run = executable(STEP, threads=2).run
        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not failures


def test_release_gives_memory_back():
    step = executable(STEP)
    inputs = arrays((64, 512), (64, 512))
    before = step.run(inputs)
    step.release()
    for a, b in zip(before, step.run(inputs), strict=True):
        assert np.array_equal(a, b)


FAILING = """
program @f (%x: f32[4], %i: i64[2]) -> (f32[2]) {
  %0 = exp %x : f32[4]
  %1 = index %0, %i {axes=[0]} : f32[2]  loc("model.py":7)
  return %1
}"""


def test_errors_name_op_and_line():
    run = executable(FAILING).run
    x = np.ones(4, np.float32)
    with pytest.raises(IndexError) as caught:
        run([x, np.array([0, 9])])
    assert caught.value.__notes__ == ["in %1 = index f32[4], i64[2] at model.py:7"]
    assert run([x, np.array([0, 3])])[0].shape == (2,)


def test_a_failing_run_leaves_donated_inputs_alone():
    text = """
    program @f (%p: f32[4], %i: i64[2]) -> (f32[4] into %p, f32[2]) {
      %0 = exp %p : f32[4]
      %1 = index %0, %i {axes=[0]} : f32[2]
      return %0, %1
    }"""
    p = np.ones(4, np.float32)
    with pytest.raises(IndexError):
        executable(text, donated=[0]).run([p, np.array([0, 9])])
    assert np.array_equal(p, np.ones(4))


def test_no_warnings_and_no_lasting_errstate():
    text = "program @f (%x: f32[3]) -> (f32[3]) {\n %0 = log %x : f32[3]\n return %0 }"
    before = np.geterr()
    (out,) = executable(text).run([np.array([-1.0, 0.0, 1.0], np.float32)])
    assert np.array_equal(out, np.array([np.nan, -np.inf, 0.0], np.float32), equal_nan=True)
    assert np.geterr() == before


def test_generated_source_is_there_to_read():
    assert "def run(arrays):" in executable(FAILING).source


SOFTMAX = """
program @f (%x: f32[300,70]) -> (f32[300,70], f32[300]) {
  %0 = amax %x {dims=[1], keepdim=true} : f32[300,1]
  %1 = sub %x, %0 : f32[300,70]
  %2 = exp %1 : f32[300,70]
  %3 = sum %2 {dims=[1], keepdim=true} : f32[300,1]
  %4 = div %2, %3 : f32[300,70]
  %5 = sum %4 {dims=[1], keepdim=false} : f32[300]
  return %4, %5
}"""

BROADCAST = """
program @f (%x: f32[5,60,70], %row: f32[70], %col: f32[5,60,1], %plane: f32[1,60,70]) -> (f32[5,60,70]) {
  %0 = mul %x, %row : f32[5,60,70]
  %1 = add %0, %col : f32[5,60,70]
  %2 = sub %1, %plane : f32[5,60,70]
  %3 = tanh %2 : f32[5,60,70]
  return %3
}"""

TRANSPOSED = """
program @f (%x: f32[60,70], %y: f32[70,60]) -> (f32[70,60]) {
  %0 = exp %x : f32[60,70]
  %1 = permute %0 {dims=[1,0]} : f32[70,60]
  %2 = mul %1, %y : f32[70,60]
  %3 = neg %2 : f32[70,60]
  return %3
}"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cache_bytes", [512, 5000, 50000])
@pytest.mark.parametrize("text", [STEP, SOFTMAX, BROADCAST, TRANSPOSED], ids=["step", "softmax", "broadcast", "transposed"])
def test_blocks_give_the_same_bits(text, cache_bytes, threads):
    program = parse_program(text)
    inputs = arrays(*[v.type.shape for v in program.inputs])
    with mock.patch.multiple(blocks, CACHE_BYTES=cache_bytes, SHARED_FROM=1, LEAST_ELEMENTS=1):
        step = executable(text, threads=threads)
    assert "f0(" in step.source, "nothing runs in blocks"
    for want, have in zip(interpret(program, inputs), step.run(inputs), strict=True):
        assert np.array_equal(want, have)


def test_an_error_in_a_block_reaches_the_caller():
    text = """
    program @f (%x: i64[4000], %y: i64[4000]) -> (i64[4000]) {
      %0 = mul %x, %x : i64[4000]
      %1 = floor_divide %0, %y : i64[4000]  loc("model.py":3)
      return %1
    }"""
    x, y = np.arange(4000), np.ones(4000, np.int64)
    with mock.patch.multiple(blocks, CACHE_BYTES=4096, SHARED_FROM=1, LEAST_ELEMENTS=1):
        step = executable(text, threads=2)
    assert np.array_equal(step.run([x, y])[0], x * x)
    y[3333] = 0
    with pytest.raises(RuntimeError, match="division") as caught:
        step.run([x, y])
    assert caught.value.__notes__ == ["in floor_divide i64[4000], i64[4000] at model.py:3"]
    y[3333] = 1
    assert np.array_equal(step.run([x, y])[0], x * x)


def test_empty_and_scalar_arrays():
    text = """
    program @f (%x: f32[0,3], %s: f32[]) -> (f32[0,3], f32[3], f32[]) {
      %0 = exp %x : f32[0,3]
      %1 = mul %0, %s : f32[0,3]
      %2 = sum %1 {dims=[0], keepdim=false} : f32[3]
      %3 = exp %s : f32[]
      return %1, %2, %3
    }"""
    a, b, c = executable(text).run([np.empty((0, 3), np.float32), np.array(1.0, np.float32)])
    assert a.shape == (0, 3) and np.array_equal(b, np.zeros(3)) and c.shape == () and type(c) is np.ndarray


def test_a_fusion_may_write_over_what_a_read_only_view_shows():
    """NumPy's broadcast views are read-only; one that shows all of a dying value is overwritten all the same."""
    text = """
    program @f (%x: f32[1]) -> (f32[1,1]) {
      %0 = exp %x : f32[1]
      %1 = broadcast_to %0 {shape=[1,1]} : f32[1,1]
      %2 = fusion %1 : f32[1,1]
        body @fused (%a: f32[1,1]) {
          %0 = neg %a : f32[1,1]
          return %0
        }
      return %2
    }"""
    assert executable(text).run([np.zeros(1, np.float32)])[0].item() == -1.0


@pytest.mark.parametrize("donated", [(), (0,)])
def test_a_large_op_runs_in_blocks_by_itself(donated):
    text = """
    program @f (%x: f32[100,50], %y: f32[100,50]) -> (f32[100,50] into %x, f32[100,50]) {
      %0 = add %x, %y : f32[100,50]
      %1 = exp %0 : f32[100,50]
      return %1, %0
    }"""
    program = parse_program(text)
    inputs = arrays((100, 50), (100, 50))
    wanted = interpret(program, inputs)
    with mock.patch.multiple(blocks, CACHE_BYTES=2048, SHARED_FROM=1, LEAST_ELEMENTS=1):
        step = executable(text, donated, fused=False, threads=2)
    assert step.source.count("f0(") == step.source.count("f1(") == 1
    for want, have in zip(wanted, step.run(inputs), strict=True):
        assert np.array_equal(want, have)
