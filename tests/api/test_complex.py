"""Complex numbers: parts as views that are read and written, values at borders, gradients by PyTorch's conjugate convention."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tests.api.differences import check

Z = np.array([[1 + 2j, -0.5j, 3.0], [-2 - 1j, 0.25 + 0.5j, -1 + 1j]])


def eager(step: Callable[[tpc.Tensor], tpc.Tensor], z: tpc.Tensor) -> tpc.Tensor:
    return step(z)


def compiled(step: Callable[[tpc.Tensor], tpc.Tensor], z: tpc.Tensor) -> tpc.Tensor:
    return tpc.compile(step)(z)


both = pytest.mark.parametrize("run", [eager, compiled])


def doubled(z: tpc.Tensor) -> tpc.Tensor:
    z = z.clone()
    z.real.mul_(2)
    return z


def imaginary_row(z: tpc.Tensor) -> tpc.Tensor:
    z = z.clone()
    z.imag[0] = 1
    z[1].real -= z[1].imag
    return z


def pairs_moved(z: tpc.Tensor) -> tpc.Tensor:
    z = z.clone()
    tpc.view_as_real(z)[..., 0] += 3
    tpc.view_as_real(z[:, 1])[1, 1] = 7
    return z


def assigned(z: tpc.Tensor) -> tpc.Tensor:
    z = z.clone()
    z.real, z.imag = z.imag.clone(), tpc.ones(2, 3, dtype=tpc.float64)
    return z


WRITES: dict[Callable[[tpc.Tensor], tpc.Tensor], np.ndarray] = {
    doubled: 2 * Z.real + 1j * Z.imag,
    imaginary_row: np.array([[1 + 1j, 1j, 3 + 1j], [-1 - 1j, -0.25 + 0.5j, -2 + 1j]]),
    pairs_moved: np.array([[4 + 2j, 3 - 0.5j, 6.0], [1 - 1j, 3.25 + 7j, 2 + 1j]]),
    assigned: Z.imag + 1j,
}


@both
@pytest.mark.parametrize("step", WRITES)
def test_parts_are_written_in_place(run: Callable[..., tpc.Tensor], step: Callable[[tpc.Tensor], tpc.Tensor]):
    np.testing.assert_array_equal(run(step, tpc.tensor(Z)).numpy(), WRITES[step])


@pytest.mark.parametrize("step", WRITES)
def test_gradients_pass_through_written_parts(step: Callable[[tpc.Tensor], tpc.Tensor]):
    check(lambda re, im: tpc.view_as_real(step(tpc.complex(re, im))) ** 3, Z.real, Z.imag)


@both
def test_pairs_are_written_as_complex_numbers(run: Callable[..., tpc.Tensor]):
    def turned(x: tpc.Tensor) -> tpc.Tensor:
        x = x.clone()
        tpc.view_as_complex(x).mul_(1j)
        return x

    x = tpc.tensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    y = run(turned, x)
    assert y.tolist() == [[-2, 1], [4, 3]]
    y.backward(tpc.tensor([[1.0, 10.0], [100.0, 1000.0]]))
    assert x.grad.tolist() == [[10, -1], [1000, -100]]


def test_a_part_written_in_place_reaches_numpy_and_back():
    z = tpc.zeros(2, dtype=tpc.complex64)
    z.imag.numpy()[1] = 5
    tpc.view_as_real(z).numpy()[0] = 2, 3
    assert z.tolist() == [2 + 3j, 5j]
    pairs = tpc.zeros(2, 2)
    tpc.view_as_complex(pairs).numpy()[1] = 1 + 4j
    assert pairs.tolist() == [[0, 0], [1, 4]]


def test_strides_of_parts():
    z = tpc.zeros(2, 3, dtype=tpc.complex64)
    assert z.real.stride() == z.imag.stride() == (6, 2)
    assert z[1].imag.storage_offset() == 7
    assert tpc.view_as_real(z).stride() == (6, 2, 1)
    assert tpc.view_as_complex(tpc.zeros(4, 3, 2)[1:]).stride() == (3, 1)
    assert tpc.view_as_complex(tpc.zeros(4, 3, 2)[1:]).storage_offset() == 3
    assert z.imag.as_strided((2,), (6,)).shape == (2,)


PAIRS: list[tuple[str, Callable[[], object]]] = [
    ("Tensor must have a last dimension of size 2", lambda: tpc.view_as_complex(tpc.zeros(3))),
    ("Tensor must have a last dimension with stride 1", lambda: tpc.view_as_complex(tpc.zeros(2, 3).t())),
    ("Tensor must have a storage_offset divisible by 2", lambda: tpc.view_as_complex(tpc.zeros(5)[1:3])),
    ("Tensor must have a stride divisible by 2 for all but last dimension", lambda: tpc.view_as_complex(tpc.zeros(3, 5)[:, :2])),
    ("view_as_real is only supported for complex tensors", lambda: tpc.view_as_real(tpc.zeros(2))),
    ("imag is not implemented for tensors with non-complex dtypes", lambda: tpc.zeros(2).imag),
]


@pytest.mark.parametrize(("phrase", "call"), PAIRS, ids=[p for p, _ in PAIRS])
def test_errors_of_pairs_are_those_of_pytorch(phrase: str, call: Callable[[], object]):
    with pytest.raises(RuntimeError, match=phrase):
        call()


def test_a_leaf_that_requires_grad_is_not_written_through_its_part():
    z = tpc.zeros(2, dtype=tpc.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        z.real.mul_(2)


def test_parts_meet_without_arithmetic():
    """real + 1j * imag would make NaN of an infinite part and lose the sign of zeros."""
    values = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan]
    re, im = np.meshgrid(values, values)
    z = tpc.complex(tpc.tensor(re), tpc.tensor(im))
    np.testing.assert_array_equal(z.real.numpy(), re)
    np.testing.assert_array_equal(z.imag.numpy(), im)
    assert np.signbit(z.imag.numpy()).tolist() == np.signbit(im).tolist()
    x = tpc.tensor([1.0, 1.0], dtype=tpc.float64, requires_grad=True)
    (tpc.complex(x, x).imag * math.inf).sum().backward()
    assert x.grad.tolist() == [math.inf, math.inf]


def test_gradient_of_a_complex_leaf_points_up_the_slope():
    """Of a real loss L it is dL/dRe + i dL/dIm; of a holomorphic f, g times the conjugate of f'."""
    z = tpc.tensor(Z, requires_grad=True)
    (z.abs() ** 2).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * Z, atol=1e-14)
    for function, slope in (
        (tpc.exp, np.exp(Z)),
        (lambda z: z * z * z, 3 * Z**2),
        (lambda z: 1 / z, -1 / Z**2),
        (tpc.sin, np.cos(Z)),
    ):
        z = tpc.tensor(Z, requires_grad=True)
        function(z).backward(tpc.full((2, 3), 1 + 2j, dtype=tpc.complex128))
        np.testing.assert_allclose(z.grad.numpy(), (1 + 2j) * np.conj(slope), rtol=1e-13)


MADE: dict[str, Callable[[tpc.Tensor, tpc.Tensor], tpc.Tensor]] = {
    "complex": tpc.complex,
    "polar": lambda r, a: tpc.polar(r * r + 1, a),
    "angle": lambda re, im: tpc.complex(tpc.complex(re, im).angle(), re),
    "abs": lambda re, im: tpc.complex(re, tpc.complex(re, im).abs()),
    "conj": lambda re, im: tpc.complex(re, im).conj() * im,
    "sgn": lambda re, im: tpc.complex(re, im).sgn(),
    "view_as_complex": lambda re, im: tpc.view_as_complex(tpc.stack((re, im), -1)) ** 2,
}


@pytest.mark.parametrize("name", MADE)
def test_gradients_to_second_order(name: str):
    check(lambda re, im: tpc.view_as_real(MADE[name](re, im)) ** 2, Z.real + 0.1, Z.imag + 0.2)


@pytest.mark.parametrize("name", MADE)
def test_batches_and_tangents(name: str):
    re, im = tpc.tensor(Z.real + 0.1), tpc.tensor(Z.imag + 0.2)
    rows = tpc.stack([MADE[name](a, b) for a, b in zip(re, im, strict=True)])
    np.testing.assert_allclose(tpc.vmap(MADE[name])(re, im).numpy(), rows.numpy(), rtol=1e-13)
    step = 1e-6
    _, tangent = tpc.func.jvp(MADE[name], (re, im), (im, re))
    ends = [MADE[name](re + s * im, im + s * re).numpy() for s in (step, -step)]
    np.testing.assert_allclose(tangent.numpy(), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)
