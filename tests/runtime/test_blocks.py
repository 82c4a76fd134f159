"""Blocks: every elementwise kernel gives the same bits for a part of its operands, at any length."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import tpc.ir.ops  # noqa: F401
from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import AttrValue, OpDef, all_ops
from tpc.ir.program import Op, Value
from tpc.ir.signature import result_types
from tpc.ir.types import TensorType, tensor_type
from tpc.runtime.kernels.registry import bind

SHAPE = (67,)
DTYPES = ("bool", "u8", "i32", "i64", "f16", "f32", "f64", "c64")


def variants(defn: OpDef) -> Iterator[Op]:
    """The op on every dtype that it takes."""
    for dtypes in product(DTYPES, ("bool", None)) if len(defn.operands) == 3 else ((d, None) for d in DTYPES):
        dtype, first = dtypes
        types = [tensor_type(dtype, SHAPE)] * len(defn.operands)
        if first is not None:
            types[0] = tensor_type(first, SHAPE)
        attrs: dict[str, AttrValue] = {"dtype": "f32"} if "dtype" in defn.attrs else {}
        try:
            results = result_types(defn, types, attrs)
        except TypeRuleError:
            continue
        yield Op(defn, [Value(None, n, t) for n, t in enumerate(types)], attrs, results)


def array(type: TensorType, rng: np.random.Generator) -> np.ndarray:
    dtype = type.numpy_dtype
    if dtype.kind in "bui":
        return rng.integers(1, 2 if dtype.kind == "b" else 6, type.shape).astype(dtype)
    odd = rng.choice([0.0, -0.0, np.nan, np.inf, 1.0], type.shape)
    return np.where(rng.random(type.shape) < 0.1, odd, rng.standard_normal(type.shape)).astype(dtype)


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    same = np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    return same and (a.dtype.kind != "f" or np.array_equal(np.signbit(a)[a == 0], np.signbit(b)[b == 0]))


@pytest.mark.parametrize("defn", [d for d in all_ops() if d.elementwise], ids=lambda d: d.name)
def test_parts_are_as_the_whole(defn: OpDef) -> None:
    rng = np.random.default_rng(5)
    for op in variants(defn):
        run, operands = bind(op), [array(v.type, rng) for v in op.operands]
        with np.errstate(all="ignore"):
            wanted = np.asarray(run(*operands))
            pieces = [np.asarray(run(*[a[here] for a in operands])) for here in (slice(0, 16), slice(16, 17), slice(17, 67))]
        assert equal(wanted, np.concatenate(pieces)), op.types


@pytest.mark.parametrize("shape, dims", [((37, 1003), (1,)), ((37, 5, 70), (1, 2)), ((6, 7, 300), (2,)), ((37, 1), (1,)), ((50, 3), (1,))])
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("defn", [d for d in all_ops() if d.reduction], ids=lambda d: d.name)
def test_rows_are_reduced_as_the_whole_is(defn: OpDef, keepdim: bool, shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for dtype in DTYPES:
        attrs: dict[str, AttrValue] = {"dims": dims, "keepdim": keepdim, "correction": 1}
        attrs = {name: attrs[name] for name in defn.attrs}
        try:
            whole, five, one = (bind(_reduction(defn, attrs, tensor_type(dtype, (rows, *shape[1:])))) for rows in (shape[0], 5, 1))
        except TypeRuleError:
            continue
        x = array(tensor_type(dtype, shape), rng)
        with np.errstate(all="ignore"):
            wanted = np.asarray(whole(x))
            assert equal(wanted[:5], np.asarray(five(x[:5]))), dtype
            assert equal(wanted[5:6], np.asarray(one(x[5:6]))), dtype


def _reduction(defn: OpDef, attrs: dict[str, AttrValue], type: TensorType) -> Op:
    return Op(defn, [Value(None, 0, type)], attrs, result_types(defn, [type], attrs))
