"""Type rules meet attributes and operands that make no sense: every one of them answers with `TypeRuleError`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpc.ir.ops  # noqa: F401
from tests.ir.programs import DTYPES, SHAPES
from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import all_ops
from tpc.ir.program import Program, Value
from tpc.ir.signature import result_types, why_not_type
from tpc.ir.types import MAX_ELEMENTS, TensorType, tensor_type

ATOMS = st.sampled_from(
    [None, True, False, 0, 1, 2, -1, 7, 2**40, 2**63, 0.5, float("nan"), float("inf"), 1j, "", "f32", "i64", "sum", "A"]
)
VALUES = st.recursive(ATOMS, lambda items: st.lists(items, max_size=3).map(tuple), max_leaves=6)
TYPES = st.builds(tensor_type, st.sampled_from(DTYPES), st.sampled_from(SHAPES))


@pytest.mark.parametrize("defn", all_ops(), ids=lambda defn: defn.name)
def test_rules_refuse_nonsense_cleanly(defn):
    count = len(defn.operands)

    @given(st.lists(TYPES, min_size=count, max_size=count), st.lists(VALUES, min_size=len(defn.attrs), max_size=len(defn.attrs)))
    @settings(max_examples=30, deadline=None)
    def check(types, values):
        try:
            results = result_types(defn, types, dict(zip(defn.attrs, values, strict=True)))
        except TypeRuleError:
            return
        assert results
        for result in results:
            assert why_not_type(result) is None
            assert all(type(size) is int for size in result.shape)

    check()


def test_types_that_no_array_has():
    assert why_not_type(tensor_type("f32", (0, 2**40))) is None
    assert "too large" in (why_not_type(tensor_type("f32", (MAX_ELEMENTS, 2))) or "")
    assert "too large" in (why_not_type(tensor_type("f32", (0, MAX_ELEMENTS, 2))) or "")
    assert "at most 64 axes" in (why_not_type(tensor_type("f32", (1,) * 65)) or "")
    assert "no size" in (why_not_type(TensorType("f32", (True,))) or "")


def test_bodies():
    fusion = next(defn for defn in all_ops() if defn.name == "fusion")
    x = Value(None, 0, tensor_type("f32", (3,)), "x")
    body = Program("body", [x], [x, x], [])
    assert result_types(fusion, [x.type], {}, [body]) == (x.type, x.type)
    with pytest.raises(TypeRuleError, match=r"fusion: operands are \(f32\[\]\) but its body takes \(f32\[3\]\)"):
        result_types(fusion, [tensor_type("f32", ())], {}, [body])
