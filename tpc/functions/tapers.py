"""Window functions: weights that fade a stretch of a signal in and out.

A periodic window of n elements is the symmetric one of n + 1 without its last element. Values are worked out in double precision.
Errors: `RuntimeError` for negative lengths and for dtypes that are not floating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.factories import _Options, arange, filled
from tpc.functions.shape import one_int
from tpc.functions.special import i0
from tpc.ir.types import tensor_type
from tpc.record import cast
from tpc.tensor import Tensor

F64 = "f64"

HANN, HAMMING, BLACKMAN = (0.5, 0.5), (0.54, 0.46), (0.42, 0.5, 0.08)


def places(n: int) -> Tensor:
    """0.0, 1.0, ..., n - 1."""
    return cast(arange(n), F64)


def made(n: int, given: _Options, window: Callable[[], Tensor]) -> Tensor:
    """The window in the dtype that was asked for; the window of one element is 1."""
    if n < 2:
        return given.finish(filled(tensor_type(given.dtype, (n,)), 1))
    return given.finish(cast(window(), given.dtype))


def cosines(k: Tensor, last: float, weights: Sequence[float]) -> Tensor:
    """The sum of (-1)**i weights[i] cos(2 pi i k / last)."""
    found: Any = weights[0]
    for i, weight in enumerate(weights[1:], 1):
        found = e.add(e.mul(e.cos(e.mul(k, 2 * math.pi * i / last)), weight if i % 2 == 0 else -weight), found)
    return found if isinstance(found, Tensor) else e.add(e.mul(k, 0), found)


def triangle(k: Tensor, last: float) -> Tensor:
    """1 - |2 k / last - 1|"""
    return e.sub(1, e.abs(e.sub(e.div(k, last / 2), 1)))


def kaiser(k: Tensor, last: float, beta: float) -> Tensor:
    """i0(beta sqrt(1 - (2 k / last - 1)**2)) / i0(beta)"""
    inside = e.sub(1, e.square(e.sub(e.div(k, last / 2), 1)))
    return e.div(i0(e.mul(e.sqrt(e.clamp(inside, min=0)), beta)), i0(filled(tensor_type(F64, ()), beta)))


def _window(name: str, length: Any, periodic: bool, options: dict[str, Any], formula: Callable[[Tensor, float], Tensor]) -> Tensor:
    n = one_int(length, name, "window_length")
    given = _Options(name, options, None)
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    if given.dtype[0] == "c" and n > 1:
        raise NotImplementedError(f"{name} is not implemented for complex dtypes")
    if given.dtype[0] not in "fc":
        raise RuntimeError(f"{name} expects floating point dtypes, got: {given.dtype}")
    return made(n, given, lambda: formula(places(n), float(n if periodic else n - 1)))


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """1/2 - 1/2 cos(2 pi k / n). Keywords of every window: those of `zeros`."""
    return _window("hann_window", window_length, periodic, options, lambda k, last: cosines(k, last, HANN))


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any) -> Tensor:
    """alpha - beta cos(2 pi k / n)."""
    return _window("hamming_window", window_length, periodic, options, lambda k, last: cosines(k, last, (alpha, beta)))


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)."""
    return _window("blackman_window", window_length, periodic, options, lambda k, last: cosines(k, last, BLACKMAN))


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle, 0 at its ends and 1 in the middle."""
    return _window("bartlett_window", window_length, periodic, options, triangle)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """i0(beta sqrt(1 - (2 k / n - 1)**2)) / i0(beta)."""
    return _window("kaiser_window", window_length, periodic, options, lambda k, last: kaiser(k, last, beta))
