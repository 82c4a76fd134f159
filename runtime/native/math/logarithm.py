"""log and what is made of it.

x = 2^e m with m between sqrt(1/2) and sqrt(2). With f = m - 1, s = f / (2 + f) and z = s^2 the series of 2 artanh(s) gives

    log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R),   R = 2 z / 3 + 2 z^2 / 5 + 2 z^3 / 7 + ...

which keeps the bits of f.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from llvmlite import ir

from tpc.runtime.native.math.arithmetic import Arithmetic
from tpc.runtime.native.math.exponential import exp

LOG2 = {"f32": (0.693145751953125, 1.4286068203094172e-06), "f64": (0.6931471803691238, 1.9082149292705877e-10)}
"""log 2 as a sum whose first part times any exponent is exact."""
SMALLEST = {"f32": 2.0**-126, "f64": 2.0**-1022}
HALF_ROOT = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
"""The bits of sqrt(1/2)."""


class Split(NamedTuple):
    """2^e (1 + f)."""

    e: ir.Value
    f: ir.Value


def _split(a: Arithmetic, x: ir.Value) -> Split:
    """For positive finite numbers."""
    b, lift = a.b, a.format.fraction + 2
    tiny = a.is_(x, "<", SMALLEST[a.dtype])
    bits = a.bits(a.where(tiny, a.mul(x, 2.0**lift), x))
    exponent = b.ashr(b.sub(bits, a.integer(HALF_ROOT[a.dtype])), a.integer(a.format.fraction))
    fraction = b.sub(bits, b.shl(exponent, a.integer(a.format.fraction)))
    number = b.sitofp(exponent if a.single else b.trunc(exponent, ir.IntType(32)), a.format.type)
    return Split(a.sub(number, a.where(tiny, float(lift), 0.0)), a.sub(a.from_bits(fraction), 1.0))


def _sum(a: Arithmetic, split: Split, correction: ir.Value | float = 0.0) -> ir.Value:
    """e log 2 + log(1 + f) + correction, smallest parts first."""
    e, f = split
    s = a.div(f, a.add(f, 2.0))
    z = a.mul(s, s)
    series = a.mul(z, a.polynomial([2 / (2 * k + 1) for k in range(5 if a.single else 11, 0, -1)], z))
    half = a.mul(0.5, a.mul(f, f))
    high, low = LOG2[a.dtype]
    small = a.add(a.fma(s, a.add(half, series), a.mul(e, low)), correction)
    return a.fma(e, high, a.sub(f, a.sub(half, small)))


def _edges(a: Arithmetic, x: ir.Value, result: ir.Value) -> ir.Value:
    """-inf at 0, NaN below, inf at inf."""
    result = a.where(a.is_(x, "==", 0.0), -math.inf, result)
    result = a.where(a.is_(x, "<", 0.0), math.nan, result)
    return a.where(a.b.or_(a.is_(x, "==", math.inf), a.is_nan(x)), x, result)


def log(a: Arithmetic, x: ir.Value) -> ir.Value:
    return _edges(a, x, _sum(a, _split(a, x)))


def log1p(a: Arithmetic, x: ir.Value) -> ir.Value:
    """log(u) + c / u with u = 1 + x rounded, and c what was lost by that."""
    u = a.add(1.0, x)
    larger = a.is_(x, ">", 1.0)
    lost = a.where(larger, a.sub(1.0, a.sub(u, x)), a.sub(x, a.sub(u, 1.0)))
    result = _edges(a, u, _sum(a, _split(a, u), a.div(lost, u)))
    return a.where(a.is_(a.abs(x), "<", 2.0 ** -(a.format.fraction + 2)), x, result)


def single_pow(a: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
    """x ** y in single precision, by exp(y log|x|) in double precision, whose additional bits make up for the factor y."""
    wide = Arithmetic(a.b, "f64")
    x, y = (a.b.fpext(v, wide.format.type) for v in (x, y))
    size = wide.abs(x)
    # 1 ** inf is 1.
    exponent = wide.where(wide.is_(size, "==", 1.0), 0.0, wide.mul(y, log(wide, size)))
    power = wide.where(wide.is_(y, "==", 0.0), 1.0, exp(wide, exponent))
    whole = wide.is_(wide.trunc(y), "==", y)
    half = wide.mul(y, 0.5)
    odd = a.b.and_(whole, wide.is_(wide.trunc(half), "!=", half))
    power = wide.where(odd, wide.copysign(power, x), power)
    undefined = a.b.and_(a.b.and_(wide.is_(x, "<", 0.0), wide.is_(size, "!=", math.inf)), a.b.not_(a.b.or_(whole, wide.is_nan(y))))
    power = wide.where(undefined, math.nan, power)
    # 1 ** NaN is 1 and NaN ** 0 is 1; every other NaN stays.
    lost = a.b.and_(a.b.or_(wide.is_nan(x), wide.is_nan(y)), a.b.and_(wide.is_(x, "!=", 1.0), wide.is_(y, "!=", 0.0)))
    return a.b.fptrunc(wide.where(lost, math.nan, power), a.format.type)
