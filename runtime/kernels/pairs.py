"""Complex numbers as pairs of real ones, and back: the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel, shown, ufunc


@kernel("complex")
def _(op: Op) -> Run:
    dtype = op.results[0].type.numpy_dtype

    def run(real: np.ndarray, imag: np.ndarray, out: np.ndarray | None = None) -> Any:
        if out is None:
            out = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        out.real, out.imag = real, imag
        return out

    return run


def _as_real(x: np.ndarray, out: np.ndarray | None = None) -> Any:
    return copied(np.stack((x.real, x.imag), -1), out)


def _as_complex(x: np.ndarray, out: np.ndarray | None = None) -> Any:
    pairs = np.ascontiguousarray(x)
    return copied(pairs.view(np.result_type(x.dtype, np.complex64)).reshape(x.shape[:-1]), out)


ufunc("view_as_real", _as_real)
ufunc("view_as_complex", _as_complex)
shown("real", lambda x: x.real)
shown("imag", lambda x: x.imag)
shown("view_as_real", lambda x: x[..., None].view(x.real.dtype))
shown("view_as_complex", lambda x: x.view(np.result_type(x.dtype, np.complex64))[..., 0])
