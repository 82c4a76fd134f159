"""Vector and matrix norms. Their gradient at 0 is 0, as in PyTorch."""

from __future__ import annotations

import math
from typing import Any

from tpc.dtype import BY_IR, ir_dtype
from tpc.functions import elementwise as e
from tpc.functions.dims import kept_shape, one_dim, some_dims
from tpc.functions.elementwise import stored
from tpc.functions.reduction import amax, amin, sum
from tpc.functions.shape import flatten, narrow, permute, reshape
from tpc.ir.types import is_complex, is_differentiable, real_dtype
from tpc.record import cast
from tpc.tensor import Tensor


def _p_norm(x: Tensor, p: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The p-norm over `dims`; where it is 0 the root is taken of 1 instead, so that no infinite slope enters the gradient."""
    if p == 0:
        return sum(e.flat(cast(e.ne(x, 0), real_dtype(x._type.dtype)), e.abs(x)), dims, keepdim)
    if p == 1:
        return sum(e.abs(x), dims, keepdim)
    if math.isinf(p):
        if any(x._type.shape[d] == 0 for d in dims):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {p} norm on an empty tensor because the operation does not have an identity"
            )
        return (amax if p > 0 else amin)(e.abs(x), dims, keepdim)
    total = sum(_powers(x, p), dims, keepdim)
    zero = e.eq(total, 0)
    safe = e.where(zero, 1, total)
    root = e.sqrt(safe) if p == 2 else e.pow(safe, 1 / p)
    return e.where(zero, 0.0 if p > 0 else math.inf, root)


def _powers(x: Tensor, p: float) -> Tensor:
    """|x| to the power p."""
    if p == 2 and not is_complex(x._type.dtype):
        return e.square(x)
    size = e.abs(x)
    if p == 2:
        return e.square(size)
    if p > 1:
        return e.pow(size, p)
    zero = e.eq(size, 0)
    return e.where(zero, 0.0 if p > 0 else math.inf, e.pow(e.where(zero, 1, size), p))


def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """The p-norm of the elements along `dim`, of all without it; `ord` may be inf, -inf and 0 (number of non-zeros)."""
    if dtype is not None:
        x = cast(x, ir_dtype(dtype))
    if not is_differentiable(x._type.dtype):
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {BY_IR[x._type.dtype].name}")
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        raise RuntimeError(f"linalg.vector_norm: ord {ord!r} not supported")
    dims = some_dims(dim, x._type.rank)
    if not x._type.shape:
        return stored(_p_norm(reshape(x, (1,)), float(ord), (0,), False), out)
    return stored(_p_norm(x, float(ord), dims, keepdim), out)


def matrix_norm(
    input: Tensor, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """A norm of matrices: "fro", "nuc" (sum of singular values), 2 and -2 (largest, smallest), 1 and -1 (columns), inf and -inf (rows)."""
    if dtype is not None:
        input = cast(input, ir_dtype(dtype))
    if input._type.rank < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (one_dim(d, input._type.rank) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim, out=out)
    if isinstance(ord, bool) or ord not in ("nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord in ("nuc", 2, -2):
        found = _spectral(input, ord, rows, columns)
    else:
        added, searched = (rows, columns) if abs(ord) == 1 else (columns, rows)
        totals = sum(e.abs(input), added, keepdim=True)
        found = reshape((amax if ord > 0 else amin)(totals, searched, keepdim=True), _without(input, rows, columns))
    return stored(reshape(found, kept_shape(input._type.shape, sorted((rows, columns)))) if keepdim else found, out)


def _without(x: Tensor, *dims: int) -> tuple[int, ...]:
    """The shape without some dimensions."""
    return tuple([n for i, n in enumerate(x._type.shape) if i not in dims])


def _spectral(x: Tensor, ord: Any, rows: int, columns: int) -> Tensor:
    """The norms that are functions of the singular values."""
    from tpc.functions.decompositions import svdvals

    rest = [i for i in range(x._type.rank) if i not in (rows, columns)]
    values = svdvals(permute(x, (*rest, rows, columns)))
    return sum(values, -1) if ord == "nuc" or not values._type.shape[-1] else (amax if ord == 2 else amin)(values, -1)


def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The condition number in a matrix norm, 2 without `p`; infinite for singular matrices, 0 for empty ones."""
    from tpc.functions.decompositions import svdvals
    from tpc.functions.factories import zeros
    from tpc.functions.matrices import squares
    from tpc.functions.solvers import inv_ex

    if A._type.rank < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is not None and (isinstance(p, bool) or p not in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf)):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if A._type.numel == 0:
        return stored(zeros(A._type.shape[:-2], dtype=BY_IR[real_dtype(A._type.dtype)]), out)
    if p in (None, 2, -2):
        values = svdvals(A)
        last = values._type.shape[-1] - 1
        largest, smallest = (reshape(narrow(values, -1, i, 1), values._type.shape[:-1]) for i in (0, last))
        return stored(e.div(smallest, largest) if p == -2 else e.div(largest, smallest), out)
    inverse, info = inv_ex(squares(f"linalg.cond(ord={p})", A))
    product = e.mul(matrix_norm(A, p), matrix_norm(e.where(reshape(e.eq(info, 0), (*info._type.shape, 1, 1)), inverse, 1), p))
    return stored(e.where(e.eq(info, 0), product, math.inf), out)


def linalg_norm(
    input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """`tpc.linalg.norm`: a vector norm or a matrix norm, by `ord` and the number of dimensions."""
    if dim is None and ord is None:
        found = vector_norm(flatten(input), 2, dtype=dtype)
        return stored(reshape(found, (1,) * input._type.rank) if keepdim else found, out)
    dims = (dim,) if isinstance(dim, int) else tuple(range(input._type.rank)) if dim is None else tuple(dim)
    if dim is None and len(dims) > 2:
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " + f"{len(dims)}D.")
    if len(dims) == 2 and ord is not None:
        return matrix_norm(input, ord, dims, keepdim, dtype=dtype, out=out)
    return vector_norm(input, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Tensor | None = None, dtype: Any = None) -> Tensor:
    """The p-norm of all elements, or along `dim`; "fro" is 2."""
    if p == "nuc":
        return nuclear_norm(cast(input, ir_dtype(dtype)) if dtype is not None else input, dim, keepdim, out=out)
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values of matrices, which lie in the two dimensions `dim`."""
    if dim is None and input._type.rank != 2:
        dim = tuple(range(input._type.rank))
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim, out=out)


def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The square root of the sum of squares, along one or two dimensions."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return vector_norm(input, 2, dims or None, keepdim, out=out)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(e.sub(input, other), p)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice along `dim` scaled down to a p-norm of at most `maxnorm`."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if input._type.rank < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input._type.rank} dimensions")
    dim = one_dim(dim, input._type.rank)
    others = tuple(i for i in range(input._type.rank) if i != dim)
    sizes = vector_norm(input, p, others, keepdim=True)
    factor = e.where(e.gt(sizes, maxnorm), e.div(maxnorm, e.add(sizes, 1e-7)), 1.0)
    return e.mul(input, factor)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divided by its p-norm along `dim`."""
    return stored(e.div(input, e.clamp_min(vector_norm(input, p, dim, keepdim=True), eps)), out)
