"""Random programs: native code against the interpreter.

Arithmetic has to agree bit for bit. Functions such as exp differ in the last places, and so do sums, whose order is the backend's; behind
a step such as floor that may become a difference of any size, so programs that have both are only run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.ir.programs import programs
from tests.runtime.test_executable_random import outcome
from tpc.ir.printer import print_program
from tpc.ir.program import Program
from tpc.passes import pipeline
from tpc.passes.lifetime import lifetime
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret
from tpc.runtime.native.jit import is_available
from tpc.runtime.native.math.functions import FUNCTIONS

pytestmark = pytest.mark.skipif(not is_available(), reason="needs llvmlite")
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], max_examples=300)

INEXACT = {*FUNCTIONS, "sum", "prod", "mean", "var", "std", "softmax", "log_softmax", "logsumexp", "matmul"}
SMOOTH = {
    *INEXACT, "add", "sub", "mul", "neg", "square", "copy", "constant", "abs", "relu", "maximum", "minimum",
    "clamp", "clamp_min", "clamp_max",
    "reshape", "permute", "expand", "slice", "cat", "pad", "amax", "amin", "sin", "cos", "flip",
}  # fmt: skip


GUARD = 64
"""Bytes before and behind an array that nobody may write to."""


@contextmanager
def guarded() -> Iterator[None]:
    """Fails where something writes beside the arrays that NumPy hands out meanwhile."""
    empty, watched = np.empty, []

    def with_guards(shape: Any, dtype: Any = float, order: str = "C") -> np.ndarray:
        shape, kind = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape), np.dtype(dtype)
        size = prod(shape) * kind.itemsize
        memory = empty(size + 2 * GUARD, np.uint8)
        memory[:] = 0xAB
        watched.append((memory, size))
        return memory[GUARD : GUARD + size].view(kind).reshape(shape)

    with mock.patch.object(np, "empty", with_guards):
        yield
    for memory, size in watched:
        assert (memory[:GUARD] == 0xAB).all() and (memory[GUARD + size :] == 0xAB).all(), "written beside an array"


def names(program: Program) -> set[str]:
    return {inner.name for op in program.ops for inner in (op.body.ops if op.body is not None else (op,))}


def assert_agrees(program: Program, want, have, exact: bool) -> None:
    for w, h in zip(want, have, strict=True):
        assert w.dtype == h.dtype and w.shape == h.shape
        if exact or w.dtype.kind not in "fc":
            assert np.array_equal(w, h, equal_nan=w.dtype.kind in "fc"), print_program(program)
        else:
            scale = np.abs(w[np.isfinite(w)]).max(initial=1)
            np.testing.assert_allclose(
                h, w, rtol=1e-4 if w.dtype != np.float64 else 1e-9, atol=1e-4 * scale, err_msg=print_program(program)
            )


@relaxed
@given(programs())
def test_native_code_computes_what_the_interpreter_computes(case):
    program, arrays = case
    wanted, failed = outcome(lambda a: interpret(program, a), arrays)
    found = names(program)
    for form in (program, pipeline.run(program, pipeline.standard(interpret))):
        with guarded():
            executable = Executable(lifetime(form), native=True, threads=2)
            for _ in range(2):
                given_arrays = [np.empty(a.shape, a.dtype) for a in arrays]
                for new, old in zip(given_arrays, arrays, strict=True):
                    new[...] = old
                have, error = outcome(executable.run, given_arrays)
        assert error == failed
        for old, new in zip(arrays, given_arrays, strict=True):
            assert np.array_equal(old, new, equal_nan=old.dtype.kind in "fc")
        if wanted is not None and (found <= SMOOTH or not found & INEXACT):
            assert_agrees(form, wanted, have, not found & INEXACT)
