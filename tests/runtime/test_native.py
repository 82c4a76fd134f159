"""What native code computes, against NumPy."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tpc.ir.parser import parse_program
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret
from tpc.runtime.native.jit import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="needs llvmlite")


def run(text, *arrays, threads=2):
    """What native code and the interpreter make of a program, and the lines that NumPy still runs."""
    program = parse_program(text)
    executable = Executable(program, native=True, threads=threads)
    lines = [line for line in executable.code.lines if not line.startswith("return") and "is not None: failed" not in line]
    return executable.run(arrays), interpret(program, arrays), lines


def calls(lines):
    """Those of the lines that run a kernel of NumPy."""
    return [line for line in lines if line.startswith("k") and "(" in line.split()[0]]


def agree(got, want, rtol=2e-6):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1, np.abs(b).max(initial=0)))


def numbers(*shape, dtype="f4", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (1, 7, 5), (8, 16, 16), (16, 8, 16), (7, 3, 33), (13, 31, 100), (64, 2, 9), (3, 64, 70), (33, 17, 1)]
)
@pytest.mark.parametrize("transposed", [(), (0,), (1,), (0, 1)])
def test_small_products(dtype, m, k, n, transposed):
    kind = {"f32": "f4", "f64": "f8"}[dtype]
    wanted = [(m, k), (k, n)]
    given = [s[::-1] if i in transposed else s for i, s in enumerate(wanted)]
    views = [f"%t{i} = permute %i{i} {{dims=[1,0]}} : {dtype}[{wanted[i][0]},{wanted[i][1]}]\n" for i in transposed]
    names = [f"%t{i}" if i in transposed else f"%i{i}" for i in (0, 1)]
    inputs = ", ".join(f"%i{i}: {dtype}[{a},{b}]" for i, (a, b) in enumerate(given))
    product = f"%y = matmul {names[0]}, {names[1]} : {dtype}[{m},{n}]\n"
    arrays = [numbers(*s, dtype=kind, seed=i) for i, s in enumerate(given)]
    got, want, lines = run(f"program @p ({inputs}) -> ({dtype}[{m},{n}]) {{\n{''.join(views)}{product}return %y\n}}", *arrays)
    assert not calls(lines)
    agree(got, want, 3e-6 if dtype == "f32" else 1e-14)


@pytest.mark.parametrize("batch", ["8,3", "24"])
def test_batches_of_products(batch):
    text = f"program @p (%x: f32[{batch},5,7], %w: f32[7,4]) -> (f32[{batch},5,4]) {{\n%y = matmul %x, %w : f32[{batch},5,4]\nreturn %y\n}}"
    got, want, lines = run(text, numbers(*map(int, batch.split(",")), 5, 7), numbers(7, 4, seed=1))
    assert not calls(lines)
    agree(got, want)


COLUMNS = """
program @p (%x: f32[{shape}]) -> (f32[{result}]) {{
  %y = {op} %x {{dims=[{dims}], keepdim={keep}}} : f32[{result}]
  return %y
}}"""


@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize(
    ("shape", "dims", "kept", "lost"),
    [("8,16", "0", "1,16", "16"), ("5,6,70", "0,1", "1,1,70", "70"), ("5,6,7", "1", "5,1,7", "5,7"), ("3,300", "0", "1,300", "300")],
)
def test_sums_down_columns(op, shape, dims, kept, lost):
    for keep, result in (("true", kept), ("false", lost)):
        text = COLUMNS.format(shape=shape, op=op, dims=dims, keep=keep, result=result)
        got, want, lines = run(text, numbers(*map(int, shape.split(","))))
        assert not calls(lines)
        agree(got, want)


def test_a_number_that_is_only_copied_is_written():
    text = 'program @p (%x: f32[]) -> (f32[]) {\n%y = cast %x {dtype="f32"} : f32[]\nreturn %y\n}'
    got, want, lines = run(text, np.array(-3.5, "f4"))
    assert not calls(lines)
    assert got == want


def test_a_body_of_two_shapes_that_have_nothing_to_do_with_each_other():
    text = """program @p (%x: f32[9,1], %y: f32[3,1,1]) -> (f32[3,1,1], f32[9,1]) {
      %0, %1 = fusion %x, %y : f32[3,1,1], f32[9,1]
        body @fused (%a: f32[9,1], %b: f32[3,1,1]) {
          %0 = exp %a : f32[9,1]
          %1 = neg %b : f32[3,1,1]
          return %1, %0
        }
      return %0, %1
    }"""
    got, want, _ = run(text, numbers(9, 1), numbers(3, 1, 1))
    agree(got, want)


EXP = "program @p (%x: f32[{n}]) -> (f32[{n}]) {{\n%0 = exp %x : f32[{n}]\n%1 = add %0, %x : f32[{n}]\nreturn %1\n}}"


def test_code_on_disk_is_used_again_and_made_anew_where_it_is_damaged(tmp_path):
    program, x = parse_program(EXP.format(n=1237)), numbers(1237)
    wanted = Executable(program, native=True, threads=1, folder=tmp_path).run([x])[0]
    kept = sorted(tmp_path.iterdir())
    assert kept
    script = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from tpc.ir.parser import parse_program; from tpc.runtime.executable import Executable\n"
        "run = Executable(parse_program(sys.argv[2]), native=True, threads=1, folder=Path(sys.argv[1])).run\n"
        "np.save(sys.argv[3], run([np.load(sys.argv[4])])[0])"
    )
    given, made = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(given, x)
    for damage in (None, lambda b: b[:-7], lambda b: b[: len(b) // 2] + b"\0" * 8 + b[len(b) // 2 + 8 :], lambda b: b""):
        for path in kept:
            if damage is not None:
                path.write_bytes(damage(path.read_bytes()))
        subprocess.run([sys.executable, "-c", script, tmp_path, EXP.format(n=1237), made, given], check=True)
        assert np.array_equal(np.load(made), wanted)


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    got = Executable(parse_program(EXP.format(n=1239)), native=True, folder=blocked / "native").run([numbers(1239)])
    agree(got, [np.exp(numbers(1239)) + numbers(1239)])


def test_threads_share_an_executable():
    executable = Executable(parse_program(EXP.format(n=300_000)), native=True, threads=2)
    inputs = [numbers(300_000, seed=i) for i in range(8)]
    wanted = [executable.run([x])[0].copy() for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for a, b in zip(pool.map(lambda x: executable.run([x])[0], inputs), wanted, strict=True):
                assert np.array_equal(a, b)


def test_arrays_of_other_classes_are_taken_by_their_memory(tmp_path):
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(50,))
    x[:] = numbers(50)
    agree(Executable(parse_program(EXP.format(n=50)), native=True).run([x]), [np.exp(x) + x])


def test_nan_goes_through_everything():
    text = """program @p (%x: f32[3,4]) -> (f32[3], f32[3], f32[3,4], f32[3,4]) {
      %0 = amax %x {dims=[1], keepdim=false} : f32[3]
      %1 = sum %x {dims=[1], keepdim=false} : f32[3]
      %2 = relu %x : f32[3,4]
      %3 = softmax %x {dim=1} : f32[3,4]
      return %0, %1, %2, %3
    }"""
    x = numbers(3, 4)
    x[1, 2] = np.nan
    got, want, _ = run(text, x)
    for a, b in zip(got, want, strict=True):
        assert np.array_equal(np.isnan(a), np.isnan(b))
