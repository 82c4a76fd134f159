"""Calls of Python code on NumPy arrays: what no operator says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, boolean, integer, listed
from tpc.ir.types import MAX_ELEMENTS, NUMPY_DTYPES, TensorType, tensor_type

TOKEN = tensor_type("i64", ())
"""The number of ordered calls so far: operand 0 and the last result of an ordered call."""


class HostFunction(str):
    """The name of a Python function, with the function. Text and JSON hold the name alone."""

    function: Callable[..., Any]

    def __new__(cls, name: str, function: Callable[..., Any]) -> HostFunction:
        made = super().__new__(cls, name)
        made.function = function
        return made


def _host_call(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    dtypes, shapes, mapped = attrs["dtypes"], attrs["shapes"], integer(attrs, "mapped")
    if not isinstance(attrs["function"], str):
        raise TypeRuleError("host_call: function is the name of a host function")
    if not isinstance(dtypes, tuple) or not isinstance(shapes, tuple) or len(dtypes) != len(shapes):
        raise TypeRuleError("host_call: dtypes and shapes have one entry for each result")
    boolean(attrs, "vectorized")
    ordered = boolean(attrs, "ordered")
    if ordered and (not types or types[0] != TOKEN):
        raise TypeRuleError(f"an ordered host_call takes a token {TOKEN} first {listed('host_call', types)}")
    results = [_result(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)]
    sizes = {t.shape[:mapped] for t in (*types[ordered:], *results)}
    if mapped < 0 or len(sizes) > 1 or any(len(s) < mapped for s in sizes):
        raise TypeRuleError(f"host_call: the first {mapped} axes of operands and results have the same sizes {listed('host_call', types)}")
    return (*results, TOKEN) if ordered else tuple(results)


def _result(dtype: Any, shape: Any) -> TensorType:
    if dtype not in NUMPY_DTYPES or not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise TypeRuleError(f"host_call: {dtype!r} and {shape!r} are no element type and shape")
    type_ = tensor_type(dtype, shape)
    if type_.numel > MAX_ELEMENTS:
        raise TypeRuleError(f"host_call: no array has the shape {list(shape)}")
    return type_


host_call = define(
    OpDef(
        "host_call",
        ("*inputs",),
        _host_call,
        ("function", "dtypes", "shapes", "vectorized", "mapped", "ordered"),
        checks=True,
        foldable=False,
        cost=64.0,
        doc="Calls the host function of that name; with `mapped`, once for each index of that many leading axes.",
    )
)
