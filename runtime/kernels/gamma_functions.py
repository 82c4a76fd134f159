"""The gamma function's logarithm, its derivatives, and Hurwitz's zeta function."""

from __future__ import annotations

import math

import numpy as np

from tpc.runtime.kernels import coefficients as c
from tpc.runtime.kernels.chebyshev import Vector, between, chebyshev, chosen, constant, sine_of_pi

HALF_LOG_2_PI = math.log(2 * math.pi) / 2
FAR = 8.0
"""From here on asymptotic series in 1 / x**2."""


def stirling(x: Vector) -> Vector:
    """lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2), x >= 8"""
    return chebyshev(c.STIRLING, between(0, 1 / 64, 1 / (x * x))) / x


def _far(x: Vector) -> Vector:
    return (x - 0.5) * (np.log(x) - 1) + (HALF_LOG_2_PI - 0.5 + stirling(x))


def _near(x: Vector, steps: Vector) -> Vector:
    """By a series around 2, to which `steps` factors x - 1, x - 2, ... lead."""
    product = np.ones_like(x)
    for j in range(1, 7):
        product *= np.where(steps >= j, x - j, 1)
    return np.log(product) + after_2(x - steps - 2)


def after_2(s: Vector) -> Vector:
    """lgamma(2 + s), |s| <= 1/2"""
    return s * chebyshev(c.LGAMMA_NEAR_2, 2 * s)


def after_1(s: Vector) -> Vector:
    """lgamma(1 + s), |s| <= 1/2"""
    return after_2(s) - np.log1p(s)


def _positive(x: Vector) -> Vector:
    return chosen(
        (x,),
        (x == math.inf, constant(math.inf)),
        (x >= FAR, _far),
        (x > 1.5, lambda x: _near(x, np.rint(x) - 2)),
        (x >= 0.5, lambda x: after_1(x - 1)),
        (x >= 0, lambda x: after_1(x) - np.log(x)),
    )


def lgamma(x: Vector) -> Vector:
    """log |gamma(x)|; below 0 by gamma(x) gamma(1 - x) = pi / sin(pi x)"""
    return chosen(
        (x,),
        (x > 0, _positive),
        ((x == np.floor(x)) & ~np.isnan(x), constant(math.inf)),
        (x < 0, lambda x: np.log(math.pi / np.abs(sine_of_pi(x))) - _positive(1 - x)),
    )


# --- derivatives --------------------------------------------------------------------------------


def _digamma_far(x: Vector) -> Vector:
    u = 1 / x
    return np.log(x) - u / 2 + u * u * chebyshev(c.DIGAMMA_FAR, between(0, 1 / 64, u * u))


def _digamma_near(x: Vector) -> Vector:
    """Between 1 and 2, a product with the distance from the root."""
    root, rest = c.DIGAMMA_ROOT
    return ((x - root) - rest) * chebyshev(c.DIGAMMA_OVER_ROOT, between(1, 2, x))


def _digamma_middle(x: Vector) -> Vector:
    """Between 2 and 8: brought to (1, 2] by steps of 1, each of which adds 1 / x."""
    steps, added = np.ceil(x) - 2, np.zeros_like(x)
    for j in range(1, 7):
        added += np.where(steps >= j, 1 / (x - j), 0)
    return _digamma_near(x - steps) + added


def digamma(x: Vector) -> Vector:
    """The derivative of lgamma; below 0 by digamma(1 - x) - digamma(x) = pi / tan(pi x). NaN in negative integers, -inf in 0."""
    return chosen(
        (x,),
        (x == math.inf, constant(math.inf)),
        (x >= FAR, _digamma_far),
        (x > 2, _digamma_middle),
        (x >= 1, _digamma_near),
        (x > 0, lambda x: _digamma_near(x + 1) - 1 / x),
        (x == 0, lambda x: np.copysign(math.inf, -x)),
        (x == np.floor(x), constant(math.nan)),
        (x < 0, lambda x: digamma(1 - x) - math.pi / np.tan(math.pi * (x - np.rint(x)))),
    )


BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
    43867 / 5109094217170944000, -174611 / 802857662698291200000, 77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)  # fmt: skip
"""B_2k / (2 k)!"""
DIRECT = 12
"""Terms of the zeta function that are added up before its tail is an integral with Euler and Maclaurin's corrections."""


def _zeta(s: Vector, q: Vector) -> Vector:
    steps = np.where(q < 0, np.ceil(-q), 0) + DIRECT
    total = np.zeros_like(s)
    for k in range(int(steps.max())):
        total += np.where(k < steps, np.power(q + k, -s), 0)
    a = q + steps
    power = np.power(a, -s)
    tail = power * a / (s - 1) + power / 2
    factor, square = power * s / a, 1 / (a * a)
    for k, b in enumerate(BERNOULLI):
        tail += b * factor
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) * square
    return total + np.where(power == 0, 0, tail)


def zeta(s: Vector, q: Vector) -> Vector:
    """The sum of (q + k)**-s over k >= 0. NaN for s < 1, and below q = 0 unless s is an integer"""
    return chosen(
        (s, q),
        (s == 1, constant(math.inf)),
        ((s < 1) | np.isnan(s) | np.isnan(q), constant(math.nan)),
        ((q <= 0) & (q == np.floor(q)), constant(math.inf)),
        ((q <= 0) & (s != np.floor(s)), constant(math.nan)),
        (s > 1, _zeta),
    )


def _trigamma(x: Vector) -> Vector:
    """Below 1/2 by trigamma(x) + trigamma(1 - x) = (pi / sin(pi x))**2"""
    return chosen(
        (x,),
        (x == math.inf, constant(0.0)),
        (x == -math.inf, constant(math.nan)),
        (x >= 0.5, lambda x: zeta(np.full_like(x, 2.0), x)),
        (x < 0.5, lambda x: (math.pi / sine_of_pi(x)) ** 2 - zeta(np.full_like(x, 2.0), 1 - x)),
    )


def polygamma(n: int, x: Vector) -> Vector:
    """The n-th derivative of digamma: (-1)**(n + 1) n! zeta(n + 1, x)"""
    if n == 0:
        return digamma(x)
    if n == 1:
        return _trigamma(x)
    size = float(math.factorial(n)) if n < 171 else math.inf
    return (size if n % 2 else -size) * zeta(np.full_like(x, n + 1.0), x)
