"""Elementwise operators: types and facts. Operands broadcast and have one dtype; the recorder casts."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import Infer, OpDef, Promotion, define
from tpc.ir.ops.rules import Attrs, Types, broadcast, elementwise, listed, require, same_dtype
from tpc.ir.types import NUMPY_DTYPES, TensorType, real_dtype, tensor_type

ANY, NUMBERS, REAL, FLOATING, INEXACT, INTEGRAL = "buifc", "uifc", "buif", "f", "fc", "bui"


def _unary(name: str, kinds: str, what: str, cost: float, promotion: Promotion = "same", infer: Infer | None = None) -> OpDef:
    rule = infer or elementwise(name, kinds, what)
    return define(OpDef(name, ("x",), rule, promotion=promotion, elementwise=True, cost=cost))


def _binary(
    name: str,
    kinds: str,
    what: str,
    cost: float = 1.0,
    promotion: Promotion = "same",
    result: str | None = None,
    commutative: bool = False,
    checks: bool = False,
) -> OpDef:
    rule = elementwise(name, kinds, what, result)
    return define(OpDef(name, ("a", "b"), rule, promotion=promotion, elementwise=True, commutative=commutative, cost=cost, checks=checks))


def _float(name: str, cost: float) -> OpDef:
    """A function of floating or complex numbers; integers become floating first."""
    return _unary(name, INEXACT, "floating and complex dtypes", cost, "float")


def _to_bool(name: str) -> OpDef:
    return _unary(name, ANY, "every dtype", 1.0, "none", elementwise(name, ANY, "every dtype", "bool"))


exp, log, log1p, expm1 = _float("exp", 6.0), _float("log", 6.0), _float("log1p", 9.0), _float("expm1", 9.0)
sqrt, rsqrt, reciprocal = _float("sqrt", 2.0), _float("rsqrt", 3.0), _float("reciprocal", 2.0)
sin, cos, tan, tanh = _float("sin", 8.0), _float("cos", 8.0), _float("tan", 10.0), _float("tanh", 9.0)
asin, acos, atan = _float("asin", 10.0), _float("acos", 10.0), _float("atan", 10.0)
sinh, cosh, sigmoid = _float("sinh", 10.0), _float("cosh", 10.0), _float("sigmoid", 9.0)
erf = _unary("erf", FLOATING, "floating dtypes", 15.0, "float")

neg = _unary("neg", NUMBERS, "numbers", 1.0)
square = _unary("square", NUMBERS, "numbers", 1.0)
relu = _unary("relu", "uif", "real numbers", 1.0)
sign = _unary("sign", REAL, "real numbers", 1.0)
floor, ceil, trunc = (_unary(n, "uif", "real numbers", 1.0) for n in ("floor", "ceil", "trunc"))
round_ = _unary("round", "uif", "real numbers", 1.0)
conj = _unary("conj", ANY, "every dtype", 1.0)
bitwise_not = _unary("bitwise_not", INTEGRAL, "integers and bool", 1.0)
logical_not, isnan, isinf, isfinite = _to_bool("logical_not"), _to_bool("isnan"), _to_bool("isinf"), _to_bool("isfinite")


def _part(types: Types, attrs: Attrs) -> TensorType:
    return tensor_type(real_dtype(types[0].dtype), types[0].shape)


def _complex_part(name: str) -> Infer:
    def infer(types: Types, attrs: Attrs) -> TensorType:
        require(name, types, "c", "complex dtypes")
        return _part(types, attrs)

    return infer


abs_ = _unary("abs", ANY, "every dtype", 1.0, infer=_part)
real = _unary("real", "c", "complex dtypes", 1.0, "none", _complex_part("real"))
imag = _unary("imag", "c", "complex dtypes", 1.0, "none", _complex_part("imag"))

add = _binary("add", ANY, "every dtype", commutative=True)
sub = _binary("sub", NUMBERS, "numbers")
mul = _binary("mul", ANY, "every dtype", commutative=True)
div = _binary("div", INEXACT, "floating and complex dtypes", 2.0, "float")
floor_divide = _binary("floor_divide", "uif", "real numbers", 4.0, checks=True)
remainder = _binary("remainder", "uif", "real numbers", 4.0, checks=True)
fmod = _binary("fmod", "uif", "real numbers", 4.0, checks=True)
pow_ = _binary("pow", NUMBERS, "numbers", 12.0)
atan2 = _binary("atan2", FLOATING, "floating dtypes", 15.0, "float")
maximum = _binary("maximum", REAL, "real numbers", commutative=True)
minimum = _binary("minimum", REAL, "real numbers", commutative=True)

eq = _binary("eq", ANY, "every dtype", promotion="bool", result="bool", commutative=True)
ne = _binary("ne", ANY, "every dtype", promotion="bool", result="bool", commutative=True)
lt, le, gt, ge = (_binary(n, REAL, "real numbers", promotion="bool", result="bool") for n in ("lt", "le", "gt", "ge"))
logical_and, logical_or, logical_xor = (
    _binary(n, ANY, "every dtype", promotion="bool", result="bool", commutative=True) for n in ("logical_and", "logical_or", "logical_xor")
)
bitwise_and, bitwise_or, bitwise_xor = (
    _binary(n, INTEGRAL, "integers and bool", commutative=True) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")
)
left_shift, right_shift = (_binary(n, "ui", "integers") for n in ("left_shift", "right_shift"))


def _where(types: Types, attrs: Attrs) -> TensorType:
    if types[0].dtype != "bool":
        raise TypeRuleError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {types[0].dtype}")
    return tensor_type(same_dtype("where", types[1:]), broadcast("where", types))


where = define(OpDef("where", ("cond", "a", "b"), _where, elementwise=True))
clamp = define(OpDef("clamp", ("x", "lo", "hi"), elementwise("clamp", REAL, "real numbers"), promotion="same", elementwise=True, cost=2.0))
clamp_min = define(OpDef("clamp_min", ("x", "lo"), elementwise("clamp_min", REAL, "real numbers"), promotion="same", elementwise=True))
clamp_max = define(OpDef("clamp_max", ("x", "hi"), elementwise("clamp_max", REAL, "real numbers"), promotion="same", elementwise=True))


def _cast(types: Types, attrs: Attrs) -> TensorType:
    dtype = attrs["dtype"]
    if dtype not in NUMPY_DTYPES:
        raise TypeRuleError(f"there is no dtype {dtype!r} {listed('cast', types)}")
    return tensor_type(str(dtype), types[0].shape)


cast = define(OpDef("cast", ("x",), _cast, ("dtype",), elementwise=True))
copy = define(OpDef("copy", ("x",), elementwise("copy", ANY, "every dtype"), elementwise=True, doc="What clone records."))
