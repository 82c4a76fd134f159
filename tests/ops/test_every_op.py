"""What holds for every operator: samples, a kernel, types as inferred, `out=`, strided operands, no aliasing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as np
import pytest

import tpc.ir.ops
from tests.ops import (  # noqa: F401
    samples_control,
    samples_elementwise,
    samples_fft,
    samples_host,
    samples_indexing,
    samples_linalg,
    samples_nn,
    samples_numbers,
    samples_pairs,
    samples_random,
    samples_reduction,
    samples_shape,
    samples_special,
)
from tests.ops.sample import SAMPLES, Sample
from tpc.ir.compare import same_program
from tpc.ir.opdef import OpDef, all_ops
from tpc.ir.parser import parse_program
from tpc.ir.program import Op, Program
from tpc.ir.types import type_of
from tpc.ir.verify import verify
from tpc.runtime.kernels.registry import bind, has_kernel

OPS = [d for d in all_ops() if d.name != "fusion"]  # runs its body, see tests/runtime/test_interpreter.py

every_op = pytest.mark.parametrize("defn", OPS, ids=lambda d: d.name)


def every_sample(check: Callable[[Sample], None]) -> Callable[[str], None]:
    """One test per operator, which checks all its samples and names the one that fails."""

    @pytest.mark.parametrize("name", SAMPLES)
    @functools.wraps(check, assigned=("__name__", "__doc__", "__module__"))
    def test(name: str):
        for sample in SAMPLES[name]:
            try:
                check(sample)
            except BaseException as error:
                error.add_note(f"on {sample}")
                raise

    del test.__wrapped__  # or pytest would ask for the parameters of `check`
    return test


def family(defn: OpDef) -> str:
    """The name that the files of this operator share: where its type rule is."""
    for name, module in inspect.getmembers(tpc.ir.ops, inspect.ismodule):
        if any(member is defn for member in vars(module).values()):
            return name
    raise AssertionError(f"{defn.name} is not a constant of a module of ir/ops")


@every_op
def test_op_has_samples_and_a_kernel(defn: OpDef):
    assert defn.name in SAMPLES, f"{defn.name}: no samples; add some to tests/ops/samples_{family(defn)}.py"
    assert has_kernel(defn.name), f"{defn.name}: no kernel; add one to runtime/kernels/{family(defn)}.py"


def run(op: Op, arrays: list[np.ndarray], *out) -> tuple[np.ndarray, ...]:
    kernel = bind(op)
    with np.errstate(all="ignore"):
        got = kernel(*arrays, out=out[0]) if out and kernel in (np.maximum, np.minimum) else kernel(*arrays, *out)
    return tuple(map(np.asarray, got)) if len(op.results) > 1 else (np.asarray(got),)


def bits(array: np.ndarray) -> bytes:
    """The contents, with every NaN the same."""
    if array.dtype.kind == "c":
        return bits(array.real.copy()) + bits(array.imag.copy())
    return (np.where(np.isnan(array), array.dtype.type(np.nan), array) if array.dtype.kind == "f" else array).tobytes()


def assert_bits(got: tuple[np.ndarray, ...], want: tuple[np.ndarray, ...]) -> None:
    for a, b in zip(got, want, strict=True):
        assert bits(a) == bits(b), f"{a}\nis not\n{b}"


def empty_results(op: Op) -> list[np.ndarray]:
    return [np.frombuffer(b"\x5a" * max(t.nbytes, 1), np.uint8)[: t.nbytes].copy().view(t.numpy_dtype).reshape(t.shape) for t in op.types]


@every_sample
def test_kernel_gives_the_inferred_types(sample: Sample):
    op = sample.op()
    assert tuple(type_of(r) for r in run(op, sample.arrays())) == op.types


@every_sample
def test_operands_stay_as_they_are(sample: Sample):
    arrays = sample.arrays()
    run(sample.op(), arrays)
    assert_bits(tuple(arrays), tuple(sample.arrays()))


@every_sample
def test_results_never_alias_operands_unless_view(sample: Sample):
    op, arrays = sample.op(), sample.arrays()
    for result in run(op, arrays):
        shared = any(np.may_share_memory(result, a) for a in arrays)
        assert shared == (op.defn.view and result.size > 0)


@every_sample
def test_calls_give_arrays_of_their_own(sample: Sample):
    op, arrays = sample.op(), sample.arrays()
    run_it = bind(op)
    if not op.defn.view:
        with np.errstate(all="ignore"):
            first, second = run_it(*arrays), run_it(*arrays)
        assert not np.may_share_memory(first[0] if len(op.results) > 1 else first, second[0] if len(op.results) > 1 else second)


@every_sample
def test_out_gives_the_same_bits(sample: Sample):
    op, arrays = sample.op(), sample.arrays()
    if op.defn.view:
        return
    out = empty_results(op)
    run(op, arrays, tuple(out) if len(out) > 1 else out[0])
    assert_bits(tuple(out), run(op, arrays))
    if len(out) == 1:
        assert_bits(run(op, arrays, None), run(op, arrays))


def takeable(op: Op) -> list[int]:
    """Operands whose buffer the only result may take over."""
    if len(op.results) > 1 or op.defn.view:
        return []
    if op.defn.elementwise:
        return [i for i, v in enumerate(op.operands) if v.type == op.result.type]
    return [] if op.defn.into is None else [op.defn.into]


@every_sample
def test_out_may_be_an_operand(sample: Sample):
    op = sample.op()
    want = run(op, sample.arrays())
    for i in takeable(op):
        arrays = sample.arrays()
        run(op, arrays, arrays[i])
        assert_bits((arrays[i],), want)


def strided(array: np.ndarray) -> np.ndarray:
    """The same values in every second element of a transposed array."""
    wide = np.zeros((*(2 * n for n in reversed(array.shape)),), array.dtype)
    view = wide[(*(slice(None, None, 2) for _ in array.shape), ...)].transpose()
    view[...] = array
    return view


@every_sample
def test_strided_operands_give_the_same_values(sample: Sample):
    op = sample.op()
    got, want = run(op, [strided(a) for a in sample.arrays()]), run(op, sample.arrays())
    for a, b, type in zip(got, want, op.types, strict=True):
        assert type_of(a) == type
        rtol = {"f16": 2e-3, "f32": 2e-6, "c64": 2e-5}.get(type.dtype, 1e-13)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@every_sample
def test_op_round_trips_as_text(sample: Sample):
    op = sample.op()
    program = Program("f", op.operands, op.results, [op])
    verify(program)
    assert same_program(program, parse_program(str(program))) is None
