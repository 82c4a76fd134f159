"""Decompositions of matrices: QR, eigenvalues, singular values, LU, and what is built on them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tpc.functions import elementwise as e
from tpc.functions.arranging import tril, triu
from tpc.functions.elementwise import stored
from tpc.functions.factories import empty, eye
from tpc.functions.gathering import take_along_dim
from tpc.functions.linalg import matmul
from tpc.functions.matrices import all_stored, fitting, matrices, same_dtypes, squares
from tpc.functions.ordering import argsort
from tpc.functions.reduction import all as all_
from tpc.functions.reduction import amax, sum
from tpc.functions.reduction import any as any_
from tpc.functions.shape import adjoint, broadcast_to, mT, narrow, reshape, unsqueeze
from tpc.functions.solvers import triangular_solution
from tpc.ir.errors import LinAlgError
from tpc.ir.ops import linalg as ops
from tpc.ir.types import NUMPY_DTYPES, real_dtype
from tpc.record import cast, record
from tpc.tensor import Tensor


class QR(NamedTuple):
    """Q has orthonormal columns, R is upper triangular."""

    Q: Tensor
    R: Tensor


class Eigen(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class LU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


class Factors(NamedTuple):
    """L and U in one matrix, and the row (from 1) that each row was swapped with."""

    LU: Tensor
    pivots: Tensor


class CheckedFactors(NamedTuple):
    """The same; `info` is 0, or which pivot is 0, counted from 1."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LeastSquares(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# --- orthogonal and spectral --------------------------------------------------------------------


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> QR:  # noqa: N803
    """A = Q R. With mode "complete" Q is square, with "r" it is empty and R has no derivative."""
    q, r = record(ops.qr, (matrices("linalg.qr", A),), {"mode": mode})
    return all_stored(QR(empty(0, dtype=A.dtype) if mode == "r" else q, r), out)  # type: ignore[no-any-return]


def _hermitian(name: str, a: Tensor, uplo: str) -> tuple[Tensor, Tensor]:
    squares(name, a)
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    return record(ops.eigh, (a,), {"upper": uplo.upper() == "U"})  # type: ignore[no-any-return]


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Eigen:  # noqa: N803
    """Ascending eigenvalues and orthonormal eigenvectors of Hermitian matrices, of which the triangle `UPLO` is looked at.

    The gradient of the vectors is infinite or NaN where eigenvalues are equal; that of the values is always there.
    """
    return all_stored(Eigen(*_hermitian("linalg.eigh", A, UPLO)), out)  # type: ignore[no-any-return]


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Ascending eigenvalues of Hermitian matrices."""
    return stored(_hermitian("linalg.eigh", A, UPLO)[0], out)


def eig(A: Tensor, *, out: Any = None) -> Eigen:  # noqa: N803
    """Eigenvalues and eigenvectors of length 1, always complex. `LinAlgError` for NaN and infinities."""
    return all_stored(Eigen(*record(ops.eig, (squares("linalg.eig", A),))), out)  # type: ignore[no-any-return]


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Eigenvalues, always complex."""
    return stored(record(ops.eig, (squares("linalg.eigvals", A),))[0], out)


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> SVD:  # noqa: N803
    """A = U diag(S) Vh with descending S; U and Vh are square if `full_matrices`. Gradients of their surplus vectors are ignored."""
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    return all_stored(SVD(*record(ops.svd, (matrices("linalg.svd", A),), {"full": bool(full_matrices)})), out)  # type: ignore[no-any-return]


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """Singular values in descending order."""
    return stored(svd(A, False, driver=driver).S, out)


# --- LU -----------------------------------------------------------------------------------------


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> CheckedFactors:  # noqa: N803
    """L and U in one matrix, pivots, and `info`."""
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    made = CheckedFactors(*record(ops.lu, (matrices("torch.linalg.lu_factor", A),)))
    if check_errors:
        _refuse_zero_pivots(made.info)
    return all_stored(made, out)  # type: ignore[no-any-return]


def _refuse_zero_pivots(info: Tensor) -> None:
    if not bool(any_(e.ne(info, 0))):
        return
    found = info.reshape(-1).tolist()
    first = next(i for i, n in enumerate(found) if n)
    where = f"(Batch element {first}): " if info._type.shape else ""
    raise LinAlgError(
        f"torch.linalg.lu_factor: {where}U[{found[first]},{found[first]}] is zero and using it on lu_solve would result in a division by "
        "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Factors:  # noqa: N803
    """L and U in one matrix, and pivots. Raises `LinAlgError` where a pivot is 0."""
    made = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return all_stored(Factors(made.LU, made.pivots), out)  # type: ignore[no-any-return]


def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> LU:  # noqa: N803
    """A = P L U."""
    made = lu_factor_ex(A, pivot=pivot)
    return lu_unpack(made.LU, made.pivots, out=out)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None) -> LU:  # noqa: N803
    """P, L and U from what `lu_factor` gives."""
    m, n = LU_data._type.shape[-2:]
    k = min(m, n)
    p = lower = upper = empty(0, dtype=LU_data.dtype)
    if unpack_pivots:
        p = mT(cast(e.eq(unsqueeze(_order(LU_pivots, m), -1), _iota(m)), LU_data._type.dtype))
    if unpack_data:
        lower = e.add(tril(_first(LU_data, k, -1), -1), eye(m, k, dtype=LU_data.dtype))
        upper = triu(_first(LU_data, k, -2))
    return all_stored(LU(p, lower, upper), out)  # type: ignore[no-any-return]


def _iota(n: int) -> Tensor:
    from tpc.functions.factories import arange

    return arange(n)


def _first(x: Tensor, count: int, dim: int) -> Tensor:
    return x if x._type.shape[dim] == count else narrow(x, dim, 0, count)


def _order(pivots: Tensor, rows: int) -> Tensor:
    return record(ops.lu_permutation, (pivots,), {"rows": rows})  # type: ignore[no-any-return]


def permuted(x: Tensor, pivots: Tensor) -> Tensor:
    """The rows of x swapped as `pivots` say: P^T x."""
    return take_along_dim(x, unsqueeze(_order(pivots, x._type.shape[-2]), -1), -2)


def unpermuted(x: Tensor, pivots: Tensor) -> Tensor:
    """The swaps undone: P x."""
    return take_along_dim(x, unsqueeze(argsort(_order(pivots, x._type.shape[-2])), -1), -2)


def lu_solve(
    LU: Tensor,  # noqa: N803
    pivots: Tensor,
    B: Tensor,  # noqa: N803
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X of A X = B from `lu_factor` of A; of X A = B without `left`, of A^H X = B with `adjoint`."""
    name = "linalg.lu_solve"
    squares(name, LU)
    same_dtypes(name, LU, B)
    matrices(name, B, "B")
    if pivots._type.dtype != "i32":
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    if pivots._type.shape[-1:] != LU._type.shape[-1:]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    fitting(name, LU, B, left)
    return stored(_lu_solution(LU, pivots, B, left, adjoint), out)


def _lu_solution(factors: Tensor, pivots: Tensor, b: Tensor, left: bool, conjugated: bool) -> Tensor:
    if not left:
        return adjoint(_lu_solution(factors, pivots, adjoint(b), True, not conjugated))
    if conjugated:
        x = triangular_solution(adjoint(factors), b, False)
        return unpermuted(triangular_solution(adjoint(factors), x, True, unit=True), pivots)
    x = triangular_solution(factors, permuted(b, pivots), False, unit=True)
    return triangular_solution(factors, x, True)


# --- rank and pseudo-inverse --------------------------------------------------------------------


def _tolerances(a: Tensor, atol: Any, rtol: Any) -> list[Tensor]:
    """Absolute and relative tolerance for each matrix [..., 1, 1]; without any the relative one is eps times the larger size."""
    *batch, m, n = a._type.shape
    dtype = real_dtype(a._type.dtype)
    default = float(_eps(dtype)) * max(m, n)
    if rtol is None:
        rtol = (
            default if atol is None else e.where(e.gt(atol, 0), 0.0, default) if isinstance(atol, Tensor) else 0.0 if atol > 0 else default
        )
    made = []
    for given in (0.0 if atol is None else atol, rtol):
        x = cast(given, dtype) if isinstance(given, Tensor) else _number(given, dtype)
        made.append(unsqueeze(unsqueeze(broadcast_to(x, tuple(batch)), -1), -1))
    return made


def _number(value: Any, dtype: str) -> Tensor:
    from tpc.record import scalar_tensor

    return scalar_tensor(float(value), dtype)


def _eps(dtype: str) -> Any:
    import numpy as np

    return np.finfo(NUMPY_DTYPES[dtype]).eps


def pinv(
    A: Tensor,  # noqa: N803
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol * the largest) count as 0. The gradient takes the rank for constant."""
    squares("linalg.eigh", A) if hermitian else matrices("linalg.pinv", A)
    limits = _tolerances(A, atol, rcond if rtol is None else rtol)
    return stored(record(ops.pinv, (A, *limits), {"hermitian": bool(hermitian)}), out)


def pinverse(input: Tensor, rcond: Any = 1e-15) -> Tensor:
    """The pseudo-inverse; singular values up to `rcond` times the largest count as 0."""
    return pinv(input, rcond)


def matrix_rank(
    A: Tensor,  # noqa: N803
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values are above max(atol, rtol * the largest)."""
    matrices("torch.linalg.matrix_rank", A, "input")
    a = A.detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    sizes = e.abs(eigvalsh(a)) if hermitian else svdvals(a)
    if not sizes._type.shape[-1]:
        return stored(cast(sum(sizes, -1), "i64"), out)
    least, share = (reshape(x, x._type.shape[:-1]) for x in _tolerances(a, atol, rtol))
    limit = e.maximum(least, e.mul(share, amax(sizes, -1, keepdim=True)))
    return stored(sum(cast(e.gt(sizes, limit), "i64"), -1), out)


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> LeastSquares:  # noqa: N803
    """The X of least norm for which A X is nearest to B, by the pseudo-inverse.

    As in PyTorch the residuals are there for the drivers gels, gelsd and gelss where A has more rows than columns and full rank, the rank
    for all but gels, the singular values for gelsd and gelss; what is not there is empty.
    """
    name = "torch.linalg.lstsq"
    if A._type.rank < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not B._type.rank:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A._type.dtype != B._type.dtype:
        from tpc.functions.matrices import spelled

        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {spelled(A._type.dtype)} and other's dtype "
            f"{spelled(B._type.dtype)}"
        )
    matrices(name, A, "input")
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(DRIVERS)})")
    vector = B._type.rank == A._type.rank - 1 and B._type.shape == A._type.shape[:-1]
    b = unsqueeze(B, -1) if vector else B
    m, n = A._type.shape[-2:]
    if b._type.rank < 2 or b._type.shape[-2] != m:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-2)")
    x = matmul(pinv(A, rcond), b)
    nothing = empty(0, dtype=A.dtype)
    rank = empty(0, dtype=_iota(0).dtype) if driver == "gels" else matrix_rank(A, rtol=rcond)
    values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else nothing
    full = m > n and (driver == "gels" or (driver != "gelsy" and bool(all_(e.eq(rank, n)))))
    residuals = sum(e.square(e.abs(e.sub(matmul(A, x), b))), -2) if full else cast(nothing, real_dtype(A._type.dtype))
    return LeastSquares(reshape(x, x._type.shape[:-1]) if vector else x, residuals, rank, cast(values, real_dtype(A._type.dtype)))


# --- others -------------------------------------------------------------------------------------


def matrix_exp(A: Tensor) -> Tensor:  # noqa: N803
    """The matrix exponential: the sum of A^k / k!."""
    return record(ops.matrix_exp, (squares("linalg.matrix_exp", A),))  # type: ignore[no-any-return]


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: N803
    """The first columns of the product of all I - tau_i v_i v_i^H, where v_i is column i of A below its diagonal, with a 1 on it."""
    name = "torch.linalg.householder_product"
    matrices(name, A, "input")
    (m, n), k = A._type.shape[-2:], tau._type.shape[-1]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < k:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    product = broadcast_to(eye(m, n, dtype=A.dtype), A._type.shape)
    vectors = e.add(tril(A, -1), eye(m, n, dtype=A.dtype))
    for i in reversed(range(k)):
        v = narrow(vectors, -1, i, 1)
        factor = unsqueeze(narrow(tau, -1, i, 1), -1)
        product = e.sub(product, e.mul(matmul(v, matmul(adjoint(v), product)), factor))
    return stored(product, out)
