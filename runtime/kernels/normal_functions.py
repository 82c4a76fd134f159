"""The complementary error function, the normal distribution and their inverses."""

from __future__ import annotations

import math

import numpy as np

from tpc.runtime.kernels import coefficients as c
from tpc.runtime.kernels.chebyshev import Vector, between, chebyshev, chosen, constant, polynomial
from tpc.runtime.kernels.error_function import DOUBLE

ROOT_2 = math.sqrt(2)


def _scaled(x: Vector) -> Vector:
    """exp(x*x) erfc(x) for x >= 0. Its series is one in (x - k) / (x + k), k = 3.75, which takes in all x."""
    return chebyshev(c.ERFCX, (x - 3.75) / (x + 3.75)) / (1 + 2 * x)


def _gauss(x: Vector, factor: float) -> Vector:
    """exp(factor x*x). An error in the exponent is a relative one: x is rounded to a multiple of 1/16 first, whose square is exact."""
    near = np.rint(x * 16) / 16
    return np.exp(factor * near * near) * np.exp(factor * (x - near) * (x + near))


def _erf_near_0(x: Vector) -> Vector:
    t = np.abs(x)
    dividend, divisor, _ = DOUBLE
    return np.copysign(-np.expm1(-t * polynomial(dividend[::-1], t) / polynomial(divisor[::-1], t)), x)


def erfc(x: Vector) -> Vector:
    """1 - erf(x)"""
    return chosen(
        (x,),
        (x >= 27.3, constant(0.0)),
        (x >= 0.5, lambda x: _gauss(x, -1.0) * _scaled(x)),
        (x > -0.5, lambda x: 1 - _erf_near_0(x)),
        (x > -6, lambda x: 2 - _gauss(x, -1.0) * _scaled(-x)),
        (x <= -6, constant(2.0)),
    )


def erfcx(x: Vector) -> Vector:
    """exp(x*x) erfc(x), for negative x by erfc(x) = 2 - erfc(-x)"""
    return chosen(
        (x,),
        (x > 1e8, lambda x: 1 / (math.sqrt(math.pi) * x)),
        (x >= 0, _scaled),
        (x > -27, lambda x: 2 * _gauss(x, 1.0) - _scaled(-x)),
        (x <= -27, constant(math.inf)),
    )


MIDDLE = (0.5 - math.exp(-2)) ** 2
"""Up to this square of p - 1/2 the inverse is the product of p - 1/2 and a series; beyond, one in t = sqrt(-2 log(p))."""


def _tail(p: Vector) -> Vector:
    """Minus the inverse of the normal distribution function at a small p, as t + a series in 1/t."""
    t = np.sqrt(-2 * np.log(p))
    u = 1 / t
    return t + chosen(
        (u,),
        (u >= 0.125, lambda u: chebyshev(c.NDTRI_TAIL, between(0.125, 0.5, u))),
        (u < 0.125, lambda u: chebyshev(c.NDTRI_FAR_TAIL, between(0.025, 0.125, u))),
    )


def _middle(y: Vector) -> Vector:
    return y * chebyshev(c.NDTRI_MIDDLE, between(0, MIDDLE, y * y))


def ndtri(p: Vector) -> Vector:
    """The number below which a normal variable lies with probability p"""
    return chosen(
        (p,),
        (p == 0, constant(-math.inf)),
        (p == 1, constant(math.inf)),
        ((p < 0) | (p > 1), constant(math.nan)),
        ((p - 0.5) ** 2 <= MIDDLE, lambda p: _middle(p - 0.5)),
        (p < 0.5, lambda p: -_tail(p)),
        (p > 0.5, lambda p: _tail(1 - p)),
    )


def erfinv(x: Vector) -> Vector:
    """The inverse of erf: ndtri((1 + x) / 2) / sqrt(2)"""
    return chosen(
        (x,),
        (np.abs(x) == 1, lambda x: x * math.inf),
        (np.abs(x) > 1, constant(math.nan)),
        (x * x / 4 <= MIDDLE, lambda x: _middle(x / 2) / ROOT_2),
        (np.abs(x) < 1, lambda x: np.copysign(_tail((1 - np.abs(x)) / 2) / ROOT_2, x)),
    )


def _beyond(x: Vector) -> Vector:
    """The probability of a normal variable to lie above x > 0"""
    return _gauss(x, -0.5) * _scaled(x / ROOT_2) / 2


def ndtr(x: Vector) -> Vector:
    """The normal distribution function: the probability of a normal variable to lie below x"""
    return chosen(
        (x,),
        (x < -39, constant(0.0)),
        (x < -1, lambda x: _beyond(-x)),
        (x <= 1, lambda x: 0.5 + _erf_near_0(x / ROOT_2) / 2),
        (x < 39, lambda x: 1 - _beyond(x)),
        (x >= 39, constant(1.0)),
    )


def log_ndtr(x: Vector) -> Vector:
    """log of the normal distribution function"""
    return chosen(
        (x,),
        (x == -math.inf, constant(-math.inf)),
        (x < -1, lambda x: np.log(_scaled(-x / ROOT_2) / 2) - x * x / 2),
        (x < 39, lambda x: np.log1p(-ndtr(-x))),
        (x >= 39, constant(-0.0)),
    )
