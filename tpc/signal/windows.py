"""`tpc.signal.windows`: window functions, symmetric unless `sym=False` makes them periodic.

Errors: `ValueError` for negative lengths, parameters out of range and dtypes other than float32 and float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions import tapers
from tpc.functions.factories import _Options
from tpc.functions.shape import one_int
from tpc.tensor import Tensor


def _window(name: str, M: Any, options: dict[str, Any], formula: Callable[[int], Tensor]) -> Tensor:  # noqa: N803 - PyTorch's spelling
    n, given = one_int(M, name, "M"), _Options(name, options, None)
    if n < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={n}")
    if given.dtype not in ("f32", "f64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {options['dtype']}")
    return tapers.made(n, given, lambda: formula(n))


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """The sum of (-1)**i a[i] cos(2 pi i k / n). Keywords of every window: dtype, device, requires_grad."""
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", M, options, lambda n: tapers.cosines(tapers.places(n), float(n - sym), a))


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """alpha - (1 - alpha) cos(2 pi k / n)."""
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """0.54 - 0.46 cos(2 pi k / n)."""
    return general_cosine(M, a=tapers.HAMMING, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """1/2 - 1/2 cos(2 pi k / n)."""
    return general_cosine(M, a=tapers.HANN, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)."""
    return _window("blackman", M, options, lambda n: tapers.cosines(tapers.places(n), float(n - sym), tapers.BLACKMAN))


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """Four cosines with side lobes 98 dB down."""
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """A triangle, 0 at its ends and 1 in the middle."""
    return _window("bartlett", M, options, lambda n: tapers.triangle(tapers.places(n), float(n - sym)))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """sin(pi (k + 1/2) / n)."""
    return _window("cosine", M, options, lambda n: e.sin(e.mul(e.add(tapers.places(n), 0.5), math.pi / (n + (not sym)))))


def _from_centre(n: int, sym: bool, centre: float | None = None) -> Tensor:
    return e.sub(tapers.places(n), (n - sym) / 2 if centre is None else centre)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """exp(-|k - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window("exponential", M, options, lambda n: e.exp(e.div(e.abs(_from_centre(n, sym, center)), -tau)))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """exp(-(k - centre)**2 / (2 std**2))."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, options, lambda n: e.exp(e.div(e.square(_from_centre(n, sym)), -2 * std * std)))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:  # noqa: N803
    """i0(beta sqrt(1 - (2 k / n - 1)**2)) / i0(beta)."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, options, lambda n: tapers.kaiser(tapers.places(n), float(n - sym), beta))


__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser",
    "nuttall",
]  # fmt: skip
