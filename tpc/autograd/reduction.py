"""Derivatives of reductions. A gradient is first brought back to the operand's rank, then spread over what was combined."""

from __future__ import annotations

import math
from typing import Any

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions import elementwise as f
from tpc.functions import reduction as r
from tpc.functions.dims import kept_shape
from tpc.functions.factories import ones_of
from tpc.functions.joining import cat, stack
from tpc.functions.shape import broadcast_to, permute, reshape, sliced
from tpc.ir.ops import reduction as ops
from tpc.ir.types import TensorType
from tpc.tensor import Tensor

Dims = tuple[int, ...]


def restored(x: Tensor, dims: Dims, keepdim: bool, type: TensorType) -> Tensor:
    """A result with its reduced dimensions back, of size 1."""
    return x if keepdim else reshape(x, kept_shape(type.shape, dims))


def _count(dims: Dims, type: TensorType) -> int:
    return math.prod(type.shape[d] for d in dims)


def _sum(g: Tensor, dims: Dims, keepdim: bool, x_type: TensorType) -> Tensor:
    return broadcast_to(restored(g, dims, keepdim, x_type), x_type.shape)


def _mean(g: Tensor, dims: Dims, keepdim: bool, x_type: TensorType) -> Tensor:
    # divided before it is spread: as PyTorch does, to the last bit, after is the same
    return broadcast_to(f.div(restored(g, dims, keepdim, x_type), _count(dims, x_type)), x_type.shape)


def _extreme(g: Tensor, x: Tensor, y: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    """Equal extremes share the gradient."""
    mask = f.eq(x, restored(y, dims, keepdim, x._type))
    part = f.mul(restored(g, dims, keepdim, x._type), mask)
    return f.div(part, r.sum(mask, dims, keepdim=True))


def _prod(g: Tensor, x: Tensor, y: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    """g times the product of all other elements, which zeros must not spoil: built pair by pair."""
    rest = [d for d in range(x._type.rank) if d not in dims]
    order = (*rest, *dims)
    moved = permute(x, order)
    rows = reshape(moved, (*[x._type.shape[d] for d in rest], _count(dims, x._type)))
    others = reshape(_products_of_others(rows), moved._type.shape)
    back = tuple(sorted(range(len(order)), key=lambda i: order[i]))
    return f.mul(restored(g, dims, keepdim, x._type), f.conj(permute(others, back)))


def _products_of_others(x: Tensor) -> Tensor:
    """For each element of a row the product of the row's other elements."""
    n = x._type.shape[-1]
    last = x._type.rank - 1
    if n <= 1:
        return ones_of(x._type)
    if n % 2:
        return _odd(x, n, last)
    even, odd = sliced(x, last, 0, n, 2), sliced(x, last, 1, n, 2)
    outside = _products_of_others(f.mul(even, odd))
    return reshape(stack((f.mul(outside, odd), f.mul(outside, even)), -1), x._type.shape)


def _odd(x: Tensor, n: int, last: int) -> Tensor:
    """A row of odd length: all but the last element, then the last."""
    first, end = sliced(x, last, 0, n - 1), sliced(x, last, n - 1, n)
    inner = _products_of_others(first)
    whole = f.mul(sliced(inner, last, 0, 1), sliced(first, last, 0, 1))
    return cat((f.mul(inner, end), whole), last)


def _var(g: Tensor, x: Tensor, dims: Dims, correction: Any, keepdim: bool) -> Tensor:
    free = _count(dims, x._type) - correction
    centred = f.sub(x, r.mean(x, dims, keepdim=True))
    spread = restored(g, dims, keepdim, x._type)
    if free == 0:
        return f.mul(spread, f.where(f.eq(centred, 0), math.nan, math.inf))
    return f.mul(f.mul(spread, 2.0 / free), centred)


def _std(g: Tensor, x: Tensor, y: Tensor, dims: Dims, correction: Any, keepdim: bool) -> Tensor:
    zero = f.eq(y, 0)
    slope = f.where(zero, 0, f.div(g, f.mul(f.where(zero, 1, y), 2)))
    return _var(slope, x, dims, correction, keepdim)


def _logsumexp(g: Tensor, x: Tensor, y: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    total = restored(y, dims, keepdim, x._type)
    return f.mul(restored(g, dims, keepdim, x._type), f.exp(f.sub(x, total)))


derivative(ops.sum_, x=_sum)
derivative(ops.mean, x=_mean)
derivative(ops.prod, x=_prod)
derivative(ops.amax, x=_extreme)
derivative(ops.amin, x=_extreme)
derivative(ops.var, x=_var)
derivative(ops.std, x=_std)
derivative(ops.logsumexp, x=_logsumexp)
derivative(ops.softmax, x=lambda g, y, dim: f.mul(y, f.sub(g, r.sum(f.mul(g, y), dim, keepdim=True))))
derivative(ops.log_softmax, x=lambda g, y, dim: f.sub(g, f.mul(f.exp(y), r.sum(g, dim, keepdim=True))))

not_differentiable(ops.any_, ops.all_, ops.argmax, ops.argmin)
not_differentiable(ops.sort)  # the public functions pick the elements by index, which is differentiable
