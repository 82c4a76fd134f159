"""Decompositions by their older names, whose results and arguments are in another form than those of `tpc.linalg`."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from tpc.functions import decompositions as new
from tpc.functions.elementwise import stored
from tpc.functions.factories import zeros
from tpc.functions.matrices import all_stored, matrices, same_dtypes, squares
from tpc.functions.shape import adjoint
from tpc.functions.solvers import triangular_solution
from tpc.tensor import Tensor


class SVD(NamedTuple):
    """A = U diag(S) V^H."""

    U: Tensor
    S: Tensor
    V: Tensor


class Triangular(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> SVD:
    """U, S and V (not its adjoint); without `some` U and V are square, without `compute_uv` they hold zeros."""
    if compute_uv:
        u, s, vh = new.svd(input, not some)
        return all_stored(SVD(u, s, adjoint(vh)), out)  # type: ignore[no-any-return]
    *batch, m, n = matrices("linalg.svd", input)._type.shape
    u, v = (zeros((*batch, k, k), dtype=input.dtype) for k in (m, n))
    return all_stored(SVD(u, new.svdvals(input), v), out)  # type: ignore[no-any-return]


def qr(input: Tensor, some: bool = True, *, out: Any = None) -> new.QR:
    """Q and R; without `some` Q is square."""
    return new.qr(input, "reduced" if some else "complete", out=out)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:  # noqa: N803
    """(LU, pivots), with `get_infos` also info; without it a pivot of 0 is an error."""
    made = new.lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    return tuple(made) if get_infos else (made.LU, made.pivots)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """X of A X = b from the factors of A."""
    return new.lu_solve(LU_data, LU_pivots, b, out=out)


def triangular_solve(
    b: Tensor,
    A: Tensor,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Triangular:
    """X of A X = b, of A^T X = b with `transpose`, where one triangle of A counts; and a copy of A."""
    squares("triangular_solve", A)
    same_dtypes("triangular_solve", A, b)
    n, (rows, columns) = A._type.shape[-1], matrices("triangular_solve", b, "b")._type.shape[-2:]
    if n != rows:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}"
        )
    a, up = (A.mT, not upper) if transpose else (A, upper)
    return all_stored(Triangular(triangular_solution(a, b, bool(up), unit=bool(unitriangular)), A.clone()), out)  # type: ignore[no-any-return]


def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.householder_product`."""
    return stored(new.householder_product(input, tau), out)


def _removed(name: str, instead: str) -> NoReturn:
    raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. `torch.{name}`: use `torch.linalg.{instead}`.")


def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> NoReturn:
    """Removed from PyTorch."""
    _removed("symeig", "eigh")


def eig(input: Tensor, eigenvectors: bool = False, *, out: Any = None) -> NoReturn:
    """Removed from PyTorch."""
    _removed("eig", "eig")


def lstsq(input: Tensor, A: Tensor | None = None, *, out: Any = None) -> NoReturn:  # noqa: N803
    """Removed from PyTorch."""
    _removed("lstsq", "lstsq")


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> NoReturn:  # noqa: N803
    """Removed from PyTorch."""
    _removed("solve", "solve")


def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> NoReturn:
    """Removed from PyTorch."""
    _removed("matrix_rank", "matrix_rank")
