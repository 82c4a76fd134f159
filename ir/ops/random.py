"""Random numbers. Operand 0 is a generator's state, u64[2] = (key, counter); the last result is its next one."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, integer, integers, listed
from tpc.ir.types import MAX_ELEMENTS, NUMPY_DTYPES, TensorType, tensor_type

STATE = tensor_type("u64", (2,))


def _result(op: str, types: Types, attrs: Attrs, kinds: str) -> tuple[TensorType, TensorType]:
    if types[0] != STATE:
        raise TypeRuleError(f"a generator's state is {STATE} {listed(op, types)}")
    dtype, shape = attrs["dtype"], integers(attrs, "shape")
    if not isinstance(dtype, str) or dtype not in NUMPY_DTYPES or dtype[0] not in kinds:
        raise TypeRuleError(f'"{op}" not implemented for {dtype}')
    type = tensor_type(dtype, shape)
    if any(n < 0 for n in shape) or type.numel > MAX_ELEMENTS:
        raise TypeRuleError(f"{op}: no array has the shape {list(shape)}")
    return type, STATE


def _uniform(types: Types, attrs: Attrs) -> tuple[TensorType, TensorType]:
    return _result("rand", types, attrs, "f")


def _normal(types: Types, attrs: Attrs) -> tuple[TensorType, TensorType]:
    return _result("randn", types, attrs, "fc")


def _randint(types: Types, attrs: Attrs) -> tuple[TensorType, TensorType]:
    low, high = integer(attrs, "low"), integer(attrs, "high")
    if low >= high:
        raise TypeRuleError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high} (randint)")
    return _result("randint", types, attrs, "buif")


def _randperm(types: Types, attrs: Attrs) -> tuple[TensorType, TensorType]:
    n = integer(attrs, "n")
    if n < 0:
        raise TypeRuleError(f"n must be non-negative, got {n} (randperm)")
    return _result("randperm", types, {"dtype": "i64", "shape": (n,)}, "i")


rand = define(OpDef("rand", ("state",), _uniform, ("shape", "dtype"), random=True, foldable=False, cost=8.0))
randn = define(OpDef("randn", ("state",), _normal, ("shape", "dtype"), random=True, foldable=False, cost=16.0))
randint = define(OpDef("randint", ("state",), _randint, ("low", "high", "shape", "dtype"), random=True, foldable=False, cost=8.0))
randperm = define(OpDef("randperm", ("state",), _randperm, ("n",), random=True, foldable=False, cost=16.0))
