"""Extremes that prefer numbers to NaN, and complex numbers as pairs of real ones."""

from __future__ import annotations

from tpc.functions import elementwise as e
from tpc.functions.elementwise import stored, tensor_operand
from tpc.ir.ops import pairs as ops
from tpc.ir.types import is_complex, is_floating
from tpc.record import view as view_of
from tpc.strides import layout_of
from tpc.tensor import Tensor


def _without_nan(x: Tensor, y: Tensor, found: Tensor) -> Tensor:
    """`found`, but the other operand where one is NaN."""
    for nan, other in ((x, y), (y, x)):
        if is_floating(nan._type.dtype):
            found = e.where(e.isnan(nan), other, found)
    return found


def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger element; of a number and NaN the number."""
    x, y = tensor_operand("fmax", input, "input", 1), tensor_operand("fmax", other)
    return stored(_without_nan(x, y, e.where(e.ge(x, y), x, y)), out)


def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller element; of a number and NaN the number."""
    x, y = tensor_operand("fmin", input, "input", 1), tensor_operand("fmin", other)
    return stored(_without_nan(x, y, e.where(e.le(x, y), x, y)), out)


def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex conjugate; a real tensor is returned as it is."""
    return stored(e.conj(input), out)


def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary parts as a new last dimension of size 2, a view."""
    if not is_complex(input._type.dtype):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return view_of(input, ops.as_real, {})


def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers from a last dimension of size 2, a view."""
    if not is_floating(input._type.dtype):
        raise RuntimeError(f"view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: {input.dtype}")
    if not input._type.shape or input._type.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    layout = layout_of(input)
    if layout.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if layout.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    if any(step % 2 for n, step in zip(layout.shape[:-1], layout.strides, strict=False) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return view_of(input, ops.as_complex, {})
