"""Linear algebra: products here, solvers and decompositions on `numpy.linalg`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tpc.ir.errors import LinAlgError
from tpc.ir.program import Op
from tpc.runtime import blas
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel

Made = Callable[..., tuple[Any, ...]]


@kernel("matmul")
def _(op: Op) -> Run:
    if op.results[0].type.dtype == "f16":

        def half(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
            return copied(np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16), out)

        return half
    # np.dot is the same BLAS calls by a shorter way: a microsecond less, and BLAS also where one size is 1.
    flat = op.results[0].type.dtype[0] in "fc" and all(v.type.rank == 2 for v in op.operands)
    numpy: Run = np.dot if flat else np.matmul
    if not _is_large(op) or (choice := blas.choice()) == "numpy":
        return numpy
    if choice == "mkl":
        return _by_blas(op, numpy)
    return _few_rows(op) if flat and op.result.type.shape[0] in FEW_ROWS and blas.threads() == 1 else numpy


BLAS_FROM = 1 << 18
"""From so many multiplications on a product is worth the call of another library; smaller ones NumPy's library does on one thread."""
FEW_ROWS = range(8, 193)
"""So many rows times a transposed matrix MKL multiplies in 0.4 to 0.95 of the time of NumPy's library, on one thread. Elsewhere it is no
faster, and two libraries with threads of their own wait for each other."""


def _is_large(op: Op) -> bool:
    """Whether a product is one that `blas` has, and large enough."""
    (a, b), y = (v.type for v in op.operands), op.result.type
    same = all(x.shape[:-2] in ((), y.shape[:-2]) for x in (a, b))
    return y.dtype in ("f32", "f64") and same and math.prod(y.shape[-2:]) * a.shape[-1] > BLAS_FROM


def _by_blas(op: Op, numpy: Run) -> Run:
    """Matrix by matrix or stack by stack; by NumPy where an operand has no order that BLAS reads."""
    y = op.result.type
    parts = [tuple(index if v.type.rank > 2 else () for v in (*op.operands, op.result)) for index in np.ndindex(y.shape[:-3])]

    def run(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        made = np.empty(y.shape, y.numpy_dtype) if out is None else out
        if all(blas.multiply(a[i], b[j], made[k]) for i, j, k in parts):
            return made
        return numpy(a, b, out=made)

    return run


def _few_rows(op: Op) -> Run:
    """By MKL where the second operand is a transposed matrix."""
    by_blas, item = _by_blas(op, np.dot), op.result.type.numpy_dtype.itemsize

    def run(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        return (by_blas if b.strides[0] == item and a.strides[1] == item else np.dot)(a, b, out)

    return run


# --- what they share ----------------------------------------------------------------------------


def results(name: str) -> Callable[[Callable[[Op], Made]], None]:
    """Enters a kernel from a factory of functions that return all results as new arrays."""

    def enter(factory: Callable[[Op], Made]) -> None:
        @kernel(name)
        def _(op: Op) -> Run:
            make, types = factory(op), [t.numpy_dtype for t in op.types]
            single = len(types) == 1

            def run(*operands: np.ndarray | None, out: Any = None) -> Any:
                if len(operands) > count:
                    *operands, out = operands  # type: ignore[assignment]
                with np.errstate(all="ignore"):
                    made = [
                        np.ascontiguousarray(x, t) if np.ndim(x) else np.asarray(x, t) for x, t in zip(make(*operands), types, strict=True)
                    ]
                if out is not None:
                    for x, place in zip(made, (out,) if single else out, strict=True):
                        np.copyto(place, x)
                    return out
                return made[0] if single else tuple(made)

            count = len(op.operands)
            return run

    return enter


def adjoint(a: np.ndarray) -> np.ndarray:
    """The conjugate transposes."""
    return np.asarray(np.conj(np.swapaxes(a, -1, -2)))


def stack_of(a: np.ndarray) -> np.ndarray:
    """The matrices in one row."""
    return a.reshape(-1, *a.shape[-2:])


def _one_by_one(a: np.ndarray, work: Callable[[np.ndarray], Any], fault: Callable[[np.ndarray], int]) -> tuple[np.ndarray, np.ndarray]:
    """`work` on matrix after matrix: results, NaN where it fails, and what `fault` says of those."""
    matrices = stack_of(a)
    made, info = np.full_like(matrices, np.nan, order="C"), np.zeros(len(matrices), np.int32)
    for i, matrix in enumerate(matrices):
        try:
            made[i] = work(matrix)
        except np.linalg.LinAlgError:
            info[i] = fault(matrix)
    return made.reshape(a.shape), info.reshape(a.shape[:-2])


def refused(name: str, info: np.ndarray, why: Callable[[int], str]) -> LinAlgError:
    """The error for the first matrix that failed; `why` gets its info."""
    first = int(np.flatnonzero(info)[0])
    where = f"(Batch element {first}): " if info.ndim else ""
    return LinAlgError(f"{name}: {where}{why(int(info.reshape(-1)[first]))}")


def no_info(a: np.ndarray) -> np.ndarray:
    return np.zeros(a.shape[:-2], np.int32)


# --- factors and solvers ------------------------------------------------------------------------


def zero_pivot(matrix: np.ndarray) -> int:
    """Which pivot of the elimination of a singular matrix is 0, counted from 1."""
    _, _, info = factorised(matrix)
    return int(info) or len(matrix)


PANEL = 32
"""Columns that are eliminated one by one, before the rest of the matrix is brought up to date by a product."""


def factorised(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and U in one matrix, pivots and the first zero pivot, both counted from 1, by elimination of all matrices side by side."""
    *batch, m, n = a.shape
    k = min(m, n)
    lu = np.array(a.reshape(math.prod(batch), m, n))
    pivots, info = np.zeros((len(lu), k), np.int32), np.zeros(len(lu), np.int32)
    every = np.arange(len(lu))
    for first in range(0, k, PANEL):
        last = min(first + PANEL, k)
        for j in range(first, last):
            column = lu[:, j:, j]
            # LAPACK's measure of complex numbers
            found = j + np.argmax(np.abs(column.real) + np.abs(column.imag), -1)
            pivots[:, j] = found + 1
            above, below = lu[every, j].copy(), lu[every, found].copy()
            lu[every, j], lu[every, found] = below, above
            pivot = lu[:, j, j]
            info = np.where((info == 0) & (pivot == 0), j + 1, info).astype(np.int32)
            lu[:, j + 1 :, j] /= np.where(pivot == 0, 1, pivot)[:, None]
            lu[:, j + 1 :, j + 1 : last] -= lu[:, j + 1 :, j, None] * lu[:, None, j, j + 1 : last]
        if last < n:
            lu[:, first:last, last:] = triangular(lu[:, first:last, first:last], lu[:, first:last, last:], upper=False, unit=True)
            lu[:, last:, last:] -= lu[:, last:, first:last] @ lu[:, first:last, last:]
    return lu.reshape(a.shape), pivots.reshape(*batch, k), info.reshape(batch)


def _cholesky(a: np.ndarray) -> np.ndarray:
    """The factor; LAPACK's test for positive numbers lets NaN through in some versions."""
    factor = np.linalg.cholesky(a)
    if np.isnan(np.diagonal(factor, 0, -2, -1)).any():
        raise np.linalg.LinAlgError
    return factor


def _minor(matrix: np.ndarray) -> int:
    """The order of the first leading minor that is not positive-definite, by bisection."""
    low, high = 0, len(matrix)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _cholesky(matrix[:middle, :middle])
            low = middle
        except np.linalg.LinAlgError:
            high = middle
    return high


def _indefinite(order: int) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
        f"{order} is not positive-definite)."
    )


def _singular(pivot: int) -> str:
    return f"The diagonal element {pivot} is zero, the inversion could not be completed because the input matrix is singular."


def _checking(op: Op, name: str, work: Any, fault: Callable[[np.ndarray], int], why: Callable[[int], str]) -> Made:
    check = bool(op.attrs["check"])

    def run(a: np.ndarray) -> tuple[Any, ...]:
        try:
            return work(a), no_info(a)
        except np.linalg.LinAlgError:
            made, info = _one_by_one(a, work, fault)
        if check and info.any():
            raise refused(name, info, why)
        return made, info

    return run


@results("cholesky")
def _(op: Op) -> Made:
    return _checking(op, "linalg.cholesky", _cholesky, _minor, _indefinite)


@results("inv")
def _(op: Op) -> Made:
    return _checking(op, "linalg.inv", np.linalg.inv, zero_pivot, _singular)


@results("solve")
def _(op: Op) -> Made:
    check = bool(op.attrs["check"])

    def run(a: np.ndarray, b: np.ndarray) -> tuple[Any, ...]:
        # NumPy 1 takes a b of one axis less for a stack of vectors
        b = b.reshape((1,) * (a.ndim - b.ndim) + b.shape)
        try:
            return np.linalg.solve(a, b), no_info(a)
        except np.linalg.LinAlgError:
            _, info = _one_by_one(a, np.linalg.inv, zero_pivot)
        if check:
            raise refused("torch.linalg.solve", info, lambda pivot: "The solver failed because the input matrix is singular.")
        good = np.where((info == 0)[..., None, None], a, np.eye(a.shape[-1], dtype=a.dtype))
        return np.where((info == 0)[..., None, None], np.linalg.solve(good, b), np.nan), info

    return run


BLOCK = 64
"""Triangles up to this size are solved at once: LAPACK's elimination finds nothing to do in an upper triangle and substitutes."""


def substituted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """X of A X = B for upper triangular A, whose lower triangle holds zeros: halves by halves."""
    n = a.shape[-1]
    if n <= BLOCK:
        try:
            return np.asarray(np.linalg.solve(a, b))
        except np.linalg.LinAlgError:
            return _row_by_row(a, b)
    half = n // 2
    low = substituted(a[..., half:, half:], b[..., half:, :])
    high = substituted(a[..., :half, :half], b[..., :half, :] - a[..., :half, half:] @ low)
    return np.concatenate([np.broadcast_to(high, (*low.shape[:-2], *high.shape[-2:])), low], -2)


def _row_by_row(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same where a diagonal element is 0: infinities and NaN come out where they belong."""
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])))
    for i in reversed(range(a.shape[-1])):
        x[..., i, :] /= a[..., i, i, None]
        x[..., :i, :] -= a[..., :i, i, None] * x[..., i, None, :]
    return x


def triangular(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool = False) -> np.ndarray:
    """X of A X = B, where one triangle of A counts."""
    # a lower triangle is an upper one seen from its last corner
    a = np.triu(a if upper else a[..., ::-1, ::-1])
    if unit:
        diagonal = np.arange(a.shape[-1])
        a[..., diagonal, diagonal] = 1
    b = b.reshape((1,) * (a.ndim - b.ndim) + b.shape)
    return substituted(a, b) if upper else substituted(a, b[..., ::-1, :])[..., ::-1, :]


@results("solve_triangular")
def _(op: Op) -> Made:
    upper, unit = bool(op.attrs["upper"]), bool(op.attrs["unitriangular"])
    return lambda a, b: (triangular(a, b, upper, unit),)


@results("cholesky_solve")
def _(op: Op) -> Made:
    upper, check = bool(op.attrs["upper"]), bool(op.attrs["check"])

    def run(b: np.ndarray, factor: np.ndarray) -> tuple[Any, ...]:
        if check and (zeros := np.diagonal(factor, 0, -2, -1) == 0).any():
            raise refused("cholesky_inverse", np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0), _singular)
        first, second = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
        return (triangular(second, triangular(first, b, False), True),)

    return run


# --- determinants -------------------------------------------------------------------------------


def products_of_others(s: np.ndarray, *others: int) -> np.ndarray:
    """For each element of the last axis of s the product of all elements but it and `others`."""
    kept = ~np.eye(s.shape[-1], dtype=bool)
    kept[:, others] = False
    return np.asarray(np.prod(np.where(kept, s[..., None, :], 1), -1))


def _unitary_det(u: np.ndarray, vh: np.ndarray) -> Any:
    return (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]


def cofactors(a: np.ndarray) -> np.ndarray:
    """det(A) A^-T: by the inverse where that is accurate, else by singular values, of which some may be 0."""
    try:
        inverse = np.linalg.inv(a)
        with np.errstate(all="ignore"):
            condition = np.max(np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1)), initial=0)
            if condition < np.finfo(a.dtype).eps ** -0.25:
                return np.asarray(np.linalg.det(a)[..., None, None] * np.swapaxes(inverse, -1, -2))
    except np.linalg.LinAlgError:
        pass
    u, s, vh = np.linalg.svd(a)
    return np.asarray(_unitary_det(u, vh) * ((np.conj(u) * products_of_others(s)[..., None, :]) @ np.conj(vh)))


@results("det")
def _(op: Op) -> Made:
    return lambda a: (np.linalg.det(a),)


@results("slogdet")
def _(op: Op) -> Made:
    return lambda a: tuple(np.linalg.slogdet(a))


@results("cofactor")
def _(op: Op) -> Made:
    return lambda a: (cofactors(a),)


@results("cofactor_derivative")
def _(op: Op) -> Made:
    """In the bases of A = U S V^H the determinant of S + M is to second order in M the sum over i < j of
    (M_ii M_jj - M_ij M_ji) times the product of all other singular values: that is differentiated once by M.
    """

    def run(a: np.ndarray, h: np.ndarray) -> tuple[Any, ...]:
        u, s, vh = np.linalg.svd(a)
        m = adjoint(u) @ h @ adjoint(vh)
        inner, diagonal = np.empty_like(m), np.diagonal(m, 0, -2, -1)
        for i in range(s.shape[-1]):
            others = products_of_others(s, i)
            others[..., i] = 0
            inner[..., i, :] = -others * m[..., :, i]
            inner[..., i, i] = np.sum(others * diagonal, -1)
        return (_unitary_det(u, vh) * (np.conj(u) @ inner @ np.conj(vh)),)

    return run
