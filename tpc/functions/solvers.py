"""Linear equations, inverses and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tpc.functions import elementwise as e
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import stored
from tpc.functions.factories import eye
from tpc.functions.matrices import all_stored, fitting, matrices, same_dtypes, squares
from tpc.functions.shape import adjoint, broadcast_to, mT, permute, reshape, unsqueeze
from tpc.ir.ops import linalg as ops
from tpc.ir.types import is_complex
from tpc.record import record
from tpc.tensor import Tensor


class Solved(NamedTuple):
    """A solution; `info` is 0 where there is one, else which pivot is zero, counted from 1."""

    result: Tensor
    info: Tensor


class Inverted(NamedTuple):
    """Inverses; `info` is 0 where there is one, else which pivot is zero, counted from 1."""

    inverse: Tensor
    info: Tensor


class SignAndLog(NamedTuple):
    """A determinant as sign * exp(logabsdet)."""

    sign: Tensor
    logabsdet: Tensor


# --- equations ----------------------------------------------------------------------------------


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Solved:  # noqa: N803
    """X of A X = B (of X A = B without `left`) and `info`; X is NaN where A is singular, unless `check_errors`."""
    return all_stored(Solved(*_solved("linalg.solve", A, B, left, check_errors)), out)  # type: ignore[no-any-return]


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """X of A X = B (of X A = B without `left`). B holds matrices, or vectors where it is a vector or has the shape of A without a column.

    Raises `LinAlgError` where A is singular.
    """
    return stored(_solved("linalg.solve", A, B, left, True)[0], out)


def _solved(name: str, a: Tensor, b: Tensor, left: bool, check: bool) -> tuple[Tensor, Tensor]:
    squares(name, a)
    same_dtypes(name, a, b)
    vector = b._type.rank == 1 or (b._type.rank == a._type.rank - 1 and b._type.shape == a._type.shape[:-1])
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case {name} is equivalent to "
            "B / A.squeeze(-1)"
        )
    if not b._type.shape:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    columns = unsqueeze(b, -1) if vector else b
    fitting(name, a, columns, left)
    if left:
        x, info = record(ops.solve, (a, columns), {"check": check})
    else:
        x, info = record(ops.solve, (mT(a), mT(columns)), {"check": check})
        x = mT(x)
    batch = x._type.shape[:-2]
    return reshape(x, x._type.shape[:-1]) if vector else x, broadcast_to(info, batch)


def solve_triangular(
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X of A X = B (of X A = B without `left`), where A counts as triangular: its other triangle is not looked at.

    With `unitriangular` its diagonal counts as ones. A zero on the diagonal gives infinities and NaN, no error.
    """
    name = "linalg.solve_triangular"
    squares(name, A)
    same_dtypes(name, A, B)
    matrices(name, B, "B")
    fitting(name, A, B, left)
    return stored(triangular_solution(A, B, bool(upper), left, bool(unitriangular)), out)


def triangular_solution(a: Tensor, b: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
    """`solve_triangular` of operands that are known to fit."""
    if left:
        return record(ops.solve_triangular, (a, b), {"upper": upper, "unitriangular": unit})  # type: ignore[no-any-return]
    return mT(triangular_solution(mT(a), mT(b), not upper, True, unit))


# --- positive-definite matrices -----------------------------------------------------------------


class Cholesky(NamedTuple):
    """A factor; `info` is 0 where there is one, else the order of the first leading minor that is not positive-definite."""

    L: Tensor
    info: Tensor


def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Cholesky:
    """The Cholesky factor and `info`; the factor is NaN where there is none, unless `check_errors`."""
    return all_stored(Cholesky(*_cholesky("linalg.cholesky", input, upper, check_errors)), out)  # type: ignore[no-any-return]


def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The lower triangular L of A = L L^H, or with `upper` U of A = U^H U. Only that triangle of A is looked at.

    Raises `LinAlgError` where A is not positive-definite.
    """
    return stored(_cholesky("linalg.cholesky", A, upper, True)[0], out)


def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The older spelling of `linalg.cholesky`."""
    return stored(_cholesky("cholesky", input, upper, True)[0], out)


def _cholesky(name: str, a: Tensor, upper: bool, check: bool) -> tuple[Tensor, Tensor]:
    squares(name, a)
    lower, info = record(ops.cholesky, (adjoint(a) if upper else a,), {"check": check})
    return adjoint(lower) if upper else lower, info


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """X of A X = B from the Cholesky factor of A."""
    for x, called in ((B, "b"), (L, "u")):
        if x._type.rank < 2:
            raise RuntimeError(f"{called} should have at least 2 dimensions, but has {x._type.rank} dimensions instead")
    squares("cholesky_solve", L)
    same_dtypes("cholesky_solve", L, B)
    n, (rows, columns) = L._type.shape[-1], B._type.shape[-2:]
    if n != rows:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}"
        )
    return stored(record(ops.cholesky_solve, (B, L), {"upper": bool(upper), "check": False}), out)


def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The inverse of A from its Cholesky factor. Raises `LinAlgError` where the factor has a zero on the diagonal."""
    squares("cholesky_inverse", L)
    whole = eye(L._type.shape[-1], dtype=L.dtype)
    return stored(record(ops.cholesky_solve, (whole, L), {"upper": bool(upper), "check": True}), out)


# --- inverses and determinants ------------------------------------------------------------------


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Inverted:  # noqa: N803
    """The inverse and `info`; the inverse is NaN where there is none, unless `check_errors`."""
    return all_stored(Inverted(*record(ops.inv, (squares("linalg.inv", A),), {"check": bool(check_errors)})), out)  # type: ignore[no-any-return]


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The inverse. Raises `LinAlgError` where the matrix is singular."""
    return stored(record(ops.inv, (squares("linalg.inv", A),), {"check": True})[0], out)


def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse. Raises `LinAlgError` where the matrix is singular."""
    return inv(input, out=out)


def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The determinant; its gradient, the cofactors, is there for singular matrices too."""
    return stored(record(ops.det, (squares("linalg.det", A),)), out)


def slogdet(A: Tensor, *, out: Any = None) -> SignAndLog:  # noqa: N803
    """The determinant as sign * exp(logabsdet); of a singular matrix (0, -inf)."""
    return all_stored(SignAndLog(*record(ops.slogdet, (squares("linalg.slogdet", A),))), out)  # type: ignore[no-any-return]


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where that is negative, -inf where it is 0."""
    sign, log = record(ops.slogdet, (squares("logdet", input),))
    if is_complex(input._type.dtype):
        return e.add(e.log(sign), log)
    return e.where(e.eq(sign, -1), math.nan, log)


# --- tensors as matrices ------------------------------------------------------------------------


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The inverse of `tensordot` with A over its first `ind` dimensions: the inverse of A as a matrix."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = A._type.shape
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got " + f"{columns} != {rows}"
        )
    return stored(reshape(inv(reshape(A, (rows, columns))), (*shape[ind:], *shape[:ind])), out)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """X of tensordot(A, X, X.ndim) = B, with the dimensions `dims` of A moved to its end first."""
    if dims is not None:
        moved = [one_dim(d, A._type.rank) for d in dims]
        A = permute(A, (*[i for i in range(A._type.rank) if i not in moved], *moved))  # noqa: N806
    shape, size = A._type.shape[B._type.rank :], math.prod(A._type.shape[B._type.rank :])
    if size != math.prod(A._type.shape[: B._type.rank]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{size} != {math.prod(A._type.shape[: B._type.rank])}"
        )
    return stored(reshape(solve(reshape(A, (-1, size)), reshape(B, (-1,))), shape), out)
