"""Derivatives of Fourier transforms.

A transform is a matrix W of roots of unity over a norm; by PyTorch's convention the gradient of its operand is the conjugate
transpose of W times the gradient: the transform the other way round with the same norm. Of a real operand only half the spectrum is
kept. Its other half is the conjugate of the kept one, so what a c2r transform counts twice counts once in the gradient of r2c.
"""

from __future__ import annotations

from tpc.autograd.rules import derivative
from tpc.functions.elementwise import mul
from tpc.functions.factories import filled
from tpc.functions.shape import reshape
from tpc.ir.ops import fft as ops
from tpc.ir.ops import shape as shape_ops
from tpc.ir.types import TensorType, real_dtype, tensor_type
from tpc.record import record
from tpc.tensor import Tensor


def _c2c(g: Tensor, dim: int, inverse: bool, norm: str) -> Tensor:
    return record(ops.c2c, (g,), {"dim": dim, "inverse": not inverse, "norm": norm})  # type: ignore[no-any-return]


def _weighted(spectrum: Tensor, dim: int, size: int, weight: float) -> Tensor:
    """Half a spectrum of `size` real numbers, with those elements weighted that have a conjugate in the other half."""
    kept, rank = spectrum._type.shape[dim], spectrum._type.rank
    paired = filled(tensor_type(real_dtype(spectrum._type.dtype), ((size - 1) // 2,)), weight)
    weights = record(shape_ops.pad, (paired,), {"low": (1,), "high": (kept - 1 - (size - 1) // 2,), "value": 1.0})
    return mul(spectrum, reshape(weights, (1,) * dim + (kept,) + (1,) * (rank - dim - 1)))


def _r2c(g: Tensor, x_type: TensorType, dim: int, norm: str) -> Tensor:
    size = x_type.shape[dim]
    return record(ops.c2r, (_weighted(g, dim, size, 0.5),), {"dim": dim, "size": size, "norm": norm})  # type: ignore[no-any-return]


def _c2r(g: Tensor, dim: int, size: int, norm: str) -> Tensor:
    return _weighted(record(ops.r2c, (g,), {"dim": dim, "norm": norm}), dim, size, 2.0)


derivative(ops.c2c, x=_c2c)
derivative(ops.r2c, x=_r2c)
derivative(ops.c2r, x=_c2r)
