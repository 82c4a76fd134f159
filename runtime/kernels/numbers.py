"""Common divisors and multiples, neighbours, mantissas and exponents: NumPy's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.runtime.kernels.registry import ufunc

for _name, _ufunc in {"gcd": np.gcd, "lcm": np.lcm, "nextafter": np.nextafter}.items():
    ufunc(_name, _ufunc)


def _frexp(x: np.ndarray, out: tuple[np.ndarray, np.ndarray] | None = None) -> Any:
    mantissa, exponent = np.frexp(x)
    exponent = np.where(np.isfinite(x), exponent, np.int32(0))  # what the C library makes of infinities and NaN differs
    if out is None:
        return np.asarray(mantissa), exponent
    np.copyto(out[0], mantissa)
    np.copyto(out[1], exponent)
    return out


ufunc("frexp", _frexp)
