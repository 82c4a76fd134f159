"""Random programs: the interpreter against every pass and the executable."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ir.programs import programs
from tests.runtime.reference import reference
from tpc.ir.program import Program
from tpc.ir.verify import verify
from tpc.passes import pipeline
from tpc.passes.lifetime import lifetime
from tpc.runtime import blocks
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def outcome(run, arrays):
    """Outputs, or the class of the error."""
    try:
        return run(arrays), None
    except Exception as error:
        return None, type(error)


def assert_same(program: Program, arrays: list[np.ndarray], wanted, failed) -> None:
    executable = Executable(lifetime(program), threads=2)
    for _ in range(2):
        given_arrays = [a.copy() for a in arrays]
        have, error = outcome(executable.run, given_arrays)
        assert error == failed
        for old, new in zip(arrays, given_arrays, strict=True):
            assert np.array_equal(old, new, equal_nan=old.dtype.kind in "fc")
        if wanted is None:
            continue
        for w, h in zip(wanted, have, strict=True):
            assert w.dtype == h.dtype and w.shape == h.shape and h.flags.c_contiguous
            assert np.array_equal(w, h, equal_nan=w.dtype.kind in "fc")
            assert not any(np.shares_memory(h, a) for a in given_arrays)


@relaxed
@given(programs())
def test_executable_equals_interpreter(case):
    program, arrays = case
    assert_same(program, arrays, *outcome(lambda a: reference(program, a), arrays))


@relaxed
@given(programs(), st.sampled_from([0.0, 0.5, 1.0]))
def test_passes_keep_values(case, memory_budget):
    program, arrays = case
    wanted = outcome(lambda a: reference(program, a), arrays)
    for name in ("simplify", "cse", "partition", "fuse", "schedule"):
        only = [p.__name__ for p in pipeline.PASSES if p.__name__ != name]
        after = pipeline.run(program, pipeline.standard(interpret, memory_budget, skip=only), verify=verify)
        assert_same(after, arrays, *wanted)
    after = pipeline.run(program, pipeline.standard(interpret, memory_budget), verify=verify)
    assert_same(after, arrays, *wanted)


@relaxed
@given(programs(), st.sampled_from([16, 64, 256]))
def test_blocks_keep_values(case, cache_bytes):
    """Fusions of every size are cut into blocks, which two threads share."""
    program, arrays = case
    wanted = outcome(lambda a: reference(program, a), arrays)
    with mock.patch.multiple(blocks, CACHE_BYTES=cache_bytes, SHARED_FROM=1, LEAST_ELEMENTS=1):
        assert_same(pipeline.run(program, pipeline.standard(interpret), verify=verify), arrays, *wanted)


@relaxed
@given(programs())
def test_donated_inputs(case):
    """Inputs that are written may be overwritten, others not; a run that fails changes nothing."""
    program, arrays = case
    wanted, failed = outcome(lambda a: reference(program, a), arrays)
    program = pipeline.run(program, pipeline.standard(interpret), verify=verify)
    donated = frozenset(w for w in program.writes if w is not None)
    given_arrays = [a.copy() for a in arrays]
    have, error = outcome(Executable(lifetime(program, donated)).run, given_arrays)
    assert error == failed
    for i, (old, new) in enumerate(zip(arrays, given_arrays, strict=True)):
        assert (i in donated and failed is None) or np.array_equal(old, new, equal_nan=old.dtype.kind in "fc")
    for w, h in zip(wanted or (), have or (), strict=True):
        assert np.array_equal(w, h, equal_nan=w.dtype.kind in "fc")
