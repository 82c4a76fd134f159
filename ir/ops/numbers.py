"""How numbers are made: common divisors and multiples, neighbours, mantissas and exponents."""

from __future__ import annotations

from tpc.ir.errors import DtypeError, TypeRuleError
from tpc.ir.opdef import Infer, OpDef, define
from tpc.ir.ops.rules import Attrs, Types, elementwise, listed
from tpc.ir.types import TensorType, tensor_type


def _rule(name: str, kinds: str, what: str) -> Infer:
    rule = elementwise(name, kinds, what)

    def infer(types: Types, attrs: Attrs) -> TensorType | tuple[TensorType, ...]:
        if types[0].dtype == "bool":
            raise DtypeError(f"\"{name}\" not implemented for 'Bool' {listed(name, types)}")
        return rule(types, attrs)

    return infer


def _frexp(types: Types, attrs: Attrs) -> tuple[TensorType, TensorType]:
    (type,) = types
    if type.dtype[0] != "f":
        raise TypeRuleError(f"frexp() only supports floating-point dtypes {listed('frexp', types)}")
    return type, tensor_type("i32", type.shape)


gcd, lcm = (
    define(OpDef(name, ("a", "b"), _rule(name, "iu", "integers"), promotion="same", elementwise=True, commutative=True, cost=30.0))
    for name in ("gcd", "lcm")
)
nextafter = define(OpDef("nextafter", ("a", "b"), _rule("nextafter", "f", "floating dtypes"), promotion="same", elementwise=True, cost=4.0))
frexp = define(OpDef("frexp", ("x",), _frexp, cost=4.0, doc="Mantissa in [1/2, 1) and exponent of a power of 2."))
