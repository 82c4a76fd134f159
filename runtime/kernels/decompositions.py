"""Decompositions of matrices, and what is built on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tpc.ir.errors import LinAlgError
from tpc.ir.program import Op
from tpc.runtime.kernels.linalg import Made, adjoint, factorised, refused, results, stack_of

Decompose = Callable[[np.ndarray], Any]


def _converging(name: str, work: Decompose, why: str) -> Decompose:
    """`work`; where it fails, the error names the first matrix on which it does."""

    def run(a: np.ndarray) -> Any:
        try:
            return work(a)
        except np.linalg.LinAlgError:
            info = np.array([_fails(work, matrix) for matrix in stack_of(a)], np.int32)
            raise refused(name, info.reshape(a.shape[:-2]), lambda _: f"The algorithm failed to converge because {why}.") from None

    return run


def _fails(work: Decompose, matrix: np.ndarray) -> bool:
    try:
        work(matrix)
    except np.linalg.LinAlgError:
        return True
    return False


def _of_finite(work: Decompose) -> Decompose:
    """`work`, which fails on matrices with NaN or infinities in them."""

    def run(a: np.ndarray) -> Any:
        if not np.isfinite(a).all():
            raise np.linalg.LinAlgError
        return work(a)

    return run


def _eigh(upper: bool) -> Decompose:
    work = _of_finite(lambda a: np.linalg.eigh(a, "U" if upper else "L"))
    return _converging("linalg.eigh", work, "the input matrix is ill-conditioned or has too many repeated eigenvalues")


def _svd(full: bool) -> Decompose:
    work = _of_finite(lambda a: np.linalg.svd(a, full))
    return _converging("linalg.svd", work, "the input matrix contained non-finite values")


@results("qr")
def _(op: Op) -> Made:
    mode: Any = op.attrs["mode"]
    if mode == "r":
        return lambda a: (np.zeros(op.types[0].shape), np.linalg.qr(a, "r"))
    return lambda a: tuple(np.linalg.qr(a, mode))


@results("eigh")
def _(op: Op) -> Made:
    work = _eigh(bool(op.attrs["upper"]))
    return lambda a: tuple(work(a))


@results("eig")
def _(op: Op) -> Made:
    def run(a: np.ndarray) -> tuple[Any, ...]:
        if not np.isfinite(a).all():
            raise LinAlgError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
        return tuple(_converging("linalg.eig", np.linalg.eig, "the input matrix is ill-conditioned")(a))

    return run


@results("svd")
def _(op: Op) -> Made:
    work = _svd(bool(op.attrs["full"]))
    return lambda a: tuple(work(a))


@results("lu")
def _(op: Op) -> Made:
    return factorised


@results("lu_permutation")
def _(op: Op) -> Made:
    rows: Any = op.attrs["rows"]

    def run(pivots: np.ndarray) -> tuple[Any, ...]:
        swaps = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]).astype(np.int64) - 1
        order = np.broadcast_to(np.arange(rows), (len(swaps), rows)).copy()
        every = np.arange(len(swaps))
        for i in range(swaps.shape[-1]):
            here, there = order[:, i].copy(), order[every, swaps[:, i]]
            order[:, i], order[every, swaps[:, i]] = there, here
        return (order.reshape(*pivots.shape[:-1], rows),)

    return run


@results("pinv")
def _(op: Op) -> Made:
    hermitian = bool(op.attrs["hermitian"])
    work = _eigh(False) if hermitian else _svd(False)

    def run(a: np.ndarray, atol: np.ndarray, rtol: np.ndarray) -> tuple[Any, ...]:
        if hermitian:
            s, u = work(a)
            vh = adjoint(u)
        else:
            u, s, vh = work(a)
        size = np.abs(s)
        kept = size > np.maximum(atol[..., 0], rtol[..., 0] * size.max(-1, keepdims=True, initial=0))
        inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
        return ((adjoint(vh) * inverse[..., None, :]) @ adjoint(u),)

    return run


# --- the exponential ----------------------------------------------------------------------------

PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
"""exp(x) is about p(x) / p(-x), where these are the coefficients of p divided by those of its powers of x."""
REACH = 5.371920351148152
"""Up to this norm the quotient is exact to double precision (Higham, The scaling and squaring method for the matrix exponential)."""


def exponential(a: np.ndarray) -> np.ndarray:
    """exp(A) = exp(A / 2^s)^(2^s), with s for each matrix."""
    norm = np.abs(a).sum(-2).max(-1, initial=0)
    exponent = np.ceil(np.log2(np.where(np.isfinite(norm) & (norm > REACH), norm / REACH, 1))).astype(np.int64)
    x = a * np.ldexp(1.0, -exponent)[..., None, None]
    square, even, odd = x @ x, np.zeros_like(x), np.zeros_like(x)
    power = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for k in range(0, 14, 2):
        even, odd = even + PADE[k] * power, odd + PADE[k + 1] * power
        power = power @ square
    odd = x @ odd
    try:
        y = np.linalg.solve(even - odd, even + odd)
    except np.linalg.LinAlgError:
        y = np.full_like(a, np.nan)
    for step in range(int(exponent.max(initial=0))):
        y = np.where((step < exponent)[..., None, None], y @ y, y)
    return y


def _wide(op: Op) -> Any:
    """Single precision is computed in double."""
    return np.complex128 if op.types[0].dtype[0] == "c" else np.float64


@results("matrix_exp")
def _(op: Op) -> Made:
    wide = _wide(op)
    return lambda a: (exponential(a.astype(wide)),)


@results("matrix_exp_derivative")
def _(op: Op) -> Made:
    """The exponential of [[A, H], [0, A]] has the derivative of that of A in the direction H in its corner."""
    wide, shape, n = _wide(op), op.types[0].shape, op.types[0].shape[-1]

    def run(a: np.ndarray, h: np.ndarray) -> tuple[Any, ...]:
        rows = np.zeros((*shape[:-2], 2 * n, 2 * n), wide)
        rows[..., :n, :n] = rows[..., n:, n:] = a
        rows[..., :n, n:] = h
        return (exponential(rows)[..., :n, n:],)

    return run
