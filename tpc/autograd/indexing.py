"""Derivatives of reading and writing by index: each is the transpose of the other.

Where several elements were written to one place, all of them get its gradient, as in PyTorch.
"""

from __future__ import annotations

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions.elementwise import conj, div, eq, logical_and, mul, sub, where
from tpc.functions.factories import ones_of, zeros_of
from tpc.ir.opdef import AttrValue
from tpc.ir.ops import indexing as ops
from tpc.ir.ops import shape as shape_ops
from tpc.ir.types import TensorType
from tpc.record import cast, record
from tpc.tensor import Tensor


def _zeros(g: Tensor, type: TensorType) -> Tensor:
    """Zeros in the shape of a type and the dtype of the gradient."""
    return zeros_of(TensorType(g._type.dtype, type.shape))


Indices = tuple[Tensor, ...]
Axes = tuple[int, ...]


# --- index tensors ------------------------------------------------------------------------------


def _index(g: Tensor, x_type: TensorType, indices: Indices, axes: Axes) -> list[Tensor]:
    return record(ops.index_put, (_zeros(g, x_type), g, *indices), {"axes": axes, "accumulate": True})  # type: ignore[no-any-return]


def _index_put_x(g: Tensor, indices: Indices, axes: Axes, accumulate: bool) -> Tensor:
    if accumulate:
        return g
    zero = _zeros(g, TensorType(g._type.dtype, ()))
    return record(ops.index_put, (g, zero, *indices), {"axes": axes, "accumulate": False})  # type: ignore[no-any-return]


def _index_put_values(g: Tensor, indices: Indices, axes: Axes) -> Tensor:
    return record(ops.index, (g, *indices), {"axes": axes})  # type: ignore[no-any-return]


derivative(ops.index, x=_index)
derivative(ops.index_put, x=_index_put_x, values=_index_put_values)


# --- along a dimension --------------------------------------------------------------------------


def _added_at(g: Tensor, x_type: TensorType, index: Tensor, dim: int) -> Tensor:
    attrs: dict[str, AttrValue] = {"dim": dim, "reduce": "sum", "include_self": True}
    return record(ops.scatter_reduce, (_zeros(g, x_type), index, g), attrs)  # type: ignore[no-any-return]


def _at(x: Tensor, index: Tensor, dim: int) -> Tensor:
    return record(ops.gather, (x, index), {"dim": dim})  # type: ignore[no-any-return]


def _fitted(g: Tensor, src_type: TensorType) -> Tensor:
    """Zeros behind a gradient, for the part of the source that the index did not cover."""
    if g._type.shape == src_type.shape:
        return g
    high = tuple([n - m for n, m in zip(src_type.shape, g._type.shape, strict=True)])
    return record(shape_ops.pad, (g,), {"low": (0,) * len(high), "high": high, "value": 0j if g._type.dtype[0] == "c" else 0.0})  # type: ignore[no-any-return]


def _cleared(g: Tensor, index: Tensor, dim: int) -> Tensor:
    return record(ops.scatter, (g, index, _zeros(g, index._type)), {"dim": dim})  # type: ignore[no-any-return]


derivative(ops.gather, x=_added_at)
derivative(ops.scatter, x=_cleared, src=lambda g, src_type, index, dim: _fitted(_at(g, index, dim), src_type))
derivative(
    ops.index_select,
    x=lambda g, x_type, index, dim: record(ops.index_add, (_zeros(g, x_type), index, g), {"dim": dim}),
)
derivative(ops.index_add, x=lambda g: g, src=lambda g, index, dim: record(ops.index_select, (g, index), {"dim": dim}))


# --- scatter_reduce -----------------------------------------------------------------------------


class _Scatter:
    """One application of scatter_reduce, as its two formulas see it. `src` is cut to the index."""

    def __init__(self, x: Tensor, index: Tensor, src: Tensor, y: Tensor, dim: int, reduce: str, include_self: bool) -> None:
        self.x, self.index, self.y = x, index, y
        self.src = _covered(src, index._type)
        self.dim, self.reduce, self.include_self = dim, reduce, include_self

    def at(self, x: Tensor) -> Tensor:
        return _at(x, self.index, self.dim)

    def counted(self, start: Tensor, src: Tensor) -> Tensor:
        """`src` summed up on top of `start`, in the places of the index."""
        return record(ops.scatter_reduce, (start, self.index, src), {"dim": self.dim, "reduce": "sum", "include_self": True})  # type: ignore[no-any-return]

    def reduced(self, x: Tensor, src: Tensor) -> Tensor:
        attrs: dict[str, AttrValue] = {"dim": self.dim, "reduce": self.reduce, "include_self": self.include_self}
        return record(ops.scatter_reduce, (x, self.index, src), attrs)  # type: ignore[no-any-return]

    def mean_count(self, g: Tensor) -> Tensor:
        start = ones_of(g._type) if self.include_self else zeros_of(g._type)
        count = self.counted(start, ones_of(TensorType(g._type.dtype, self.src._type.shape)))
        return where(eq(count, 0), 1, count)

    def shares(self, g: Tensor) -> Tensor:
        """The gradient divided among all that equal the extreme."""
        own = cast(eq(self.x, self.y), g._type.dtype)
        theirs = cast(eq(self.src, self.at(self.y)), g._type.dtype)
        return div(g, self.counted(own, theirs))

    def for_x(self, g: Tensor) -> Tensor:
        if self.reduce == "mean":
            g = div(g, self.mean_count(g))
        elif self.reduce in ("amax", "amin"):
            g = where(eq(self.x, self.y), self.shares(g), 0)
        elif self.reduce == "prod":
            # the product of all the others: with a zero in x taken for 1
            filled = where(eq(self.x, 0), 1, self.x)
            g = mul(g, conj(div(self.reduced(filled, self.src), filled)))
        return g if self.include_self else _cleared(g, self.index, self.dim)

    def for_src(self, g: Tensor) -> Tensor:
        if self.reduce == "mean":
            return self.at(div(g, self.mean_count(g)))
        if self.reduce in ("amax", "amin"):
            return where(eq(self.src, self.at(self.y)), self.at(self.shares(g)), 0)
        return self.at(g) if self.reduce == "sum" else self._product(g)

    def _product(self, g: Tensor) -> Tensor:
        """g * y / src; for a zero that is alone at its place, g times the product without it; more than one leave no gradient."""
        zero = eq(self.src, 0)
        count = self.at(self.counted(zeros_of(self.x._type), cast(zero, self.x._type.dtype)))
        alone = logical_and(zero, eq(count, 1))
        without = self.reduced(self.x, where(alone, 1, self.src))
        ordinary = div(self.at(mul(g, conj(self.y))), conj(where(zero, 1, self.src)))
        return where(alone, self.at(mul(g, conj(without))), ordinary)


def _covered(src: Tensor, index_type: TensorType) -> Tensor:
    if src._type.shape == index_type.shape:
        return src
    rank = index_type.rank
    attrs = {"starts": (0,) * rank, "limits": index_type.shape, "steps": (1,) * rank}
    return record(shape_ops.slice_, (src,), attrs)  # type: ignore[no-any-return]


def _reduce_x(g: Tensor, x: Tensor, index: Tensor, src: Tensor, y: Tensor, dim: int, reduce: str, include_self: bool) -> Tensor:
    return _Scatter(x, index, src, y, dim, reduce, include_self).for_x(g)


def _reduce_src(g: Tensor, x: Tensor, index: Tensor, src: Tensor, y: Tensor, dim: int, reduce: str, include_self: bool) -> Tensor:
    return _fitted(_Scatter(x, index, src, y, dim, reduce, include_self).for_src(g), src._type)


derivative(ops.scatter_reduce, x=_reduce_x, src=_reduce_src)


# --- masks --------------------------------------------------------------------------------------


def _masked_src(g: Tensor, mask: Tensor, src_type: TensorType) -> Tensor:
    """Element k of the source went where the mask is True for the (k+1)-th time."""
    zeros = _zeros(g, TensorType(src_type.dtype, (src_type.numel,)))
    if src_type.numel:
        numel = g._type.numel
        flat = record(shape_ops.reshape, (mask,), {"shape": (numel,)})
        taken = record(shape_ops.reshape, (where(mask, g, 0),), {"shape": (numel,)})
        order = sub(record(shape_ops.cumsum, (flat,), {"dim": 0}), 1)
        places = where(flat, order, 0)
        zeros = record(ops.index_add, (zeros, places, taken), {"dim": 0})
    return record(shape_ops.reshape, (zeros,), {"shape": src_type.shape})  # type: ignore[no-any-return]


derivative(ops.masked_scatter, x=lambda g, mask: where(mask, 0, g), src=_masked_src)
not_differentiable(ops.nonzero)
