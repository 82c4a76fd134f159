"""Floating point arithmetic in LLVM IR, written as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from llvmlite import ir

from tpc.runtime.native.intrinsics import intrinsic

Number: TypeAlias = float | ir.Value


class Format(NamedTuple):
    """How floating point numbers of a dtype look like: bits of the fraction, the exponent's bias."""

    type: ir.Type
    integer: ir.IntType
    fraction: int
    bias: int


FORMATS = {
    "f32": Format(ir.FloatType(), ir.IntType(32), 23, 127),
    "f64": Format(ir.DoubleType(), ir.IntType(64), 52, 1023),
}


class Arithmetic:
    """Emits operations on numbers of one dtype; Python numbers are constants."""

    def __init__(self, builder: ir.IRBuilder, dtype: str) -> None:
        self.b, self.dtype = builder, dtype
        self.format = FORMATS[dtype]
        self.single = dtype == "f32"

    def number(self, x: Number) -> ir.Value:
        return x if isinstance(x, ir.Value) else ir.Constant(self.format.type, float(x))

    def integer(self, x: int) -> ir.Constant:
        return ir.Constant(self.format.integer, x)

    def add(self, x: Number, y: Number) -> ir.Value:
        return self.b.fadd(self.number(x), self.number(y))

    def sub(self, x: Number, y: Number) -> ir.Value:
        return self.b.fsub(self.number(x), self.number(y))

    def mul(self, x: Number, y: Number) -> ir.Value:
        return self.b.fmul(self.number(x), self.number(y))

    def div(self, x: Number, y: Number) -> ir.Value:
        return self.b.fdiv(self.number(x), self.number(y))

    def neg(self, x: ir.Value) -> ir.Value:
        return self.b.fneg(x)

    def fma(self, x: Number, y: Number, z: Number) -> ir.Value:
        """x * y + z, rounded once."""
        return self._call("llvm.fma", x, y, z)

    def abs(self, x: ir.Value) -> ir.Value:
        return self._call("llvm.fabs", x)

    def sqrt(self, x: Number) -> ir.Value:
        return self._call("llvm.sqrt", x)

    def floor(self, x: ir.Value) -> ir.Value:
        return self._call("llvm.floor", x)

    def trunc(self, x: ir.Value) -> ir.Value:
        return self._call("llvm.trunc", x)

    def copysign(self, x: Number, sign: ir.Value) -> ir.Value:
        return self._call("llvm.copysign", x, sign)

    def is_(self, x: Number, comparison: str, y: Number) -> ir.Value:
        """A bit; where a number is NaN it is 0, but for "!="."""
        compare = self.b.fcmp_unordered if comparison == "!=" else self.b.fcmp_ordered
        return compare(comparison, self.number(x), self.number(y))

    def is_nan(self, x: ir.Value) -> ir.Value:
        return self.b.fcmp_unordered("uno", x, x)

    def where(self, bit: ir.Value, x: Number, y: Number) -> ir.Value:
        return self.b.select(bit, self.number(x), self.number(y))

    def at_most(self, x: ir.Value, limit: Number) -> ir.Value:
        """The smaller one; NaN stays."""
        return self.where(self.is_(x, ">", limit), limit, x)

    def at_least(self, x: ir.Value, limit: Number) -> ir.Value:
        """The larger one; NaN stays."""
        return self.where(self.is_(x, "<", limit), limit, x)

    def bits(self, x: Number) -> ir.Value:
        return self.b.bitcast(self.number(x), self.format.integer)

    def from_bits(self, x: ir.Value) -> ir.Value:
        return self.b.bitcast(x, self.format.type)

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """2 to the power of an integer for which that is a normal number."""
        biased = self.b.add(exponent, self.integer(self.format.bias))
        return self.from_bits(self.b.shl(biased, self.integer(self.format.fraction)))

    def polynomial(self, coefficients: Sequence[float], x: ir.Value) -> ir.Value:
        """From the highest power down (Horner's rule)."""
        value: Number = coefficients[0]
        for c in coefficients[1:]:
            value = self.fma(value, x, c)
        return self.number(value)

    def _call(self, name: str, *operands: Number) -> ir.Value:
        return intrinsic(self.b, name, [self.number(x) for x in operands])
