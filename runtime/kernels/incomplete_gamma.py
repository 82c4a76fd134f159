"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x)."""

from __future__ import annotations

import math

import numpy as np

from tpc.runtime.kernels import coefficients as c
from tpc.runtime.kernels.chebyshev import Formula, Vector, chosen, constant, polynomial
from tpc.runtime.kernels.gamma_functions import after_1, lgamma, stirling
from tpc.runtime.kernels.normal_functions import erfc

LARGE = 200.0
"""From this a on Temme's expansion serves x within 30 % of a; elsewhere a power series or a continued fraction."""
CLOSE = 0.3
SMALL = 1.1
"""Up to this x the continued fraction does not converge well."""
PRECISION = 2.0**-54
MOST = 100_000
"""Steps after which a fraction is taken as it is."""
TEMME = (c.TEMME_0, c.TEMME_1, c.TEMME_2, c.TEMME_3, c.TEMME_4, c.TEMME_5, c.TEMME_6, c.TEMME_7)


def _excess(a: Vector, x: Vector) -> Vector:
    """m - log(1 + m) for m = x / a - 1; where m is small, log(1 + m) is 2 artanh(m / (2 + m)), which spares a cancellation."""

    def near(a: Vector, x: Vector) -> Vector:
        m = (x - a) / a
        r = m / (2 + m)
        return r * m - 2 * r * (r * r) * polynomial([1 / (2 * k + 3) for k in range(24)], r * r)

    return chosen((a, x), ((x < 2 * a) & (x > 0.5 * a), near), (x > 0, lambda a, x: (x - a) / a - np.log(x / a)))


def _density(a: Vector, x: Vector) -> Vector:
    """x**a exp(-x) / gamma(1 + a), for large a by the distance of x / a from 1."""

    def small(a: Vector, x: Vector) -> Vector:
        return np.power(x, a) * np.exp(-x) / np.exp(lgamma(1 + a))

    def large(a: Vector, x: Vector) -> Vector:
        return np.exp(-a * _excess(a, x) - stirling(a)) / np.sqrt(2 * math.pi * a)

    return chosen((a, x), (a < 8, small), (a >= 8, large))


def _series(a: Vector, x: Vector) -> Vector:
    """P: the density times the sum of x**k / ((a + 1) ... (a + k))"""
    term, total, k = np.ones_like(x), np.ones_like(x), 0
    while np.any(term > PRECISION * total):
        k += 1
        term = term * (x / (a + k))
        total += term
    return _density(a, x) * total


def _fraction(a: Vector, x: Vector) -> Vector:
    """Q: the density times a over Legendre's continued fraction, as the sum of the differences of its convergents (Steed's method)"""
    b = x + 1 - a
    inverse = 1 / b
    change, found, k = inverse, inverse.copy(), 0
    while np.any(np.abs(change) > PRECISION * np.abs(found)) and k < MOST:
        k += 1
        b = b + 2
        inverse = 1 / (b + k * (a - k) * inverse)
        change = change * (b * inverse - 1)
        found += change
    return _density(a, x) * a * found


def _rest_near_0(a: Vector, x: Vector) -> Vector:
    """Q for small x: 1 - x**a / gamma(1 + a), and what the other terms of the power series of P take from it"""
    first = a * np.log(x) - lgamma(1 + a)
    small = a < 0.5
    first = np.where(small, a * np.log(x) - after_1(np.where(small, a, 0)), first)
    factor, total, k = np.ones_like(x), np.zeros_like(x), 0
    while np.any(np.abs(factor) > PRECISION * np.abs(total)):
        k += 1
        factor = factor * (-x / k)
        total += factor / (a + k)
    return -np.expm1(first) - np.exp(first) * a * total


def _temme(sign: float) -> Formula:
    """P (sign -1) or Q (sign 1) where both are near 1/2: an error function, and a series in 1/a of series in eta"""

    def formula(a: Vector, x: Vector) -> Vector:
        half_square = _excess(a, x)
        eta = np.copysign(np.sqrt(2 * half_square), x - a)
        rest = np.zeros_like(a)
        for row in reversed(TEMME):
            rest = rest / a + polynomial(row, eta)
        tail = np.exp(-a * half_square) / np.sqrt(2 * math.pi * a)
        return erfc(sign * eta * np.sqrt(a / 2)) / 2 + sign * tail * rest

    return formula


def _is_central(a: Vector, x: Vector) -> Vector:
    return (a >= LARGE) & (np.abs(x - a) < CLOSE * a)


def _borders(a: Vector, x: Vector, at_0: float) -> tuple[tuple[Vector, Formula], ...]:
    """Cases that both functions share; `at_0` is the value in x = 0."""
    at_infinity = 1 - at_0
    undefined = (x < 0) | (a < 0) | np.isnan(a) | np.isnan(x) | ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x))
    return (
        (undefined, constant(math.nan)),
        ((a == 0) | np.isinf(x), constant(at_infinity)),
        ((x == 0) | np.isinf(a), constant(at_0)),
    )


def gammainc(a: Vector, x: Vector) -> Vector:
    """P(a, x), the part of the gamma function's integral below x. NaN for negative operands"""
    return chosen(
        (a, x),
        *_borders(a, x, 0.0),
        (_is_central(a, x), _temme(-1.0)),
        ((x > SMALL) & (x > a), lambda a, x: 1 - _fraction(a, x)),
        (x > 0, _series),
    )


def gammaincc(a: Vector, x: Vector) -> Vector:
    """Q(a, x), the part of the gamma function's integral above x. NaN for negative operands"""
    return chosen(
        (a, x),
        *_borders(a, x, 1.0),
        (_is_central(a, x), _temme(1.0)),
        ((x > SMALL) & (x > a), _fraction),
        (x > SMALL, lambda a, x: 1 - _series(a, x)),
        (x > a, _rest_near_0),
        (x > 0, lambda a, x: 1 - _series(a, x)),
    )
