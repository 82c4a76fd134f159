"""Masks: elements filled, selected and scattered where a bool tensor is True, and counts of numbers."""

from __future__ import annotations

from typing import Any

from tpc.functions.data import checked_number
from tpc.functions.elementwise import where
from tpc.functions.factories import filled, zeros_of
from tpc.functions.indexing import picked
from tpc.functions.shape import broadcast_pair, expand, reshape
from tpc.ir.ops import indexing as ops
from tpc.ir.ops import reduction
from tpc.ir.types import category, tensor_type
from tpc.record import cast, record, scalar_tensor
from tpc.tensor import Tensor


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` (a number or a 0-d tensor) where the mask is True."""
    if mask._type.dtype != "bool":
        raise RuntimeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
    dtype = input._type.dtype
    if isinstance(value, Tensor):
        if value._type.shape:
            raise RuntimeError(
                f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value._type.rank} dimension(s)."
            )
        return where(mask, cast(value, dtype), input)
    return where(mask, scalar_tensor(checked_number(value, dtype), dtype), input)


def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask is True, in one dimension."""
    if mask._type.dtype != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_pair(input._type.shape, mask._type.shape)
    x, m = expand(input, shape), expand(mask, shape)
    if not shape:
        x, m = reshape(x, 1), reshape(m, 1)
    selected = picked(x, ((0, m),))
    return selected if out is None else out._write(selected)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of `source`, in order, where the mask is True."""
    if mask._type.dtype != "bool":
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype " + str(mask.dtype))
    if source._type.dtype != input._type.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}")
    shape = broadcast_pair(input._type.shape, mask._type.shape)
    return record(ops.masked_scatter, (expand(input, shape), expand(mask, shape), source))  # type: ignore[no-any-return]


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number 0, 1, ... occurs in a vector (or the sum of its weights). The size of the result is looked at."""
    if input._type.rank != 1 or category(input._type.dtype) != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    size = minlength
    if input._type.numel:
        low, high = (int(record(op, (input,), {"dims": (0,), "keepdim": False})._array()) for op in (reduction.amin, reduction.amax))
        if low < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        size = max(minlength, high + 1)
    counted = filled(tensor_type("i64", input._type.shape), 1) if weights is None else weights
    if weights is not None and counted._type.dtype not in ("f32", "f64"):
        counted = cast(counted, "f64")
    base = zeros_of(tensor_type(counted._type.dtype, (size,)))
    return record(ops.index_add, (base, input, counted), {"dim": 0})  # type: ignore[no-any-return]
