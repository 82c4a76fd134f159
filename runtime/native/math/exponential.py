"""exp and what is made of it.

exp(x) = 2^n exp(r) with n = round(x / log 2), so that |r| <= log(2) / 2, where the power series of exp converges quickly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from llvmlite import ir

from tpc.runtime.kernels.error_function import DOUBLE, SINGLE
from tpc.runtime.native.math.arithmetic import Arithmetic

LOG2 = {"f32": (0.693145751953125, 1.4286068203094172e-06), "f64": (0.6931471805599453, 2.3190468138462996e-17)}
"""log 2 as the sum of two numbers, the second of which carries the bits that the first has no room for."""
LOWEST, HIGHEST = {"f32": -104.0, "f64": -746.0}, {"f32": 89.0, "f64": 710.0}
"""From where on exp is 0, and infinite."""
ALL_GONE = {"f32": -40.0, "f64": -60.0}
"""From where on expm1 is -1."""


class Reduced(NamedTuple):
    """x = n log 2 + r; `expm1` is exp(r) - 1."""

    n: ir.Value
    expm1: ir.Value


def _reduced(a: Arithmetic, x: ir.Value) -> Reduced:
    # Adding 1.5 * 2^fraction rounds to an integer, which then stands in the last bits.
    shift = 1.5 * 2.0**a.format.fraction
    shifted = a.fma(x, 1 / math.log(2), shift)
    n = a.sub(shifted, shift)
    high, low = LOG2[a.dtype]
    r = a.fma(a.neg(n), low, a.fma(a.neg(n), high, x))
    # (exp(r) - 1 - r) / r^2
    series = a.polynomial([1 / math.factorial(k) for k in range(7 if a.single else 13, 1, -1)], r)
    return Reduced(a.b.sub(a.bits(shifted), a.bits(shift)), a.fma(a.mul(r, r), series, r))


def exp(a: Arithmetic, x: ir.Value) -> ir.Value:
    n, rest = _reduced(a, a.at_least(a.at_most(x, HIGHEST[a.dtype]), LOWEST[a.dtype]))
    # In two steps: 2^n alone may be out of range where the result is not.
    half = a.b.ashr(n, a.integer(1))
    return a.mul(a.mul(a.add(1.0, rest), a.power_of_two(half)), a.power_of_two(a.b.sub(n, half)))


def expm1(a: Arithmetic, x: ir.Value) -> ir.Value:
    n, rest = _reduced(a, a.at_least(a.at_most(x, HIGHEST[a.dtype]), ALL_GONE[a.dtype]))
    # 2^n (exp(r) - 1) + 2^n - 1, halved: 2^n alone may be out of range.
    half = a.power_of_two(a.b.sub(n, a.integer(1)))
    result = a.mul(a.fma(half, rest, a.sub(half, 0.5)), 2.0)
    return a.where(a.is_(a.abs(x), "<", 2.0 ** -(a.format.fraction + 2)), x, result)


def sigmoid(a: Arithmetic, x: ir.Value) -> ir.Value:
    return a.div(1.0, a.add(1.0, exp(a, a.neg(x))))


def tanh(a: Arithmetic, x: ir.Value) -> ir.Value:
    """t / (t + 2) with t = exp(2|x|) - 1."""
    size = a.at_most(a.abs(x), 10.0 if a.single else 20.0)
    t = expm1(a, a.mul(size, 2.0))
    return a.copysign(a.div(t, a.add(t, 2.0)), x)


def sinh(a: Arithmetic, x: ir.Value) -> ir.Value:
    """(t + t / (t + 1)) / 2 with t = exp(|x|) - 1; exp(|x| - 1) e / 2 where t would be out of range."""
    size = a.abs(x)
    large = a.is_(size, ">", HIGHEST[a.dtype] - 2)
    t = expm1(a, size)
    inside = a.mul(0.5, a.add(t, a.div(t, a.add(t, 1.0))))
    return a.copysign(a.where(large, _half_exp(a, size), inside), x)


def cosh(a: Arithmetic, x: ir.Value) -> ir.Value:
    """(t + 1 / t) / 2 with t = exp(|x|)."""
    size = a.abs(x)
    large = a.is_(size, ">", HIGHEST[a.dtype] - 2)
    t = exp(a, size)
    return a.where(large, _half_exp(a, size), a.mul(0.5, a.add(t, a.div(1.0, t))))


def _half_exp(a: Arithmetic, x: ir.Value) -> ir.Value:
    """exp(x) / 2 where exp(x) itself may be out of range."""
    n, rest = _reduced(a, a.at_most(x, HIGHEST[a.dtype] + 1))
    half = a.b.ashr(n, a.integer(1))
    scale = a.power_of_two(a.b.sub(a.b.sub(n, half), a.integer(1)))
    return a.mul(a.mul(a.add(1.0, rest), a.power_of_two(half)), scale)


def erf(a: Arithmetic, x: ir.Value) -> ir.Value:
    """-expm1(-t R(t)) with t = |x| and the R of the NumPy kernel."""
    over, under, limit = SINGLE if a.single else DOUBLE
    t = a.at_most(a.abs(x), limit)
    ratio = a.polynomial(over, t)
    if under is not None:
        ratio = a.div(ratio, a.polynomial(under, t))
    return a.copysign(expm1(a, a.neg(a.mul(t, ratio))), x)
