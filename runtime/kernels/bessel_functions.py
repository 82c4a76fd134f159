"""Bessel functions of orders 0 and 1, and Airy's function.

Near 0 a series in x, x*x or, where zeros are near, one over the distances from those. Far away exponentials, or waves with
amplitudes that are series in 1/x: J = sqrt(2 / (pi x)) (p cos - q sin) and Y = sqrt(2 / (pi x)) (p sin + q cos) of x - pi/4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tpc.runtime.kernels import coefficients as c
from tpc.runtime.kernels.chebyshev import Vector, between, chebyshev, chosen, constant

NEAR = 8.0
"""Where the formulas change for I, J and Y."""

# --- modified -----------------------------------------------------------------------------------


def i0e(x: Vector) -> Vector:
    """exp(-|x|) I0(x)"""
    return chosen(
        (np.abs(x),),
        (np.abs(x) <= NEAR, lambda x: chebyshev(c.I0_NEAR, between(0, NEAR, x))),
        (np.abs(x) > NEAR, lambda x: chebyshev(c.I0_FAR, between(0, 1, NEAR / x)) / np.sqrt(x)),
    )


def i1e(x: Vector) -> Vector:
    """exp(-|x|) I1(x)"""
    size = chosen(
        (np.abs(x),),
        (np.abs(x) <= NEAR, lambda x: x * chebyshev(c.I1_NEAR, between(0, NEAR, x))),
        (np.abs(x) > NEAR, lambda x: chebyshev(c.I1_FAR, between(0, 1, NEAR / x)) / np.sqrt(x)),
    )
    return np.where(x < 0, -size, size)


def i0(x: Vector) -> Vector:
    """Modified Bessel function I of order 0"""
    return np.exp(np.abs(x)) * i0e(x)


def i1(x: Vector) -> Vector:
    """Modified Bessel function I of order 1"""
    return np.exp(np.abs(x)) * i1e(x)


def _k_near(order: int, x: Vector) -> Vector:
    smooth = chebyshev((c.K0_NEAR, c.K1_NEAR)[order], between(0, 4, x * x))
    return smooth - np.log(x / 2) * i0(x) if order == 0 else smooth / x + np.log(x / 2) * i1(x)


def _k_far(order: int, x: Vector) -> Vector:
    """exp(x) K(x)"""
    return chebyshev((c.K0_FAR, c.K1_FAR)[order], between(0, 1, 2 / x)) / np.sqrt(x)


def bessel_k(order: int, scaled: bool, x: Vector) -> Vector:
    """Modified Bessel function K, times exp(x) if scaled. NaN below 0"""
    return chosen(
        (x,),
        (x == 0, constant(math.inf)),
        (x < 0, constant(math.nan)),
        (x <= 2, lambda x: _k_near(order, x) * (np.exp(x) if scaled else 1)),
        (x > 2, lambda x: _k_far(order, x) if scaled else np.exp(-x) * _k_far(order, x)),
    )


# --- of the first and second kind ---------------------------------------------------------------


def _over_roots(coefficients: Sequence[float], roots: Sequence[tuple[float, float]], x: Vector) -> Vector:
    """A series in x*x times x*x - root*root for each root, which is given as a number and what is left of it."""
    found = chebyshev(coefficients, between(0, NEAR * NEAR, x * x))
    for root, rest in roots:
        found *= ((x - root) - rest) * (x + root)
    return found


def _j_near(order: int, x: Vector) -> Vector:
    if order == 0:
        return _over_roots(c.J0_NEAR, (c.J0_ROOT_1, c.J0_ROOT_2), x)
    return x * _over_roots(c.J1_NEAR, (c.J1_ROOT_1, c.J1_ROOT_2), x)


def _waves(order: int, x: Vector) -> tuple[Vector, Vector]:
    """J and Y from 8 on. The sine and cosine of x - pi/4 are those of x turned by an eighth, so that x is not rounded."""
    p, q = ((c.J0_P, c.J0_Q), (c.J1_P, c.J1_Q))[order]
    v = between(0, 1, (NEAR / x) ** 2)
    amplitude, phase = chebyshev(p, v), chebyshev(q, v) / x
    sine, cosine, scale = np.sin(x), np.cos(x), 1 / np.sqrt(math.pi * x)
    s, c_ = sine - cosine, sine + cosine  # of x - pi/4, times sqrt(2)
    if order == 1:
        s, c_ = -c_, s  # of x - 3 pi/4
    return scale * (amplitude * c_ - phase * s), scale * (amplitude * s + phase * c_)


def bessel_j(order: int, x: Vector) -> Vector:
    """Bessel function of the first kind"""
    size = np.abs(x)
    found = chosen((size,), (size <= NEAR, lambda x: _j_near(order, x)), (size < math.inf, lambda x: _waves(order, x)[0]))
    return found if order == 0 else np.copysign(1.0, x) * found


def _y_near(order: int, x: Vector) -> Vector:
    v = between(0, NEAR * NEAR, x * x)
    if order == 0:
        return chebyshev(c.Y0_NEAR, v) + 2 / math.pi * np.log(x) * _j_near(0, x)
    return x * chebyshev(c.Y1_NEAR, v) + 2 / math.pi * (np.log(x) * _j_near(1, x) - 1 / x)


def bessel_y(order: int, x: Vector) -> Vector:
    """Bessel function of the second kind. NaN below 0"""
    return chosen(
        (x,),
        (x == 0, constant(-math.inf)),
        ((x > 0) & (x <= NEAR), lambda x: _y_near(order, x)),
        ((x > 0) & (x < math.inf), lambda x: _waves(order, x)[1]),
    )


def spherical_bessel_j0(x: Vector) -> Vector:
    """sin(x) / x, 1 in 0"""
    return chosen((x,), (x == 0, constant(1.0)), (np.isinf(x), constant(0.0)), (x != 0, lambda x: np.sin(x) / x))


# --- Airy ---------------------------------------------------------------------------------------


def _airy_waves(x: Vector) -> Vector:
    """Below -4, with z = 2/3 (-x)**(3/2)."""
    root = np.sqrt(-x)
    z = 2 / 3 * -x * root
    v = between(0, AIRY_WAVES, 1 / (z * z))
    p, q = chebyshev(c.AIRY_P, v), chebyshev(c.AIRY_Q, v) / z
    sine, cosine = np.sin(z), np.cos(z)
    return (p * (sine + cosine) - q * (cosine - sine)) / (math.sqrt(2 * math.pi) * np.sqrt(root))


def _airy_far(x: Vector) -> Vector:
    root = np.sqrt(x)
    z = 2 / 3 * x * root
    return chebyshev(c.AIRY_FAR, between(0.0002, AIRY_FAR, 1 / z)) * np.exp(-z) / (2 * math.sqrt(math.pi) * np.sqrt(root))


AIRY_FAR, AIRY_WAVES = 1.5 * 2**-1.5, (1.5 * 4**-1.5) ** 2


def airy_ai(x: Vector) -> Vector:
    """Airy's function Ai"""
    return chosen(
        (x,),
        (np.isinf(x), constant(math.nan)),
        (x > 110, constant(0.0)),
        (x > 2, _airy_far),
        (x >= -2, lambda x: chebyshev(c.AIRY_MIDDLE, x / 2)),
        (x >= -4, lambda x: chebyshev(c.AIRY_MIDDLE_BELOW, between(-4, -2, x))),
        (x < -4, _airy_waves),
    )
