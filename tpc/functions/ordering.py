"""Sorting and order statistics. Gradients go to the elements that were picked."""

from __future__ import annotations

from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import stored
from tpc.functions.reduction import Pair, picked, refuse_empty, sum, with_dims
from tpc.functions.shape import flatten, narrow, reshape
from tpc.ir.ops import reduction as ops
from tpc.ir.types import is_floating
from tpc.record import cast, record
from tpc.tensor import Tensor


def _sorted(x: Tensor, dim: int, descending: bool, stable: bool) -> tuple[Tensor, Tensor]:
    """Values and indices; NaN counts as the largest number."""
    values, indices = record(ops.sort, (x.detach(),), {"dim": dim, "descending": descending, "stable": stable})
    return (picked(x, indices, dim) if x._tracked() or x._tangent is not None else values), indices


def pair(values: Tensor, indices: Tensor, out: Any) -> Pair:
    """Both, in `out` where the user gave it."""
    return Pair(values, indices) if out is None else Pair(stored(values, out[0]), stored(indices, out[1]))


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Any = None) -> Pair:
    """(values, indices) in ascending or descending order; NaN counts as the largest number."""
    dim = one_dim(dim, input._type.rank)
    if not input._type.shape:
        values, indices = _sorted(with_dims(input), 0, descending, stable)
        return pair(reshape(values, ()), reshape(indices, ()), out)
    return pair(*_sorted(input, dim, descending, stable), out)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort the tensor."""
    return sort(input.detach(), dim, descending, stable).indices


def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sorted along the first dimension."""
    return stored(sort(input, 0).values, out)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Pair:
    """(values, indices) of the k largest or smallest elements, in order."""
    dim = one_dim(dim, input._type.rank)
    x = with_dims(input)
    k = int(k)
    if not 0 <= k <= x._type.shape[dim]:
        raise RuntimeError("selected index k out of range")
    _, indices = _sorted(x.detach(), dim, largest, stable=True)
    indices = e.clone(narrow(indices, dim, 0, k))
    values = picked(x, indices, dim)
    if not input._type.shape and k == 1:
        values, indices = reshape(values, ()), reshape(indices, ())
    return pair(values, indices, out)


def _selected(input: Tensor, position: Any, dim: int, keepdim: bool, out: Any) -> Pair:
    """The element at a position (a number, or a tensor with one per row) of each sorted row."""
    x = with_dims(input)
    _, order = _sorted(x.detach(), dim, False, stable=True)
    indices = e.clone(narrow(order, dim, position, 1)) if isinstance(position, int) else picked(order, position, dim)
    values = picked(x, indices, dim)
    if not keepdim or not input._type.shape:
        kept = x._type.shape[:dim] + x._type.shape[dim + 1 :]
        values, indices = reshape(values, kept), reshape(indices, kept)
    return pair(values, indices, out)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Pair:
    """(values, indices) of the k-th smallest elements; k counts from 1."""
    dim = one_dim(dim, input._type.rank)
    if not 1 <= k <= (input._type.shape[dim] if input._type.shape else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(dim))
    return _selected(input, k - 1, dim, keepdim, out)


def _middle(x: Tensor, dim: int, skip_nan: bool) -> Any:
    """Position of the (lower) median in sorted rows, where NaN comes last: NaN itself where there is one, unless skipped."""
    size = x._type.shape[dim]
    if not is_floating(x._type.dtype):
        return (size - 1) // 2
    known = sum(cast(e.logical_not(e.isnan(x.detach())), "i64"), dim, keepdim=True)
    if skip_nan:
        return e.clamp_min(e.floor_divide(e.sub(known, 1), 2), 0)
    return e.where(e.eq(known, size), (size - 1) // 2, known)


def _median(name: str, skip_nan: bool, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Any:
    if input._type.dtype == "bool":
        raise NotImplementedError(f'"{name}" not implemented for bool')
    if dim is None:
        if input._type.numel == 0:
            from tpc.functions.factories import full

            return full((), float("nan"), dtype=input.dtype)
        x = flatten(input)
        found = _selected(x.detach(), _middle(x, 0, skip_nan), 0, False, None).values
        return stored(_shared(x, found), out)
    dim = one_dim(dim, input._type.rank)
    x = with_dims(input)
    if x._type.shape[dim] == 0:
        refuse_empty(name, input, IndexError)
    return _selected(input, _middle(x, dim, skip_nan), dim, keepdim, out)


def _shared(x: Tensor, found: Tensor) -> Tensor:
    """The value `found`, whose gradient goes in equal parts to the elements of `x` that have it."""
    if not x._tracked() and x._tangent is None:
        return found
    mask = e.logical_or(e.logical_and(e.eq(x, found), e.isfinite(x)), e.logical_and(e.isnan(x), e.isnan(found)))
    nothing = sum(e.where(mask, e.sub(x, found), 0))
    return e.add(found, e.div(nothing, e.clamp_min(sum(mask), 1)))


def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median, of two middle elements the lower; along `dim` (values, indices). NaN where there is one."""
    return _median("median", False, input, dim, keepdim, out)


def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of the elements that are not NaN."""
    return _median("nanmedian", True, input, dim, keepdim, out)
