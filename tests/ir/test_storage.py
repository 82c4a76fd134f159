"""Memory planning: strides of views, packing, and that nothing alive is ever overwritten."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.programs import programs
from tpc.ir.layout import contiguous, is_contiguous, reshaped
from tpc.ir.packing import ALIGNMENT, live_peak, pack
from tpc.ir.plan import plan_memory
from tpc.ir.storage import assign
from tpc.ir.uses import last_uses
from tpc.runtime.kernels.registry import bind


@settings(deadline=None)
@given(programs())
def test_strides_are_those_of_numpy(case):
    program, _ = case
    storages = assign(program)
    arrays = {v: np.zeros(v.type.shape, v.type.numpy_dtype) for v in program.inputs}
    for op in program.ops:
        if not op.defn.view:
            arrays.update((v, np.zeros(v.type.shape, v.type.numpy_dtype)) for v in op.results)
            continue
        source = arrays[op.operands[0]]
        seen = bind(op)(source)
        is_view = storages.root[op.result] is not op.result
        if seen.size:
            assert np.shares_memory(seen, source) == is_view
        if seen.size and is_view:
            for size, have, want in zip(seen.shape, seen.strides, storages.strides[op.result], strict=True):
                assert size == 1 or have == want * seen.itemsize
        arrays[op.result] = seen if is_view else np.zeros(seen.shape, seen.dtype)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_reshaped_follows_numpy(shape, data):
    axes = data.draw(st.permutations(range(len(shape))))
    array = np.zeros(shape, np.int8).transpose(axes)
    cut = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), max_size=3))
    rest = array.size // max(int(np.prod(cut)), 1)
    new = (*cut, rest) if int(np.prod(cut)) * rest == array.size else (array.size,)
    strides = reshaped(array.shape, array.strides, new)
    seen = array.reshape(new)
    assert (strides is not None) == np.shares_memory(seen, array)
    if strides is not None:
        assert all(size == 1 or have == want for size, have, want in zip(new, seen.strides, strides, strict=True))


def test_contiguous():
    assert contiguous((2, 3, 4)) == (12, 4, 1)
    assert is_contiguous((2, 1, 4), (4, 99, 1))
    assert not is_contiguous((2, 3), (1, 2))
    assert is_contiguous((0, 3), (5, 5))


@settings(deadline=None)
@given(programs(max_ops=20))
def test_nothing_alive_is_overwritten(case):
    """Replays a plan: at each op, what is read must be what was last written to its memory."""
    program, _ = case
    donated = frozenset(w for w in program.writes if w is not None)
    plan = plan_memory(program, donated)
    storages = assign(program, donated)
    content = {storages.of[v]: v for v in program.inputs}
    for op in program.ops:
        for value in op.operands:
            assert content[storages.of[value]] is storages.root[value]
        for value in op.results:
            if storages.root[value] is value:
                content[storages.of[value]] = value
    for j, value in enumerate(program.outputs):
        assert content[storages.of[value]] is storages.root[value], j
    assert plan.donated <= donated


@settings(deadline=None)
@given(programs(max_ops=20))
def test_packing(case):
    program, _ = case
    storages = [s for s in assign(program).all if s.home == "temporary"]
    offsets, size = pack(storages)
    assert live_peak(storages) <= size <= sum(-(-s.nbytes // ALIGNMENT) * ALIGNMENT for s in storages)
    for n, a in enumerate(storages):
        assert offsets[a] % ALIGNMENT == 0 and offsets[a] + a.nbytes <= size
        for b in storages[:n]:
            if a.start <= b.end and b.start <= a.end and a.nbytes and b.nbytes:
                assert offsets[a] + a.nbytes <= offsets[b] or offsets[b] + b.nbytes <= offsets[a]


@settings(deadline=None)
@given(programs())
def test_storages_cover_lifetimes(case):
    program, _ = case
    storages, last = assign(program), last_uses(program)
    number = {op: n for n, op in enumerate(program.ops)}
    for value, op in last.items():
        if value.op is not None and storages.of[value].home == "temporary":
            assert storages.of[value].end >= (len(program.ops) if op is None else number[op])
