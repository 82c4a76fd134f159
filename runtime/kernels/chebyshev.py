"""What special functions are put together from: Chebyshev series, and choices between formulas.

Functions take and give vectors in double precision. Each element's result depends on that element alone, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Vector: TypeAlias = Any
"""A one-dimensional array of doubles, or of truths."""
Formula: TypeAlias = Callable[..., Vector]


def chebyshev(coefficients: Sequence[float], t: Vector) -> Vector:
    """The sum of c_k T_k(t), by Clenshaw's recurrence b_k = c_k + 2 t b_(k+1) - b_(k+2)."""
    twice, b, before = 2 * t, np.zeros_like(t), np.zeros_like(t)
    for c in reversed(coefficients[1:]):
        # b_k takes the memory of b_(k+2), which is read for the last time
        np.subtract(twice * b, before, before)
        before += c
        b, before = before, b
    return t * b - before + coefficients[0]


def between(low: float, high: float, x: Vector) -> Vector:
    """The interval brought to [-1, 1]."""
    return (x - (low + high) / 2) * (2 / (high - low))


def polynomial(coefficients: Sequence[float], x: Vector) -> Vector:
    """The sum of c_k x**k."""
    found = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        found = found * x + c
    return found


def chosen(operands: Sequence[Vector], *cases: tuple[Vector, Formula]) -> Vector:
    """For each element the formula of the first case whose condition holds; NaN where none does."""
    found: Vector = np.full_like(operands[0], np.nan)
    left = np.ones(found.shape, bool)
    for condition, formula in cases:
        here = condition & left
        if here.any():
            found[here] = formula(*[x[here] for x in operands])
            left &= ~here
    return found


def constant(value: float) -> Formula:
    return lambda *operands: np.full_like(operands[0], value)


def sine_of_pi(x: Vector) -> Vector:
    """sin(pi x), exact in its zeros."""
    whole = np.rint(x)
    return np.sin(np.pi * (x - whole)) * np.where(np.fmod(whole, 2) == 0, 1.0, -1.0)
