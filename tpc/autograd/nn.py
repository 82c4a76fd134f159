"""Derivatives of convolution, pooling and windows: each op's gradient is another one of the family, so all orders are there."""

from __future__ import annotations

import math
from typing import Any

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions.elementwise import conj
from tpc.functions.gathering import gather
from tpc.functions.shape import reshape
from tpc.ir.opdef import AttrValue
from tpc.ir.ops import nn as ops
from tpc.ir.types import TensorType
from tpc.record import record
from tpc.tensor import Tensor

Sizes = tuple[int, ...]


def _moves(stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes, groups: int) -> dict[str, AttrValue]:
    return {"stride": stride, "low": low, "high": high, "dilation": dilation, "groups": groups}


def _conv(x: Tensor, w: Tensor, *moves: Any) -> Tensor:
    return record(ops.conv, (x, w), _moves(*moves))  # type: ignore[no-any-return]


def _to_input(g: Tensor, w: Tensor, x_type: TensorType, *moves: Any) -> Tensor:
    return record(ops.conv_input_grad, (g, w), {"size": x_type.shape[2:], **_moves(*moves)})  # type: ignore[no-any-return]


def _to_weight(g: Tensor, x: Tensor, w_type: TensorType, *moves: Any) -> Tensor:
    return record(ops.conv_weight_grad, (g, x), {"size": w_type.shape[2:], **_moves(*moves)})  # type: ignore[no-any-return]


# Input, weight and result make one trilinear form: the gradient of any of them is the form with that place left free.
derivative(
    ops.conv,
    x=lambda g, w, x_type, stride, low, high, dilation, groups: _to_input(g, conj(w), x_type, stride, low, high, dilation, groups),
    w=lambda g, x, w_type, stride, low, high, dilation, groups: _to_weight(g, conj(x), w_type, stride, low, high, dilation, groups),
)
derivative(
    ops.conv_input_grad,
    g=lambda v, w, stride, low, high, dilation, groups: _conv(v, conj(w), stride, low, high, dilation, groups),
    w=lambda v, g, w_type, stride, low, high, dilation, groups: _to_weight(conj(g), v, w_type, stride, low, high, dilation, groups),
)
derivative(
    ops.conv_weight_grad,
    g=lambda v, x, stride, low, high, dilation, groups: _conv(conj(x), v, stride, low, high, dilation, groups),
    x=lambda v, g, x_type, stride, low, high, dilation, groups: _to_input(conj(g), v, x_type, stride, low, high, dilation, groups),
)


# --- pooling and windows ------------------------------------------------------------------------


def _max_pool(g: Tensor, x: Tensor, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Tensor:
    """To the first of the largest elements of each window. Where it lies is found again from `x`: cheaper than to keep it."""
    moves: dict[str, AttrValue] = {"kernel": kernel, "stride": stride, "low": low, "high": high, "dilation": dilation}
    indices = record(ops.max_pool_indices, (x,), moves)
    size = x._type.shape[x._type.rank - len(kernel) :]
    return record(ops.max_pool_grad, (g, indices), {"size": size, **moves})  # type: ignore[no-any-return]


def picked(x: Tensor, indices: Tensor, count: int) -> Tensor:
    """The elements of `x` at flat indices into its last `count` axes."""
    lead, size, shape = x._type.shape[:-count], x._type.shape[-count:], indices._type.shape
    flat = reshape(indices, (*lead, math.prod(shape[len(lead) :])))
    return reshape(gather(reshape(x, (*lead, math.prod(size))), len(lead), flat), shape)


derivative(ops.max_pool, x=_max_pool)
derivative(ops.max_pool_grad, g=lambda v, indices, kernel: picked(v, indices, len(kernel)))
not_differentiable(ops.max_pool_indices)


def _sum_pool(g: Tensor, x_type: TensorType, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes) -> Tensor:
    size = x_type.shape[x_type.rank - len(kernel) :]
    attrs: dict[str, AttrValue] = {"size": size, "kernel": kernel, "stride": stride, "low": low, "high": high}
    return record(ops.sum_pool_grad, (g,), attrs)  # type: ignore[no-any-return]


def _sum_pool_grad(v: Tensor, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes) -> Tensor:
    return record(ops.sum_pool, (v,), {"kernel": kernel, "stride": stride, "low": low, "high": high})  # type: ignore[no-any-return]


derivative(ops.sum_pool, x=_sum_pool)
derivative(ops.sum_pool_grad, g=_sum_pool_grad)


def _im2col(g: Tensor, x_type: TensorType, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Tensor:
    size = x_type.shape[x_type.rank - len(kernel) :]
    attrs: dict[str, AttrValue] = {"size": size, "stride": stride, "low": low, "high": high, "dilation": dilation}
    return record(ops.col2im, (g,), attrs)  # type: ignore[no-any-return]


def _col2im(v: Tensor, x_type: TensorType, size: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Tensor:
    count = len(size)
    kernel = x_type.shape[x_type.rank - 2 * count : x_type.rank - count]
    attrs: dict[str, AttrValue] = {"kernel": kernel, "stride": stride, "low": low, "high": high, "dilation": dilation}
    return record(ops.im2col, (v,), attrs)  # type: ignore[no-any-return]


derivative(ops.im2col, x=_im2col)
derivative(ops.col2im, x=_col2im)
