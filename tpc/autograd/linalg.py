"""Derivatives of products, solvers and decompositions of matrices.

For a function of A whose differential is dY, the gradient is the G for which <G, dA> = <g, dY>, with <X, Y> = Re tr(X^H Y). Batch
dimensions that were broadcast are summed by the engine.
"""

from __future__ import annotations

from typing import Any

from tpc.autograd.rules import derivative, not_differentiable
from tpc.dtype import bool_ as tpc_bool
from tpc.functions import elementwise as f
from tpc.functions.arranging import diag_embed, tril, triu
from tpc.functions.decompositions import unpermuted
from tpc.functions.elementwise import conj
from tpc.functions.factories import eye, zeros_of
from tpc.functions.joining import cat
from tpc.functions.linalg import matmul
from tpc.functions.reduction import sum
from tpc.functions.shape import adjoint, broadcast_to, diagonal, mT, narrow, unsqueeze
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


# --- decompositions -----------------------------------------------------------------------------


def _off_diagonal(x: Tensor, gaps: Tensor) -> Tensor:
    """x over `gaps`, with zeros on the diagonal; equal values leave no gap, and infinities where the vectors are not unique."""
    diagonal = eye(x._type.shape[-1], dtype=tpc_bool)
    return f.where(diagonal, 0, f.div(x, f.where(diagonal, 1, gaps)))


def _gaps(w: Tensor) -> Tensor:
    """w_j - w_i."""
    return f.sub(unsqueeze(w, -2), unsqueeze(w, -1))


def _skew(x: Tensor) -> Tensor:
    return f.sub(x, adjoint(x))


def _eigh(grads: Grads, y: Tensor, y1: Tensor) -> Tensor:
    # dw = diag(V^H dA V), dV = V (V^H dA V / gaps)
    gw, gv = grads
    if gv is None:
        return matmul(f.mul(y1, unsqueeze(_given(gw), -2)), adjoint(y1))
    inner = _off_diagonal(matmul(adjoint(y1), gv), _gaps(y))
    if gw is not None:
        inner = f.add(inner, diag_embed(gw))
    # A is Hermitian, and so is its gradient, as in PyTorch
    inner = f.mul(f.add(inner, adjoint(inner)), 0.5)
    return matmul(matmul(y1, inner), adjoint(y1))


def _given(g: Tensor | None) -> Tensor:
    assert g is not None, "a formula is asked for where some gradient arrives"
    return g


def _eig(grads: Grads, y: Tensor, y1: Tensor) -> Tensor:
    # as for Hermitian matrices with V^-1 for V^H; the vectors keep their length, which takes a real multiple of themselves off
    gw, gv = grads
    back = adjoint(y1)
    inner: Any = diag_embed(gw) if gw is not None else None
    if gv is not None:
        turned = matmul(back, gv)
        lengths = unsqueeze(f.real(diagonal(turned, 0, -2, -1)), -2)
        moved = _off_diagonal(f.sub(turned, f.mul(matmul(back, y1), lengths)), conj(_gaps(y)))
        inner = moved if inner is None else f.add(inner, moved)
    return solve_ex(back, matmul(inner, back)).result


def _svd(grads: Grads, y: Tensor, y1: Tensor, y2: Tensor, full: bool) -> Tensor:
    gu, gs, gvh = grads
    k = y1._type.shape[-1]
    u, s, v = _columns(y, k), y1, adjoint(_columns(y2, k, -2))
    if gu is None and gvh is None:
        return matmul(f.mul(u, unsqueeze(_given(gs), -2)), adjoint(v))
    gu, gv = (None if gu is None else _columns(gu, k)), (None if gvh is None else adjoint(_columns(gvh, k, -2)))
    squares = f.mul(s, s)
    inner: Any = 0 if gs is None else diag_embed(gs)
    phase: Any = 0
    for side, g, vectors in (("u", gu, u), ("v", gv, v)):
        if g is not None:
            turned = matmul(adjoint(vectors), g)
            slopes = _off_diagonal(_skew(turned), _gaps(squares))
            inner = f.add(f.mul(slopes, unsqueeze(s, -2)) if side == "u" else f.mul(unsqueeze(s, -1), slopes), inner)
            if is_complex(g._type.dtype):
                turn = f.imag(diagonal(turned, 0, -2, -1))
                phase = f.add(turn if side == "u" else f.neg(turn), phase)
    if isinstance(phase, Tensor):
        # both vectors may turn by one phase: only the difference counts
        inner = f.add(inner, diag_embed(f.mul(f.div(phase, f.mul(s, 2)), 1j)))
    out = matmul(matmul(u, inner), adjoint(v))
    if gu is not None and u._type.shape[-2] > k:
        out = f.add(out, matmul(f.div(_outside(u, gu), unsqueeze(s, -2)), adjoint(v)))
    if gv is not None and v._type.shape[-2] > k:
        out = f.add(out, matmul(u, adjoint(f.div(_outside(v, gv), unsqueeze(s, -2)))))
    return out


def _columns(x: Tensor, count: int, dim: int = -1) -> Tensor:
    return x if x._type.shape[dim] == count else narrow(x, dim, 0, count)


def _outside(u: Tensor, g: Tensor) -> Tensor:
    """What of g is orthogonal to the columns of u."""
    return f.sub(g, matmul(u, matmul(adjoint(u), g)))


def _qr(grads: Grads, y: Tensor, y1: Tensor, mode: str) -> Tensor:
    gq, gr = grads
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you "
            "are going to differentiate through linalg.qr."
        )
    m, n = y._type.shape[-2], y1._type.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if m >= n:
        return _tall_qr(gq, gr, y, y1)
    # A = [X, Y] with X = Q R1 and Y = Q R2
    left, right = _columns(y1, m), narrow(y1, -1, m, n - m)
    if gr is None:
        return cat((_tall_qr(gq, None, y, left), zeros_of(right._type)), -1)
    g1, g2 = _columns(gr, m), narrow(gr, -1, m, n - m)
    back = matmul(matmul(y, right), adjoint(g2))
    return cat((_tall_qr(back if gq is None else f.add(gq, back), g1, y, left), matmul(y, g2)), -1)


def _tall_qr(gq: Tensor | None, gr: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    """Q dR + dQ R = dA with dQ^H Q skew; the gradient is (gQ + Q H) R^-H, H Hermitian with the upper triangle of gR R^H - Q^H gQ."""
    inner: Any = 0
    if gr is not None:
        inner = matmul(gr, adjoint(r))
    if gq is not None:
        inner = f.sub(inner, matmul(adjoint(q), gq))
    upper = triu(inner, 1)
    middle = f.add(f.add(upper, adjoint(upper)), diag_embed(f.real(diagonal(inner, 0, -2, -1))))
    whole = matmul(q, middle)
    return triangular_solution(adjoint(r), whole if gq is None else f.add(whole, gq), False, left=False)


def _lu(g: list[Any], y: Tensor, y1: Tensor) -> Tensor:
    # P^T dA = dL U + L dU: L^-1 P^T dA U^-1 has dL in its lower and dU in its upper triangle
    m, n = y._type.shape[-2:]
    k = min(m, n)
    lower, upper = _columns(_columns(y, k), k, -2), _columns(_columns(y, k), k, -2)
    part = _columns(_columns(g[0], k), k, -2)
    low = matmul(adjoint(_unit_lower(lower)), tril(part, -1))
    high = matmul(triu(part), adjoint(triu(upper)))
    rest: Any = None
    if n > m:
        u2, rest = narrow(y, -1, k, n - k), narrow(g[0], -1, k, n - k)
        low = f.sub(low, matmul(rest, adjoint(u2)))
        rest = triangular_solution(adjoint(lower), rest, True, unit=True)
    elif m > n:
        l2, rest = narrow(y, -2, k, m - k), narrow(g[0], -2, k, m - k)
        high = f.sub(high, matmul(adjoint(l2), rest))
        rest = triangular_solution(adjoint(upper), rest, False, left=False)
    inner = triangular_solution(adjoint(lower), f.add(tril(low, -1), triu(high)), True, unit=True)
    whole = triangular_solution(adjoint(upper), inner, False, left=False)
    if rest is not None:
        whole = cat((whole, rest), -1 if n > m else -2)
    return unpermuted(whole, y1)


def _unit_lower(x: Tensor) -> Tensor:
    return f.add(tril(x, -1), eye(x._type.shape[-1], dtype=x.dtype))


def _pinv(g: Tensor, a: Tensor, y: Tensor) -> Tensor:
    # dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P, for A of constant rank
    back, turned = adjoint(y), adjoint(g)
    first = matmul(matmul(back, g), back)
    second = matmul(matmul(turned, y), back)
    third = matmul(back, matmul(y, turned))
    second = f.sub(second, matmul(a, matmul(y, second)))
    third = f.sub(third, matmul(matmul(third, y), a))
    return f.sub(f.add(second, third), first)


def _along(a: Tensor, h: Tensor) -> Tensor:
    """The derivative of the exponential of A^H in the direction H."""
    return record(ops.matrix_exp_derivative, (adjoint(a), h))  # type: ignore[no-any-return]


def _block(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """[[x, y], [0, z]]."""
    x, y, z = (broadcast_to(m, y._type.shape) for m in (x, y, z))
    return cat((cat((x, y), -1), cat((zeros_of(y._type), z), -1)), -2)


def _matrix_exp_derivative(g: Tensor, a: Tensor, h: Tensor) -> Tensor:
    # the derivative is the corner of the exponential of [[A, H], [0, A]]
    n, nothing = a._type.shape[-1], zeros_of(g._type)
    whole = _along(_block(a, broadcast_to(h, g._type.shape), a), _block(nothing, g, nothing))
    return f.add(narrow(narrow(whole, -2, 0, n), -1, 0, n), narrow(narrow(whole, -2, n, n), -1, n, n))


derivative(ops.eigh, a=_eigh)
derivative(ops.eig, a=_eig)
derivative(ops.svd, a=_svd)
derivative(ops.qr, a=_qr)
derivative(ops.lu, a=_lu)
derivative(ops.pinv, a=_pinv)
derivative(ops.matrix_exp, a=lambda g, a: _along(a, g))
derivative(ops.matrix_exp_derivative, a=_matrix_exp_derivative, h=lambda g, a: _along(a, g))

not_differentiable(ops.lu_permutation)
