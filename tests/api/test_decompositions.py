"""QR, eigenvalues, singular values, LU, pseudo-inverses, exponentials: values, gradients, batches, vmap, forward mode, PyTorch's errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tests.api.differences import check, check_batch, check_tangents

linalg = tpc.linalg
SQUARE = np.array([[2.0, -1, 0.5], [0.3, 1.5, 1], [-0.7, 0.2, 1.2]])
TALL = np.array([[1.0, -2, 0.5], [0.5, 3, -1], [2, 0.1, 0.3], [0.2, 0.7, 1.1]])
WIDE = TALL.T.copy()
STACK = np.stack([TALL, np.cos(TALL)])
SINGULAR = [[1.0, 2], [2, 4]]


def t(values: object, dtype: tpc.dtype = tpc.float64) -> tpc.Tensor:
    return tpc.tensor(np.array(values), dtype=dtype)


def hermitian(a: tpc.Tensor) -> tpc.Tensor:
    return (a + a.mH) / 2


def flat(*parts: tpc.Tensor) -> tpc.Tensor:
    return tpc.cat([x.reshape(-1) for x in parts])


def unsigned_svd(a: tpc.Tensor) -> tpc.Tensor:
    u, s, vh = linalg.svd(a, full_matrices=False)
    return flat(u**2, s, vh**2, (u * s.sqrt().unsqueeze(-2)) @ vh)


FUNCTIONS: dict[str, tuple[Callable[..., tpc.Tensor], tuple[object, ...]]] = {
    "qr": (lambda a: flat(*linalg.qr(a)), (STACK,)),
    "qr of wide": (lambda a: flat(*linalg.qr(a)), (WIDE,)),
    "R of wide": (lambda a: linalg.qr(a).R, (WIDE,)),
    "Q of wide": (lambda a: linalg.qr(a, "complete").Q, (WIDE,)),
    "eigh": (lambda a: flat(linalg.eigh(hermitian(a))[0], linalg.eigh(hermitian(a))[1] ** 2), (SQUARE,)),
    "eigvalsh": (lambda a: linalg.eigvalsh(hermitian(a)), (SQUARE,)),
    "eigvals": (lambda a: flat(linalg.eigvals(a).real, linalg.eigvals(a).imag), (SQUARE,)),
    "eig": (lambda a: linalg.eig(a).eigenvectors.abs() ** 2, (SQUARE,)),
    "svd": (unsigned_svd, (TALL,)),
    "svd of wide": (unsigned_svd, (WIDE,)),
    "svdvals": (linalg.svdvals, (STACK,)),
    "pinv": (linalg.pinv, (STACK,)),
    "pinv of wide": (linalg.pinv, (WIDE,)),
    "lu": (lambda a: flat(*linalg.lu(a)[1:]), (SQUARE[::-1].copy(),)),
    "lu of tall": (lambda a: flat(*linalg.lu(a)[1:]), (STACK,)),
    "lu of wide": (lambda a: flat(*linalg.lu(a)[1:]), (WIDE,)),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor_ex(a)[:2], b), (SQUARE[::-1].copy(), TALL[:3])),
    "lstsq": (lambda a, b: linalg.lstsq(a, b).solution, (TALL, TALL[:, :2])),
    "matrix_exp": (linalg.matrix_exp, (SQUARE,)),
    "householder_product": (linalg.householder_product, (TALL, [0.5, 1.2, 0.7])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_second_order(name: str):
    function, points = FUNCTIONS[name]
    check(function, *points)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_follow_differences(name: str):
    function, points = FUNCTIONS[name]
    check_tangents(function, *points, rtol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_is_sample_by_sample(name: str):
    function, points = FUNCTIONS[name]
    check_batch(function, *points, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_deferred(name: str):
    function, points = FUNCTIONS[name]
    outcomes = []
    for made in (function, tpc.compile(function, fullgraph=True)):
        leaves = [t(p).requires_grad_() for p in points]
        out = made(*leaves)
        (out * tpc.arange(out.numel(), dtype=out.dtype).reshape(out.shape)).sum().backward()
        outcomes.append([out.detach().numpy(), *[x.grad.numpy() for x in leaves]])
    for a, b in zip(*outcomes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [tpc.float64, tpc.complex128], ids=str)
def test_factors_give_the_matrix_back(dtype: tpc.dtype):
    tall = t(STACK, dtype) + (1j * t(np.sin(3 * STACK)) if dtype.is_complex else 0)
    square = tall[:, :3]
    whole = tall @ tall.mH
    q, r = linalg.qr(tall)
    u, s, vh = linalg.svd(tall, full_matrices=False)
    p, low, up = linalg.lu(tall)
    w, v = linalg.eigh(whole)
    z, x = linalg.eig(square)
    for got in (q @ r, (u * s.unsqueeze(-2)) @ vh, p @ low @ up, tall @ linalg.pinv(tall) @ tall):
        np.testing.assert_allclose(got.numpy(), tall.numpy(), atol=1e-12)
    np.testing.assert_allclose(((v * w.unsqueeze(-2)) @ v.mH).numpy(), whole.numpy(), atol=1e-12)
    np.testing.assert_allclose((x * z.unsqueeze(-2)).numpy(), (square.to(tpc.complex128) @ x).numpy(), atol=1e-12)
    assert [tuple(y.shape) for y in linalg.svd(tall)] == [(2, 4, 4), (2, 3), (2, 3, 3)]
    assert [tuple(y.shape) for y in linalg.qr(tall, "complete")] == [(2, 4, 4), (2, 4, 3)]


def test_equal_eigenvalues_do_no_harm_where_vectors_are_not_used():
    x = tpc.eye(3, dtype=tpc.float64, requires_grad=True)
    (linalg.eigh(x).eigenvalues * t([1, 2, 3])).sum().backward()
    assert x.grad.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    linalg.svdvals(x).sum().backward()
    assert x.grad.tolist() == [[2, 0, 0], [0, 3, 0], [0, 0, 4]]


def test_factors_of_large_matrices():
    a = np.sin(np.arange(90 * 90.0) ** 1.3).reshape(90, 90)
    factors, pivots = linalg.lu_factor(t(a))
    b = np.cos(np.arange(180.0)).reshape(90, 2)
    np.testing.assert_allclose(a @ linalg.lu_solve(factors, pivots, t(b)).numpy(), b, atol=1e-8)
    np.testing.assert_allclose(a.T @ linalg.lu_solve(factors, pivots, t(b), adjoint=True).numpy(), b, atol=1e-8)
    np.testing.assert_allclose(linalg.lu_solve(factors, pivots, t(b.T), left=False).numpy() @ a, b.T, atol=1e-8)


def test_pivots_count_from_one():
    factors, pivots = linalg.lu_factor(t([[1, 2], [4, 4]]))
    assert (pivots.tolist(), pivots.dtype) == ([2, 2], tpc.int32)
    assert factors.tolist() == [[4, 4], [0.25, 1]]
    assert linalg.lu(t([[1, 2], [4, 4]])).P.tolist() == [[0, 1], [1, 0]]
    assert linalg.lu_factor_ex(tpc.ones(3, 2, 2)).info.tolist() == [2, 2, 2]


def test_rank_and_tolerances():
    assert linalg.matrix_rank(t(SINGULAR)).item() == 1
    assert linalg.matrix_rank(tpc.stack([tpc.eye(3), tpc.ones(3, 3)])).tolist() == [3, 1]
    diagonal = tpc.diag(t([4, 2, 1]))
    assert linalg.matrix_rank(diagonal, 1.5).item() == 2
    assert linalg.matrix_rank(diagonal, rtol=0.6, hermitian=True).item() == 1
    assert linalg.matrix_rank(diagonal, atol=tpc.tensor(0.5), rtol=tpc.tensor(0.3)).item() == 2
    assert linalg.pinv(diagonal, atol=1.5).diagonal().tolist() == [0.25, 0.5, 0]
    assert linalg.pinv(diagonal, 0.6, hermitian=True).diagonal().tolist() == [0.25, 0, 0]
    np.testing.assert_allclose(tpc.pinverse(t(SINGULAR)).numpy(), [[0.04, 0.08], [0.08, 0.16]])


def test_least_squares():
    a, b = t(TALL), t(TALL[:, :2] * 2 + 1)
    want = np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)
    got = linalg.lstsq(a, b, driver="gelsd")
    np.testing.assert_allclose(got.solution.numpy(), want[0])
    np.testing.assert_allclose(got.residuals.numpy(), want[1])
    np.testing.assert_allclose(got.singular_values.numpy(), want[3])
    assert got.rank.item() == 3
    plain = linalg.lstsq(a, b[:, 0])
    assert plain.solution.shape == (3,)
    assert (plain.residuals.shape, plain.singular_values.shape) == ((0,), (0,))


def test_exponentials():
    cos, sin = math.cos(30), math.sin(30)
    np.testing.assert_allclose(linalg.matrix_exp(t([[0, 30], [-30, 0]])).numpy(), [[cos, sin], [-sin, cos]], rtol=1e-12)
    np.testing.assert_allclose(tpc.matrix_exp(t([[0, 1], [0, 0]])).numpy(), [[1, 1], [0, 1]])
    np.testing.assert_allclose(tpc.diag(t([-100, 2])).matrix_exp().diagonal().numpy(), np.exp([-100, 2]), rtol=1e-13)


def test_older_names():
    u, s, v = tpc.svd(t(TALL))
    np.testing.assert_allclose(((u * s) @ v.T).numpy(), TALL, atol=1e-12)
    assert [tuple(x.shape) for x in tpc.svd(t(TALL), some=False)] == [(4, 4), (3,), (3, 3)]
    assert tpc.svd(t(TALL), compute_uv=False).U.tolist() == [[0] * 4] * 4
    assert t(TALL).qr(some=False).Q.shape == (4, 4)
    factors, pivots, info = tpc.lu(t(SQUARE), get_infos=True)
    np.testing.assert_allclose(SQUARE @ tpc.lu_solve(t(TALL[:3]), factors, pivots).numpy(), TALL[:3], atol=1e-12)
    assert info.item() == 0
    solved, copy = tpc.triangular_solve(t([[2], [4]]), t([[2, 7], [1, 4]]), upper=False)
    assert solved.tolist() == [[1], [0.75]]
    assert copy.tolist() == [[2, 7], [1, 4]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.qr(tpc.ones(2, 2), "x"), RuntimeError, "qr received unrecognized mode 'x' but expected one of 'reduced'"),
        (lambda: linalg.eigh(tpc.ones(2, 2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X"),
        (lambda: linalg.eigh(tpc.ones(2, 3)), RuntimeError, "linalg.eigh: A must be batches of square matrices"),
        (lambda: linalg.svd(tpc.ones(2)), RuntimeError, "linalg.svd: The input tensor A must have at least 2 dimensions"),
        (lambda: linalg.eigvalsh(tpc.full((2, 2), math.nan)).tolist(), linalg.LinAlgError, "linalg.eigh: The algorithm failed to converge"),
        (
            lambda: linalg.svdvals(tpc.stack([tpc.eye(2), tpc.full((2, 2), math.nan)])).tolist(),
            linalg.LinAlgError,
            r"linalg.svd: \(Batch element 1\): The algorithm failed to converge because the input matrix contained non-finite values",
        ),
        (lambda: linalg.eig(tpc.full((2, 2), math.inf))[0].tolist(), RuntimeError, "input tensor should not contain infs or NaNs"),
        (lambda: linalg.cholesky(tpc.full((2, 2), math.nan)).tolist(), linalg.LinAlgError, "the leading minor of order 1 is not positive"),
        (
            lambda: linalg.lu_factor(t(SINGULAR)),
            RuntimeError,
            r"U\[2,2\] is zero and using it on lu_solve would result in a division by zero",
        ),
        (lambda: linalg.lu(t(SINGULAR), pivot=False), RuntimeError, "LU without pivoting is not implemented on the CPU"),
        (lambda: linalg.lstsq(tpc.ones(3, 2), tpc.ones(2, 2)), RuntimeError, r"input.size\(-2\) should match other.size\(-2\)"),
        (lambda: linalg.lstsq(tpc.ones(3, 2), tpc.ones(3), driver="x"), RuntimeError, "parameter `driver` should be one of"),
        (lambda: tpc.symeig(tpc.ones(2, 2)), RuntimeError, "deprecated since version 1.9 and is now removed"),
        (lambda: tpc.solve(tpc.ones(2, 2), tpc.eye(2)), RuntimeError, "deprecated since version 1.9 and is now removed"),
        (
            lambda: linalg.qr(tpc.ones(2, 2, requires_grad=True), "r").R.sum().backward(),
            RuntimeError,
            "depends on Q, which is not computed",
        ),
        (
            lambda: linalg.qr(tpc.ones(3, 2, requires_grad=True), "complete").R.sum().backward(),
            RuntimeError,
            "not differentiable when mode='complete' and nrows > ncols",
        ),
    ],
)
def test_refusals(call: Callable[[], object], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()
