"""Orthogonal polynomials by their recurrences p_(k+1) = (a_k x + b_k) p_k - c_k p_(k-1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpc.runtime.kernels.chebyshev import Vector, chosen, constant

First = Callable[[Vector], Vector]
Step = Callable[[float, Vector, Vector, Vector], Vector]


def _doubling(k: float, x: Vector, p: Vector, before: Vector) -> Vector:
    return 2 * x * p - before


RECURRENCES: dict[str, tuple[First, Step]] = {
    "chebyshev_t": (lambda x: x, _doubling),
    "chebyshev_u": (lambda x: 2 * x, _doubling),
    "chebyshev_v": (lambda x: 2 * x - 1, _doubling),
    "chebyshev_w": (lambda x: 2 * x + 1, _doubling),
    "hermite_h": (lambda x: 2 * x, lambda k, x, p, before: 2 * x * p - 2 * k * before),
    "hermite_he": (lambda x: x, lambda k, x, p, before: x * p - k * before),
    "laguerre_l": (lambda x: 1 - x, lambda k, x, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1)),
    "legendre_p": (lambda x: x, lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1)),
}
"""The polynomial of degree 1, and the step from degrees k and k - 1 to k + 1; degree 0 is 1."""


def _by_recurrence(family: str, x: Vector, n: Vector) -> Vector:
    first, step = RECURRENCES[family]
    before, p = np.ones_like(x), first(x)
    found = np.where(n < 1, before, p)
    for k in range(1, int(n.max())):
        before, p = p, step(k, x, p, before)
        found = np.where(n >= k + 1, p, found)
    return found


def _at_1(family: str, x: Vector, n: Vector) -> Vector:
    """Chebyshev polynomials in 1 and -1: 1, n + 1, 1, 2 n + 1, and what parity makes of them."""
    sign = np.where(np.fmod(n, 2) == 0, 1.0, np.sign(x))
    size = {"chebyshev_t": 1 + 0 * n, "chebyshev_u": n + 1}.get(family)
    if size is None:
        grows = (x < 0) == (family == "chebyshev_v")
        size = np.where(grows, 2 * n + 1, 1.0)
    return sign * size


MANY = 6
"""From here on Chebyshev polynomials inside (-1, 1) are functions of the angle, which takes no steps."""


def _by_angle(family: str, x: Vector, n: Vector) -> Vector:
    angle = np.arccos(x)
    if family == "chebyshev_t":
        return np.cos(n * angle)
    if family == "chebyshev_u":
        return np.sin((n + 1) * angle) / np.sin(angle)
    half, wave = (np.cos, np.cos) if family == "chebyshev_v" else (np.sin, np.sin)
    return wave((n + 0.5) * angle) / half(angle / 2)


def value(family: str, x: Vector, n: Vector) -> Vector:
    """The polynomial of degree n (rounded towards 0), 0 for negative degrees; a shifted one is that of 2 x - 1"""
    if family.startswith("shifted_"):
        family, x = family.removeprefix("shifted_"), 2 * x - 1
    n = np.trunc(n)
    cases = [(n < 0, constant(0.0))]
    if family.startswith("chebyshev"):
        cases += [
            (np.abs(x) == 1, lambda x, n: _at_1(family, x, n)),
            ((n > MANY) & (np.abs(x) < 1), lambda x, n: _by_angle(family, x, n)),
        ]
    return chosen((x, n), *cases, (n >= 0, lambda x, n: _by_recurrence(family, x, n)))
