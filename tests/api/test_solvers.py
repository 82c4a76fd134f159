"""Equations, inverses and determinants: values, gradients to second order, batches, vmap, forward mode, PyTorch's errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tests.api.differences import check, check_batch, check_tangents

SQUARE = np.array([[2.0, -1, 0.5], [0.3, 1.5, 1], [-0.7, 0.2, 1.2]])
STACK = np.stack([SQUARE, SQUARE.T @ SQUARE + np.eye(3)])
RIGHT = np.array([[1.0, -2], [0.5, 3], [2, 0.1]])
POSITIVE = np.array([[4.0, 1, 2], [1, 5, 3], [2, 3, 6]])
SINGULAR = [[1.0, 2], [2, 4]]
LOWER = np.linalg.cholesky(POSITIVE)


def t(values: object, dtype: tpc.dtype = tpc.float64) -> tpc.Tensor:
    return tpc.tensor(np.array(values), dtype=dtype)


def symmetric(a: tpc.Tensor) -> tpc.Tensor:
    return (a + a.mT) / 2


FUNCTIONS: dict[str, tuple[Callable[..., tpc.Tensor], tuple[object, ...]]] = {
    "solve": (tpc.linalg.solve, (SQUARE, RIGHT)),
    "solve of stacks": (tpc.linalg.solve, (STACK, RIGHT)),
    "solve of a vector": (tpc.linalg.solve, (STACK, RIGHT[:, 0])),
    "solve of vectors": (tpc.linalg.solve, (STACK, RIGHT.T)),
    "solve from the right": (lambda a, b: tpc.linalg.solve(a, b, left=False), (SQUARE, RIGHT.T)),
    "upper": (lambda a, b: tpc.linalg.solve_triangular(a, b, upper=True), (STACK, RIGHT)),
    "lower from the right": (lambda a, b: tpc.linalg.solve_triangular(a, b, upper=False, left=False), (SQUARE, RIGHT.T)),
    "unit lower": (lambda a, b: tpc.linalg.solve_triangular(a, b, upper=False, unitriangular=True), (SQUARE, RIGHT)),
    "cholesky": (lambda a: tpc.linalg.cholesky(symmetric(a)), (POSITIVE,)),
    "cholesky upper": (lambda a: tpc.linalg.cholesky(symmetric(a), upper=True), (POSITIVE,)),
    "cholesky_solve": (lambda b, a: tpc.cholesky_solve(b, a.tril()), (RIGHT, LOWER)),
    "cholesky_inverse": (lambda a: tpc.cholesky_inverse(a.triu(), upper=True), (LOWER.T,)),
    "inv": (tpc.linalg.inv, (STACK,)),
    "det": (tpc.linalg.det, (STACK,)),
    "slogdet": (lambda a: tpc.linalg.slogdet(a).logabsdet, (STACK,)),
    "logdet": (tpc.logdet, (POSITIVE,)),
    "det of rank 2": (tpc.linalg.det, ([[1.0, 2, 3], [2, 4, 6], [3, 1, 9]],)),
    "det of rank 1": (tpc.linalg.det, (SINGULAR,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_second_order(name: str):
    function, points = FUNCTIONS[name]
    check(function, *points)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_follow_differences(name: str):
    function, points = FUNCTIONS[name]
    check_tangents(function, *points, rtol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_is_sample_by_sample(name: str):
    function, points = FUNCTIONS[name]
    check_batch(function, *points, rtol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_deferred(name: str):
    function, points = FUNCTIONS[name]
    compiled = tpc.compile(function, fullgraph=True)
    for made in (function, compiled):
        leaves = [t(p).requires_grad_() for p in points]
        out = made(*leaves)
        out.sum().backward()
        grads = [x.grad.numpy() for x in leaves]
        if made is function:
            expected = out.detach().numpy(), grads
    np.testing.assert_array_equal(out.detach().numpy(), expected[0])
    for a, b in zip(grads, expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_values():
    np.testing.assert_allclose(tpc.linalg.solve(t(SQUARE), t(RIGHT)).numpy(), np.linalg.solve(SQUARE, RIGHT))
    np.testing.assert_allclose(tpc.linalg.cholesky(t(POSITIVE)).numpy(), LOWER)
    np.testing.assert_allclose((t(POSITIVE) @ tpc.cholesky_inverse(t(LOWER))).numpy(), np.eye(3), atol=1e-12)
    np.testing.assert_allclose((t(POSITIVE) @ tpc.cholesky_solve(t(RIGHT), t(LOWER))).numpy(), RIGHT)
    assert tpc.linalg.det(t([[1, 2], [3, 4]])).item() == pytest.approx(-2)
    assert t(SINGULAR).slogdet() == (0, -math.inf)
    assert math.isnan(t([[0, 1], [1, 0]]).logdet().item())
    assert tpc.linalg.det(tpc.ones(2, 0, 0)).tolist() == [1, 1]


def test_only_one_triangle_counts():
    upper = tpc.linalg.cholesky(t([[4, 1], [100, 3]]), upper=True)
    np.testing.assert_allclose(upper.numpy(), [[2, 0.5], [0, math.sqrt(2.75)]])
    x = tpc.linalg.solve_triangular(t([[2, math.nan], [4, 2]]), t([[2], [2]]), upper=False)
    assert x.tolist() == [[1], [-1]]


def test_large_triangles_are_solved_by_halves():
    a = np.tri(200) / 200 + 3 * np.eye(200)
    b = np.arange(400.0).reshape(200, 2)
    np.testing.assert_allclose(a @ tpc.linalg.solve_triangular(t(a), t(b), upper=False).numpy(), b, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(a.T @ tpc.linalg.solve_triangular(t(a.T), t(b), upper=True).numpy(), b, rtol=1e-10, atol=1e-9)


def test_a_zero_on_the_diagonal_of_a_triangle_divides():
    x = tpc.linalg.solve_triangular(t([[0, 1], [0, 1]]), t([[2], [1]]), upper=True)
    assert x.tolist() == [[math.inf], [1]]


def test_complex_matrices():
    a = t([[2, 1j], [-1j, 3]], tpc.complex128).requires_grad_()
    tpc.linalg.slogdet(a).logabsdet.backward()
    np.testing.assert_allclose(a.grad.numpy(), np.linalg.inv(a.detach().numpy()).conj().T)
    assert tpc.logdet(t([[0, 1j], [1, 0]], tpc.complex128)).item() == pytest.approx(-0.5j * math.pi)
    np.testing.assert_allclose(tpc.linalg.cholesky(a.detach()).numpy(), np.linalg.cholesky(a.detach().numpy()))


def test_failures_by_sample():
    batch = t([np.eye(2), SINGULAR])
    inverse, info = tpc.linalg.inv_ex(batch)
    assert info.tolist() == [0, 2]
    assert info.dtype == tpc.int32
    assert inverse[0].tolist() == [[1, 0], [0, 1]]
    assert inverse.isnan().all((1, 2)).tolist() == [False, True]
    assert tpc.linalg.cholesky_ex(batch).info.tolist() == [0, 2]
    solved = tpc.linalg.solve_ex(batch, t([1, 2]))
    assert solved.info.tolist() == [0, 2]
    assert solved.result[0].tolist() == [1, 2]


NOT_POSITIVE = "The factorization could not be completed because the input is not positive-definite"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: tpc.linalg.inv(a), "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because the input"),
        (lambda a: tpc.inverse(a.expand(3, 2, 2)), r"linalg.inv: \(Batch element 0\): The diagonal element 2 is zero"),
        (lambda a: tpc.linalg.solve(a, a), "torch.linalg.solve: The solver failed because the input matrix is singular"),
        (lambda a: tpc.linalg.solve_ex(a, a, check_errors=True).result, "The solver failed because the input matrix is singular"),
        (lambda a: tpc.linalg.cholesky(-a), NOT_POSITIVE + r" \(the leading minor of order 1 is not positive-definite\)"),
        (lambda a: tpc.cholesky(a), NOT_POSITIVE + r" \(the leading minor of order 2 is not positive-definite\)"),
        (lambda a: tpc.linalg.cholesky(tpc.stack([tpc.eye(2).double(), a])), rf"\(Batch element 1\): {NOT_POSITIVE}"),
        (lambda a: tpc.cholesky_inverse(a * 0), "The diagonal element 1 is zero, the inversion could not be completed"),
    ],
)
def test_matrices_that_will_not_do(call: Callable[[tpc.Tensor], tpc.Tensor], message: str):
    with pytest.raises(tpc.linalg.LinAlgError, match=message):
        call(t(SINGULAR)).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tpc.linalg.inv(tpc.ones(2, 3)), "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"),
        (lambda: tpc.linalg.det(tpc.ones(3)), "linalg.det: The input tensor A must have at least 2 dimensions."),
        (lambda: tpc.slogdet(tpc.tensor([[1]])), "Expected a floating point or complex tensor as input. Got Long"),
        (lambda: tpc.linalg.inv(tpc.eye(2).half()), "Low precision dtypes not supported. Got Half"),
        (lambda: tpc.linalg.solve(tpc.eye(2), tpc.ones(3, 1)), r"Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x1\)"),
        (lambda: tpc.linalg.solve(tpc.eye(2), tpc.ones(2, 3), left=False), r"for the equation XA = B \(2x2 and 2x3\)"),
        (lambda: tpc.linalg.solve(tpc.eye(2), tpc.ones(2), left=False), "Vector broadcasting of the left hand side is not supported"),
        (
            lambda: tpc.linalg.solve(tpc.eye(2), tpc.ones(2, 1).double()),
            "Expected A and B to have the same dtype, but found A of type Float",
        ),
        (
            lambda: tpc.linalg.solve(tpc.ones(3, 2, 2), tpc.ones(2, 2, 2)),
            r"The size of tensor a \(2\) must match the size of tensor b \(3\)",
        ),
        (lambda: tpc.linalg.solve_triangular(tpc.eye(2), tpc.ones(2), upper=True), "The input tensor B must have at least 2 dimensions"),
        (lambda: tpc.cholesky_solve(tpc.ones(2, 1), tpc.eye(3)), "each A matrix is 3 by 3 but each b matrix is 2 by 1"),
        (lambda: tpc.cholesky_solve(tpc.ones(2), tpc.eye(2)), "b should have at least 2 dimensions, but has 1 dimensions instead"),
    ],
)
def test_operands_that_do_not_fit(call: Callable[[], object], message: str):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_third_derivative_of_the_determinant():
    # det of [[x, y], [z, w]] bordered by 1 has third derivatives by products of three elements of different rows and columns
    def third(a: tpc.Tensor) -> tpc.Tensor:
        (g,) = tpc.autograd.grad(tpc.linalg.det(a), a, create_graph=True)
        (h,) = tpc.autograd.grad(g[0, 0], a, create_graph=True)
        return tpc.autograd.grad(h[1, 1], a)[0]

    np.testing.assert_allclose(third(t(SQUARE).requires_grad_()).numpy(), np.diag([0.0, 0, 1]), atol=1e-12)
