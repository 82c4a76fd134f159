"""Products of vectors and matrices, einsum, linalg norms: values, all combinations of ranks, gradients, PyTorch's errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tests.api.differences import check
from tpc.functions import linalg


def t(values: object) -> tpc.Tensor:
    return tpc.tensor(values, dtype=tpc.float64)


def numbers(*shape: int) -> tpc.Tensor:
    """-1, -0.5, 0, 0.5, ... in that shape."""
    return t(np.arange(math.prod(shape)).reshape(shape) / 2 - 1)


def points(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.sin(1.3 + np.arange(math.prod(s))).reshape(s) for s in shapes]


# --- matmul -------------------------------------------------------------------------------------

RANKS = [(3,), (2, 3), (4, 2, 3), (5, 1, 2, 3)]
RIGHT = [(3,), (3, 2), (4, 3, 2), (5, 4, 3, 2)]


@pytest.mark.parametrize("left", RANKS, ids=str)
@pytest.mark.parametrize("right", RIGHT, ids=str)
def test_matmul_of_all_ranks(left: tuple[int, ...], right: tuple[int, ...]):
    a, b = numbers(*left), numbers(*right)
    expected = np.matmul(a.numpy(), b.numpy())
    np.testing.assert_allclose((a @ b).numpy(), expected)
    assert tuple(tpc.matmul(a, b).shape) == expected.shape


@pytest.mark.parametrize(
    ("left", "right"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (2, 3, 1))]
)
def test_gradient_of_matmul(left: tuple[int, ...], right: tuple[int, ...]):
    check(tpc.matmul, *points(left, right))


def test_matmul_of_nothing_is_zero():
    assert (tpc.ones(2, 0) @ tpc.ones(0, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert (tpc.ones(0, 3) @ tpc.ones(3, 2)).shape == (0, 2)


def test_matmul_of_integers_and_complex_numbers():
    assert (tpc.tensor([[1, 2]]) @ tpc.tensor([[3], [4]])).tolist() == [[11]]
    assert (tpc.tensor([[1j]]) @ tpc.tensor([[2j]])).tolist() == [[-2]]


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((2, 3), (2, 3), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        ((3,), (4,), "inconsistent tensor size, expected tensor"),
        ((2, 3), (4,), r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)"),
        ((), (3,), "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
        ((2, 2, 3), (2, 4, 5), "Expected size for first two dimensions of batch2 tensor"),
        ((2, 2, 3), (3, 3, 2), "must match the size of tensor b"),
    ],
)
def test_shapes_that_do_not_multiply(left: tuple[int, ...], right: tuple[int, ...], message: str):
    with pytest.raises(RuntimeError, match=message):
        tpc.zeros(left) @ tpc.zeros(right)


def test_dtypes_must_agree():
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype"):
        tpc.ones(2, 2) @ tpc.ones(2, 2, dtype=tpc.float64)


# --- its relatives ------------------------------------------------------------------------------


def test_products_of_fixed_rank():
    m, v, b = numbers(2, 3), numbers(3), numbers(2, 2, 3)
    assert tpc.mm(m, m.T).tolist() == (m @ m.T).tolist()
    assert tpc.mv(m, v).tolist() == (m @ v).tolist()
    assert tpc.bmm(b, b.mT).tolist() == (b @ b.mT).tolist()
    assert tpc.dot(v, v).item() == 1.25
    assert tpc.vdot(tpc.tensor([1j]), tpc.tensor([1j])).item() == 1
    assert tpc.outer(t([1, 2]), t([3, 4])).tolist() == [[3, 4], [6, 8]]
    assert tpc.inner(m, v).tolist() == (m @ v).tolist()
    assert linalg.vecdot(m, v).tolist() == (m @ v).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tpc.mm(numbers(3), numbers(3, 2)), "self must be a matrix"),
        (lambda: tpc.mm(numbers(2, 3), numbers(3)), "mat2 must be a matrix"),
        (lambda: tpc.bmm(numbers(2, 3), numbers(1, 3, 2)), "batch1 must be a 3D tensor"),
        (lambda: tpc.bmm(numbers(2, 2, 3), numbers(1, 3, 2)), "Expected size for first two dimensions"),
        (lambda: tpc.mv(numbers(2, 3), numbers(3, 1)), r"vector \+ matrix @ vector expected"),
        (lambda: tpc.dot(numbers(2, 2), numbers(2)), "1D tensors expected"),
        (lambda: tpc.outer(numbers(2, 2), numbers(2)), "Expected 1-D argument"),
        (lambda: numbers(2).trace(), "expected a matrix"),
    ],
)
def test_ranks_are_checked(call: Callable[[], object], message: str):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_products_added_to_something():
    i, a, b, v, w = numbers(2, 2), numbers(2, 3), numbers(3, 2), numbers(3), numbers(2)
    p, q = numbers(4, 2, 3), numbers(4, 3, 2)
    assert tpc.addmm(i, a, b, beta=2, alpha=3).tolist() == (2 * i + 3 * (a @ b)).tolist()
    assert tpc.addmv(w, a, v).tolist() == (w + a @ v).tolist()
    assert tpc.addr(a, w, v).tolist() == (a + tpc.outer(w, v)).tolist()
    assert tpc.baddbmm(i, p, q).tolist() == (i + p @ q).tolist()
    assert tpc.addbmm(i, p, q).tolist() == (i + (p @ q).sum(0)).tolist()
    check(lambda i, a, b: tpc.addmm(i, a, b, beta=0.5, alpha=2), *points((2, 2), (2, 3), (3, 2)))


def test_beta_of_zero_ignores_even_nan():
    assert tpc.addmm(tpc.full((2, 2), math.nan), tpc.ones(2, 1), tpc.ones(1, 2), beta=0).tolist() == [[1, 1], [1, 1]]


def test_tensordot_contracts_pairs_of_dimensions():
    a, b = numbers(2, 3, 4), numbers(3, 4, 5)
    np.testing.assert_allclose(tpc.tensordot(a, b).numpy(), np.tensordot(a.numpy(), b.numpy()))
    np.testing.assert_allclose(tpc.tensordot(a, b, ([1], [0])).numpy(), np.tensordot(a.numpy(), b.numpy(), ([1], [0])))
    assert tpc.tensordot(numbers(2), numbers(3), 0).shape == (2, 3)
    check(lambda a, b: tpc.tensordot(a, b, ([0, 2], [1, 0])), *points((2, 3, 2), (2, 2, 3)))
    with pytest.raises(RuntimeError, match="contracted dimensions need to match"):
        tpc.tensordot(a, b, ([0], [0]))


def test_other_products():
    a, b = numbers(2, 2), numbers(2, 3)
    np.testing.assert_allclose(tpc.kron(a, b).numpy(), np.kron(a.numpy(), b.numpy()))
    assert a.trace().item() == -0.5
    assert tpc.matrix_power(a, 3).tolist() == (a @ a @ a).tolist()
    assert tpc.matrix_power(a, 0).tolist() == [[1, 0], [0, 1]]
    assert tpc.chain_matmul(a, b, b.T).tolist() == (a @ b @ b.T).tolist()
    assert tpc.cross(t([1, 0, 0]), t([0, 1, 0])).tolist() == [0, 0, 1]
    check(lambda a, b: tpc.kron(a, b), *points((2, 1), (1, 3)))
    check(lambda a: tpc.matrix_power(a, 5), *points((2, 2)))


# --- einsum -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik", "ij,jk", "ij->ji", "ij->", "ii->i", "ii", "i,j->ij", "i,i->", "ij,ij->ij", "bij,bjk->bik", "...ij,...jk->...ik",
        "...ij->...ji", "i,ij,j->", "ij,jk,kl->il", "bij,jk,bk->bi", "iij->ij", "iji->j", "ab,ab,ab->a", "a...->...", "ba", "aB,Ba->B",
        "ij,kl->ijkl", "ij,j->", "ij,->ij",
    ],
)  # fmt: skip
def test_einsum_means_what_numpy_means(equation: str):
    terms = equation.split("->")[0].split(",")
    shapes = [tuple(n for c in term.replace("...", "#") for n in ((2, 1) if c == "#" else (3,))) for term in terms]
    arrays = points(*shapes)
    np.testing.assert_allclose(tpc.einsum(equation, *map(t, arrays)).numpy(), np.einsum(equation, *arrays), atol=1e-12)
    if len(arrays) < 3:
        check(lambda *xs: tpc.einsum(equation, *xs), *arrays, order=1)


def test_einsum_takes_lists_of_labels_and_of_operands():
    a, b = numbers(2, 3), numbers(3, 4)
    assert tpc.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == (a @ b).tolist()
    assert tpc.einsum(a, [0, 1], b, [1, 2]).tolist() == (a @ b).tolist()
    assert tpc.einsum("ij,jk->ik", [a, b]).tolist() == (a @ b).tolist()
    assert tpc.einsum(numbers(5, 2, 3), [..., 0, 1], [..., 1, 0]).shape == (5, 3, 2)


def test_einsum_broadcasts_sizes_of_one():
    assert tpc.einsum("ij,jk->ik", tpc.ones(2, 1), tpc.ones(3, 4)).tolist() == [[3] * 4] * 2


@pytest.mark.parametrize(
    ("equation", "count", "message"),
    [
        ("ij,jk->ik", 1, "fewer operands were provided"),
        ("ij->i", 2, "more operands were provided"),
        ("i->i", 1, r"number of subscripts in the equation \(1\) does not match the number of dimensions \(2\)"),
        ("i1->i", 1, "invalid subscript given at index 0"),
        ("ij->ik", 1, "output subscript k does not appear"),
        ("ij->ii", 1, "output subscript i appears more than once"),
        ("ij,ji->", 2, "does not broadcast with previously seen size"),
        ("ii->", 1, "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    ],
)
def test_einsum_refuses(equation: str, count: int, message: str):
    with pytest.raises(RuntimeError, match=message):
        tpc.einsum(equation, *[tpc.ones(2, 3)] * count)


# --- linalg norms -------------------------------------------------------------------------------


def test_linalg_norms():
    m = t([[3, -4], [0, 5]])
    assert linalg.norm(m).item() == pytest.approx(math.sqrt(50))
    assert linalg.norm(m, dim=1).tolist() == [5, 5]
    assert (linalg.norm(m, 1).item(), linalg.norm(m, -1).item()) == (9, 3)
    assert (linalg.norm(m, math.inf).item(), linalg.norm(m, -math.inf).item()) == (7, 5)
    assert linalg.vector_norm(m, 1).item() == 12
    assert linalg.matrix_norm(m, 1, keepdim=True).tolist() == [[9]]
    with pytest.raises(RuntimeError, match="Order 3 not supported"):
        linalg.matrix_norm(m, 3)
    check(linalg.norm, *points((2, 3)))
    check(lambda m: linalg.matrix_norm(m, math.inf), *points((2, 3)))


SQUARE = np.array([[2.0, -1.15, 0.4], [0.3, 1.5, 1], [-0.7, 0.2, 1.2]])


@pytest.mark.parametrize("ord", ["fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf])
def test_matrix_norms_and_condition_numbers(ord: float | str):
    stack = np.stack([SQUARE, np.cos(SQUARE)])
    np.testing.assert_allclose(linalg.matrix_norm(t(stack), ord).numpy(), np.linalg.norm(stack, ord, (1, 2)))
    np.testing.assert_allclose(linalg.norm(t(stack), ord, dim=(2, 0), keepdim=True).numpy(), np.linalg.norm(stack, ord, (2, 0), True))
    np.testing.assert_allclose(tpc.linalg.cond(t(stack), ord).numpy(), np.linalg.cond(stack, ord))
    check(lambda a: linalg.matrix_norm(a, ord), SQUARE)
    check(lambda a: tpc.linalg.cond(a, ord), SQUARE, order=1)


def test_condition_numbers_at_borders():
    cond = tpc.linalg.cond
    assert cond(tpc.stack([tpc.ones(2, 2), tpc.eye(2)]), 1).tolist() == [math.inf, 1]
    assert cond(tpc.ones(0, 0)).item() == 0
    assert cond(tpc.ones(0, 2, 2)).shape == (0,)
    assert cond(tpc.diag(t([4, 2]))).item() == 2
    with pytest.raises(RuntimeError, match=r"linalg.cond got an invalid norm type: 3"):
        cond(tpc.eye(2), 3)
    with pytest.raises(RuntimeError, match=r"linalg.cond\(ord=1\): A must be batches of square matrices"):
        cond(tpc.ones(2, 3), 1)


def test_older_norms():
    m = t(SQUARE)
    assert tpc.norm(m, "nuc").item() == pytest.approx(np.linalg.norm(SQUARE, "nuc"))
    assert tpc.nuclear_norm(m, (0, 1), keepdim=True).shape == (1, 1)
    assert tpc.frobenius_norm(m, (0, 1)).item() == pytest.approx(np.linalg.norm(SQUARE))
    with pytest.raises(RuntimeError, match="dim must be a 2-tuple"):
        tpc.norm(tpc.ones(2, 2, 2), "nuc")


def test_powers_of_matrices():
    a = t(SQUARE)
    np.testing.assert_allclose(tpc.matrix_power(a, -2).numpy(), np.linalg.matrix_power(SQUARE, -2))
    assert tpc.matrix_power(tpc.tensor([[1, 2], [3, 4]]), 3).tolist() == [[37, 54], [81, 118]]
    check(lambda a: tpc.matrix_power(a, -2), SQUARE)
    a.requires_grad_()
    tpc.matrix_power(a, 0).sum().backward()
    assert a.grad.count_nonzero().item() == 0
    with pytest.raises(tpc.linalg.LinAlgError, match="The diagonal element 2 is zero"):
        tpc.matrix_power(tpc.ones(2, 2), -1).tolist()


def test_products_of_many_matrices():
    a, b, c = points((2, 30), (30, 4), (4, 25))
    np.testing.assert_allclose(tpc.linalg.multi_dot([t(a), t(b), t(c), t(c.T)]).numpy(), a @ b @ c @ c.T)
    assert tpc.linalg.multi_dot([t(a[0]), t(b)]).shape == (4,)
    assert tpc.linalg.multi_dot([t(a[0]), t(b), t(c[:, 0])]).shape == ()
    check(lambda x, y, z: tpc.linalg.multi_dot([x, y, z]), *points((2,), (2, 3), (3, 2)))


def test_cross_products_broadcast():
    x, y = points((1, 3), (4, 3))
    np.testing.assert_allclose(tpc.linalg.cross(t(x), t(y)).numpy(), np.cross(x, y))
    assert tpc.cross(t(y.T), t(y.T)).count_nonzero().item() == 0
    check(tpc.linalg.cross, x, y, order=1)


def test_tensors_as_matrices():
    a = np.sin(np.arange(36.0) ** 1.5).reshape(2, 3, 6)
    b = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(tpc.linalg.tensorinv(t(a)).numpy(), np.linalg.tensorinv(a))
    np.testing.assert_allclose(tpc.linalg.tensorsolve(t(a), t(b)).numpy(), np.linalg.tensorsolve(a, b))
    moved = a.transpose(0, 2, 1).copy()
    want = np.linalg.tensorsolve(moved, b.reshape(6), axes=(0, 2))
    np.testing.assert_allclose(tpc.linalg.tensorsolve(t(moved), t(b.reshape(6)), dims=(0, 2)).numpy(), want)
    assert tpc.linalg.vander(t([1, 2, 3]), N=4).tolist() == [[1, 1, 1, 1], [1, 2, 4, 8], [1, 3, 9, 27]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tpc.linalg.multi_dot([numbers(2, 2)]), "expected at least 2 tensors but got 1"),
        (lambda: tpc.linalg.multi_dot([numbers(2, 3), numbers(2, 2)]), r"tensors 0 and 1 with shapes \[2, 3\] and \[2, 2\] cannot be"),
        (lambda: tpc.linalg.multi_dot([numbers(2, 2), numbers(1, 2, 2), numbers(2)]), "tensor 1 must be 2D but got 3D"),
        (lambda: tpc.chain_matmul(numbers(2, 2), numbers(2)), "Tensor dimension is 1, expected 2 instead"),
        (lambda: tpc.linalg.cross(numbers(2, 2), numbers(2, 2)), r"inputs dimension -1 must have length 3. Got 2 and 2"),
        (lambda: tpc.linalg.cross(numbers(3), numbers(2, 3)), "inputs must have the same number of dimensions"),
        (lambda: tpc.cross(numbers(2, 2), numbers(2, 2)), "no dimension of size 3 in input"),
        (lambda: tpc.linalg.vander(numbers(3), N=1), "N must be greater than 1"),
        (lambda: tpc.linalg.tensorinv(numbers(2, 3), ind=1), r"prod\(self.shape\[:ind\]\), but got 3 != 2"),
        (lambda: tpc.linalg.tensorinv(numbers(2, 3), ind=0), "Expected a strictly positive integer for 'ind', but got 0"),
        (lambda: tpc.linalg.tensorsolve(numbers(2, 3), numbers(2)), "but got 3 != 2"),
        (lambda: tpc.matrix_power(numbers(2, 3), 2), "A must be batches of square matrices, but they are 2 by 3 matrices"),
    ],
)
def test_products_refuse(call: Callable[[], object], message: str):
    with pytest.raises(RuntimeError, match=message):
        call()
