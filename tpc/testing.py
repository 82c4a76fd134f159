"""`tpc.testing`: comparing tensors in tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.ir.types import NUMPY_DTYPES
from tpc.tensor import Tensor

__all__ = ["assert_close"]

_TOLERANCES = {"f16": (1e-3, 1e-5), "f32": (1.3e-6, 1e-5), "f64": (1e-7, 1e-7), "c64": (1.3e-6, 1e-5), "c128": (1e-7, 1e-7)}


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
    check_dtype: bool = True, msg: Any = None, **options: Any,
) -> None:  # fmt: skip
    """Raises `AssertionError` unless |actual - expected| <= atol + rtol * |expected|; shapes and dtypes must agree.

    Without tolerances, those of the less exact dtype: 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for float64, 0 for integers.
    """
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype, msg=msg)
        return
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    x, y = (v.detach()._array() if isinstance(v, Tensor) else np.asarray(v) for v in (actual, expected))
    if x.shape != y.shape:
        raise AssertionError(msg or f"The values for attribute 'shape' do not match: {x.shape} != {y.shape}.")
    if check_dtype and isinstance(actual, Tensor) and isinstance(expected, Tensor) and x.dtype != y.dtype:
        raise AssertionError(msg or f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}.")
    known = [t for name, t in _TOLERANCES.items() if NUMPY_DTYPES[name] in (x.dtype, y.dtype)]
    relative, absolute = max(known, default=(0.0, 0.0)) if rtol is None or atol is None else (rtol, atol)
    close = np.isclose(x, y, relative, absolute, equal_nan)
    if not close.all():
        wrong, worst = int(close.size - close.sum()), np.abs(x.astype(complex) - y.astype(complex))[~close].max()
        text = f"Tensor-likes are not close!\n\nMismatched elements: {wrong} / {close.size}\nGreatest absolute difference: {worst}"
        raise AssertionError(msg(text) if callable(msg) else msg or text)
