"""Derivatives of views, of what writes through them, of joining, padding, triangles and running sums.

Formulas record ops rather than views: a gradient is a value of its own, which nobody writes through another.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions.elementwise import conj, div, eq, logical_and, mul, where
from tpc.functions.factories import zeros_of
from tpc.functions.reduction import sum as sum_over
from tpc.ir.ops import shape as ops
from tpc.ir.types import TensorType
from tpc.record import record
from tpc.state import STATE
from tpc.tensor import Tensor

# --- views --------------------------------------------------------------------------------------


def _reshape(g: Tensor, x_type: TensorType) -> Tensor:
    return record(ops.reshape, (g,), {"shape": x_type.shape})  # type: ignore[no-any-return]


def _permute(g: Tensor, dims: tuple[int, ...]) -> Tensor:
    inverse = tuple(sorted(range(len(dims)), key=lambda i: dims[i]))
    return record(ops.permute, (g,), {"dims": inverse})  # type: ignore[no-any-return]


Bounds = tuple[int, ...]


def _slice(g: Tensor, x_type: TensorType, starts: Bounds, limits: Bounds, steps: Bounds) -> Tensor:
    """Zeros around the gradient; between its elements too, where the slice had steps."""
    if all(step == 1 for step in steps):
        high = tuple([n - limit for n, limit in zip(x_type.shape, limits, strict=True)])
        return record(ops.pad, (g,), {"low": starts, "high": high, "value": _zero(g)})  # type: ignore[no-any-return]
    attrs = {"starts": starts, "limits": limits, "steps": steps}
    return record(ops.slice_scatter, (zeros_of(_like(g, x_type)), g), attrs)  # type: ignore[no-any-return]


def _zero(g: Tensor) -> float | complex:
    return 0j if g._type.dtype[0] == "c" else 0.0


def _like(g: Tensor, type: TensorType) -> TensorType:
    """The shape of a type, in the dtype of the gradient."""
    return TensorType(g._type.dtype, type.shape)


def _diagonal(g: Tensor, x_type: TensorType, offset: int, dim1: int, dim2: int) -> Tensor:
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return record(ops.diagonal_scatter, (zeros_of(_like(g, x_type)), g), attrs)  # type: ignore[no-any-return]


derivative(ops.reshape, x=_reshape)
derivative(ops.permute, x=_permute)
derivative(ops.broadcast_to, x=lambda g: g)  # the engine sums down to the operand's shape
derivative(ops.slice_, x=_slice)
derivative(ops.diagonal, x=_diagonal)


# --- writes through views -----------------------------------------------------------------------


def _scatter_base(g: Tensor, src_type: TensorType, starts: Bounds, limits: Bounds, steps: Bounds) -> Tensor:
    attrs = {"starts": starts, "limits": limits, "steps": steps}
    return record(ops.slice_scatter, (g, zeros_of(_like(g, src_type))), attrs)  # type: ignore[no-any-return]


def _scatter_src(g: Tensor, starts: Bounds, limits: Bounds, steps: Bounds) -> Tensor:
    return record(ops.slice_, (g,), {"starts": starts, "limits": limits, "steps": steps})  # type: ignore[no-any-return]


def _diagonal_base(g: Tensor, src_type: TensorType, offset: int, dim1: int, dim2: int) -> Tensor:
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return record(ops.diagonal_scatter, (g, zeros_of(_like(g, src_type))), attrs)  # type: ignore[no-any-return]


def _diagonal_src(g: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return record(ops.diagonal, (g,), {"offset": offset, "dim1": dim1, "dim2": dim2})  # type: ignore[no-any-return]


derivative(ops.slice_scatter, base=_scatter_base, src=_scatter_src)
derivative(ops.diagonal_scatter, base=_diagonal_base, src=_diagonal_src)


# --- joining and moving -------------------------------------------------------------------------


def _part(x: Tensor, dim: int, start: int, limit: int) -> Tensor:
    shape = x._type.shape
    starts, limits = [0] * len(shape), list(shape)
    starts[dim], limits[dim] = start, limit
    return record(ops.slice_, (x,), {"starts": tuple(starts), "limits": tuple(limits), "steps": (1,) * len(shape)})  # type: ignore[no-any-return]


def _cat(g: Tensor, xs_type: Sequence[TensorType], dim: int) -> list[Tensor]:
    parts, start = [], 0
    for type in xs_type:
        parts.append(_part(g, dim, start, start + type.shape[dim]))
        start += type.shape[dim]
    return parts


def _pad(g: Tensor, x_type: TensorType, low: Bounds) -> Tensor:
    limits = tuple([a + n for a, n in zip(low, x_type.shape, strict=True)])
    return record(ops.slice_, (g,), {"starts": low, "limits": limits, "steps": (1,) * len(low)})  # type: ignore[no-any-return]


derivative(ops.cat, xs=_cat)
derivative(ops.flip, x=lambda g, dims: record(ops.flip, (g,), {"dims": dims}))
derivative(ops.pad, x=_pad)
derivative(ops.tril, x=lambda g, diagonal: record(ops.tril, (g,), {"diagonal": diagonal}))
derivative(ops.triu, x=lambda g, diagonal: record(ops.triu, (g,), {"diagonal": diagonal}))


# --- scans --------------------------------------------------------------------------------------


def _cumsum(g: Tensor, dim: int) -> Tensor:
    """Sums of the elements from each on."""
    turned = record(ops.flip, (g,), {"dims": (dim,)})
    return record(ops.flip, (record(ops.cumsum, (turned,), {"dim": dim}),), {"dims": (dim,)})  # type: ignore[no-any-return]


def _cumprod(g: Tensor, x: Tensor, y: Tensor, dim: int) -> Tensor:
    if STATE.grad_enabled:
        return _cumprod_of_others(g, x, dim)
    # Before the first zero: sum over i >= k of g_i y_i / x_k. At it: the same with that zero taken for 1. Behind it: 0.
    zero = eq(x, 0)
    zeros_so_far = record(ops.cumsum, (zero,), {"dim": dim})
    first = logical_and(zero, eq(zeros_so_far, 1))
    before = _cumsum(mul(g, conj(y)), dim)
    without = record(ops.cumprod, (where(first, 1, x),), {"dim": dim})
    at = _cumsum(mul(g, conj(without)), dim)
    return where(eq(zeros_so_far, 0), div(before, conj(where(zero, 1, x))), where(first, at, 0))


def _cumprod_of_others(g: Tensor, x: Tensor, dim: int) -> Tensor:
    """The same without a division, so that it can be differentiated again at zeros: a row for each k, in which x_k is 1.

    gradient_k = sum over i >= k of g_i * product of x_j over j <= i, j != k
    """
    n = x._type.shape[dim]
    shape = x._type.shape[: dim + 1] + x._type.shape[dim:]
    unit = record(ops.eye, (), {"n": n, "m": n, "dtype": "f32"})
    upper = record(ops.triu, (_ones(n),), {"diagonal": 0})
    here, from_here = (eq(_spread(m, dim, len(shape)), 1) for m in (unit, upper))
    rows = record(ops.broadcast_to, (_raised(x, dim),), {"shape": shape})
    products = record(ops.cumprod, (where(here, 1, rows),), {"dim": dim + 1})
    return sum_over(where(from_here, mul(_raised(g, dim), conj(products)), 0), dim + 1)


def _raised(x: Tensor, dim: int) -> Tensor:
    shape = x._type.shape
    return record(ops.reshape, (x,), {"shape": (*shape[:dim], 1, *shape[dim:])})  # type: ignore[no-any-return]


def _spread(matrix: Tensor, dim: int, rank: int) -> Tensor:
    n = matrix._type.shape[0]
    return record(ops.reshape, (matrix,), {"shape": (1,) * dim + (n, n) + (1,) * (rank - dim - 2)})  # type: ignore[no-any-return]


def _ones(n: int) -> Tensor:
    from tpc.functions.factories import ones_of

    return ones_of(TensorType("f32", (n, n)))


derivative(ops.cumsum, x=_cumsum)
derivative(ops.cumprod, x=_cumprod)

not_differentiable(ops.constant, ops.iota, ops.linspace, ops.eye, ops.literal)
