"""Fourier transforms by numpy.fft, which works in the precision of its operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.registry import Run, kernel

FORWARD = {"none": "backward", "sqrt": "ortho", "n": "forward"}
INVERSE = {"none": "forward", "sqrt": "ortho", "n": "backward"}
"""NumPy names the direction that is divided."""


def _bound(transform: Callable[..., Any], **options: Any) -> Run:
    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return transform(x, out=out, **options)

    return run


@kernel("fft_c2c")
def _(op: Op) -> Run:
    axis, inverse, norm = op.attrs["dim"], op.attrs["inverse"], str(op.attrs["norm"])
    return _bound(np.fft.ifft, axis=axis, norm=INVERSE[norm]) if inverse else _bound(np.fft.fft, axis=axis, norm=FORWARD[norm])


@kernel("fft_r2c")
def _(op: Op) -> Run:
    return _bound(np.fft.rfft, axis=op.attrs["dim"], norm=FORWARD[str(op.attrs["norm"])])


@kernel("fft_c2r")
def _(op: Op) -> Run:
    return _bound(np.fft.irfft, n=op.attrs["size"], axis=op.attrs["dim"], norm=INVERSE[str(op.attrs["norm"])])
