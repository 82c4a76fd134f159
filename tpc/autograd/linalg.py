"""Derivatives of products, solvers and decompositions of matrices.

For a function of A whose differential is dY, the gradient is the G for which <G, dA> = <g, dY>, with <X, Y> = Re tr(X^H Y). Batch
dimensions that were broadcast are summed by the engine.
"""

from __future__ import annotations

from typing import Any

from tpc.autograd.rules import derivative
from tpc.functions import elementwise as f
from tpc.functions.arranging import tril, triu
from tpc.functions.elementwise import conj
from tpc.functions.linalg import matmul
from tpc.functions.reduction import sum
from tpc.functions.shape import adjoint, diagonal, mT, unsqueeze
from tpc.functions.solvers import det, inv, inv_ex, solve_ex, triangular_solution
from tpc.ir.ops import linalg as ops
from tpc.ir.types import is_complex
from tpc.record import record
from tpc.tensor import Tensor

Grads = list[Tensor | None]


derivative(ops.matmul, a=lambda g, b: matmul(g, mT(conj(b))), b=lambda g, a: matmul(mT(conj(a)), g))


# --- factors and solvers ------------------------------------------------------------------------


def _cholesky(g: list[Any], y: Tensor) -> Tensor:
    # dL = L Phi(L^-1 dA L^-H), where Phi takes the lower triangle with half the diagonal
    inner = matmul(adjoint(y), g[0])
    whole = f.mul(f.add(tril(inner), adjoint(tril(inner, -1))), 0.5)
    return triangular_solution(adjoint(y), triangular_solution(y, whole, False, left=False), True)


def _cholesky_solve_b(g: Tensor, factor: Tensor, upper: bool) -> Tensor:
    return record(ops.cholesky_solve, (g, factor), {"upper": upper, "check": False})  # type: ignore[no-any-return]


def _cholesky_solve_factor(g: Tensor, factor: Tensor, y: Tensor, upper: bool) -> Tensor:
    # as the solution of (L L^H) X = B for whatever L: PyTorch's gradient fills both triangles
    half = matmul(_cholesky_solve_b(g, factor, upper), adjoint(y))
    whole = f.neg(f.add(half, adjoint(half)))
    return matmul(factor, whole) if upper else matmul(whole, factor)


def _inv(g: list[Any], y: Tensor) -> Tensor:
    # dY = -Y dA Y
    back = adjoint(y)
    return f.neg(matmul(matmul(back, g[0]), back))


def _solve_b(g: list[Any], a: Tensor) -> Tensor:
    return solve_ex(adjoint(a), g[0]).result


def _solve_a(g: list[Any], a: Tensor, y: Tensor) -> Tensor:
    # A dX = dB - dA X
    return f.neg(matmul(_solve_b(g, a), adjoint(y)))


def _triangular_b(g: Tensor, a: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    return triangular_solution(adjoint(a), g, not upper, unit=unitriangular)


def _triangular_a(g: Tensor, a: Tensor, y: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    whole = f.neg(matmul(_triangular_b(g, a, upper, unitriangular), adjoint(y)))
    return triu(whole, int(unitriangular)) if upper else tril(whole, -int(unitriangular))


derivative(ops.cholesky, a=_cholesky)
derivative(ops.cholesky_solve, b=_cholesky_solve_b, factor=_cholesky_solve_factor)
derivative(ops.inv, a=_inv)
derivative(ops.solve, a=_solve_a, b=_solve_b)
derivative(ops.solve_triangular, a=_triangular_a, b=_triangular_b)


# --- determinants -------------------------------------------------------------------------------


def _each(x: Tensor) -> Tensor:
    """A number for each matrix, as 1 x 1 matrices."""
    return unsqueeze(unsqueeze(x, -1), -1)


def _cofactor_derivative(a: Tensor, h: Tensor) -> Tensor:
    return record(ops.cofactor_derivative, (a, h))  # type: ignore[no-any-return]


def _third(g: Tensor, a: Tensor, h: Tensor) -> Tensor:
    """Third derivative of the determinant, from B = A^-1: with t(X) = tr(B X), its value at directions X, Y, Z is det(A) times
    t(X) t(Y) t(Z) - t(X) t(YZ) - t(Y) t(XZ) - t(Z) t(XY) + t(XYZ) + t(XZY), where t of a product is tr(B X B Y ...).
    """
    b = inv(a)
    x, y = matmul(b, conj(g)), matmul(b, h)
    tx, ty, txy = (_each(_trace(m)) for m in (x, y, matmul(x, y)))
    inner = f.sub(f.mul(f.sub(f.mul(tx, ty), txy), b), f.mul(tx, matmul(y, b)))
    inner = f.sub(inner, f.mul(ty, matmul(x, b)))
    inner = f.add(inner, matmul(f.add(matmul(x, y), matmul(y, x)), b))
    return conj(f.mul(_each(det(a)), mT(inner)))


def _trace(x: Tensor) -> Tensor:
    return sum(diagonal(x, 0, -2, -1), -1)


def _slogdet(grads: Grads, a: Tensor, y: Tensor) -> Tensor | None:
    # d log det = tr(A^-1 dA): its real part moves the modulus, its imaginary part turns the sign
    sign, log = grads
    scale: Any = 0.0 if log is None else log
    if sign is not None and is_complex(a._type.dtype):
        scale = f.sub(scale, f.mul(f.imag(f.mul(conj(sign), y)), 1j))
    elif log is None:
        return None
    return f.mul(_each(scale), adjoint(inv_ex(a).inverse))


derivative(ops.det, a=lambda g, a: f.mul(_each(g), conj(record(ops.cofactor, (a,)))))
derivative(ops.cofactor, a=lambda g, a: conj(_cofactor_derivative(a, conj(g))))
derivative(ops.cofactor_derivative, a=_third, h=lambda g, a: conj(_cofactor_derivative(a, conj(g))))
derivative(ops.slogdet, a=_slogdet)
