"""Special functions: values (in tests/api/special_values.py), gradients, borders, dtypes, PyTorch's errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tpc
from tests.api.differences import check
from tests.api.special_values import VALUES, Point

COARSE = {"lgamma": 2e-14, "airy_ai": 2e-14, "gammainc": 3e-14, "gammaincc": 3e-14}
"""Relative errors of functions that lose some digits next to zeros, or where their exponents are large; 8e-15 for the others."""
ZEROS = {"bessel_j0": 1e-15, "digamma": 1e-16}


def called(name: str, *operands: tpc.Tensor) -> tpc.Tensor:
    if name.startswith("polygamma"):
        return tpc.polygamma(int(name.split()[1]), *operands)
    return (getattr(tpc.special, name, None) or getattr(tpc, name))(*operands)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str):
    points = np.array([x for x, _ in VALUES[name]]).reshape(len(VALUES[name]), -1).T
    want = np.array([y for _, y in VALUES[name]])
    got = called(name, *map(tpc.tensor, points)).numpy()
    np.testing.assert_allclose(got, want, rtol=COARSE.get(name, 8e-15), atol=ZEROS.get(name, 0))


@pytest.mark.parametrize("name", VALUES)
def test_single_precision_is_rounded_once(name: str):
    points = np.array([x for x, _ in VALUES[name]], np.float32).reshape(len(VALUES[name]), -1).T
    got = called(name, *map(tpc.tensor, points))
    wide = called(name, *map(tpc.tensor, points.astype(np.float64))).numpy()
    assert got.dtype is tpc.float32
    with np.errstate(over="ignore"):
        np.testing.assert_array_max_ulp(got.numpy(), wide.astype(np.float32), 0 if name not in ("asinh", "acosh", "atanh") else 4)


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_powers_have_whole_logarithms(name: str):
    base = {"log2": 2.0, "log10": 10.0}[name]
    powers = np.arange(1, 16)
    assert getattr(tpc, name)(tpc.tensor(base**powers)).tolist() == powers.tolist()
    assert tpc.exp2(tpc.arange(-5.0, 6.0)).tolist() == [2.0**k for k in range(-5, 6)]


# --- gradients ----------------------------------------------------------------------------------

UNARY: dict[str, list[float]] = {
    "erfc": [-1.2, 0.3, 1.7],
    "erfcx": [-0.6, 0.0, 1.7],
    "erfinv": [-0.7, 0.1, 0.9],
    "ndtr": [-1.2, 0.3, 1.7],
    "ndtri": [0.1, 0.5, 0.8],
    "log_ndtr": [-3.0, -0.2, 1.7],
    "entr": [0.2, 1.0, 2.5],
    "logit": [0.2, 0.5, 0.9],
    "lgamma": [-1.4, 0.3, 5.0],
    "digamma": [-1.4, 0.3, 5.0],
    "polygamma 1": [-1.4, 0.3, 5.0],
    "polygamma 3": [0.6, 1.3, 5.0],
    "i0": [-1.2, 0.5, 3.0],
    "i0e": [-1.2, 0.5, 9.0],
    "i1": [-1.2, 0.5, 3.0],
    "i1e": [-1.2, 0.5, 9.0],
    "asinh": [-1.2, 0.1, 3.0],
    "acosh": [1.2, 2.0, 3.0],
    "atanh": [-0.6, 0.1, 0.8],
    "exp2": [-1.2, 0.1, 3.0],
    "log2": [0.2, 1.0, 3.0],
    "log10": [0.2, 1.0, 3.0],
    "sinc": [-1.2, 0.1, 3.0],
}


@pytest.mark.parametrize("name", UNARY)
def test_gradients(name: str):
    check(lambda x: called(name, x), UNARY[name])


@pytest.mark.parametrize("name", ["zeta", "gammainc", "gammaincc"])
def test_gradients_of_the_second_operand(name: str):
    first = tpc.tensor([1.5, 3.0, 2.25], dtype=tpc.float64)
    check(lambda x: called(name, first, x), [0.4, 1.5, 6.0])
    with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
        called(name, first.requires_grad_(), tpc.ones(3, dtype=tpc.float64)).sum().backward()


def test_gradients_of_products_with_a_logarithm():
    check(tpc.xlogy, [0.5, -1.0, 2.0], [0.3, 1.0, 2.5])
    check(tpc.special.xlog1py, [0.5, -1.0, 2.0], [-0.7, 0.0, 2.5])
    check(lambda x: tpc.xlogy(x, 2.5) + tpc.xlogy(1.5, x * x) + tpc.special.zeta(3.0, x * x), [0.5, 1.0, 2.0])
    x, y = (tpc.tensor(v, requires_grad=True) for v in ([0.0, 0.0, 0.0], [0.0, -1.0, 2.0]))
    tpc.xlogy(x, y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, math.log(2)], rtol=1e-6)
    np.testing.assert_array_equal(y.grad.numpy(), [math.nan, 0, 0])


def test_gradients_at_borders_are_those_of_pytorch():
    x = tpc.tensor([0.0, -1.5], requires_grad=True)
    tpc.special.i1(x)[0].backward()
    assert x.grad.tolist() == [0.5, 0]
    x = tpc.tensor([-0.5, 1.5, 0.25], requires_grad=True)
    tpc.logit(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [math.nan, math.nan, 16 / 3], rtol=1e-6)
    x.grad = None
    tpc.logit(x, 0.1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 16 / 3], rtol=1e-6)


def test_bessel_functions_are_not_differentiated():
    x = tpc.tensor([1.0], requires_grad=True)
    for name in ("bessel_j0", "bessel_y1", "modified_bessel_i0", "modified_bessel_k1", "airy_ai", "spherical_bessel_j0"):
        assert not getattr(tpc.special, name)(x).requires_grad
    assert not tpc.special.chebyshev_polynomial_t(x, 3).requires_grad


# --- borders ------------------------------------------------------------------------------------

INF, NAN = math.inf, math.nan
BORDERS: dict[str, list[tuple[Point, float]]] = {
    "lgamma": [(0.0, INF), (-0.0, INF), (-1.0, INF), (INF, INF), (-INF, INF), (NAN, NAN), (1.0, 0.0), (2.0, 0.0)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "polygamma 2": [(0.0, -INF), (-1.0, -INF), (NAN, NAN)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (NAN, NAN)],
    "erfcx": [(INF, 0.0), (-INF, INF), (NAN, NAN)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (NAN, NAN)],
    "ndtri": [(0.0, -INF), (1.0, INF), (1.5, NAN), (-0.5, NAN)],
    "log_ndtr": [(INF, 0.0), (-INF, -INF), (NAN, NAN)],
    "entr": [(0.0, 0.0), (-1.0, -INF), (NAN, NAN)],
    "logit": [(0.0, -INF), (1.0, INF), (1.5, NAN), (0.5, 0.0)],
    "i0e": [(INF, 0.0), (NAN, NAN)],
    "bessel_j0": [(0.0, 1.0), (NAN, NAN)],
    "bessel_y0": [(0.0, -INF), (-1.0, NAN)],
    "modified_bessel_k0": [(0.0, INF), (-1.0, NAN), (INF, 0.0)],
    "zeta": [((1.0, 2.0), INF), ((0.5, 2.0), NAN), ((2.0, 0.0), INF), ((2.0, -3.0), INF), ((2.5, -1.5), NAN)],
    "gammainc": [((0.0, 0.0), NAN), ((0.0, 1.0), 1.0), ((1.0, 0.0), 0.0), ((1.0, INF), 1.0), ((INF, 1.0), 0.0), ((-1.0, 1.0), NAN)],
    "gammaincc": [((0.0, 0.0), NAN), ((0.0, 1.0), 0.0), ((1.0, 0.0), 1.0), ((1.0, INF), 0.0), ((INF, 1.0), 1.0), ((1.0, -1.0), NAN)],
    "xlogy": [((0.0, 0.0), 0.0), ((0.0, -1.0), 0.0), ((0.0, INF), 0.0), ((0.0, NAN), NAN), ((1.0, 0.0), -INF)],
}


@pytest.mark.parametrize("name", BORDERS)
def test_borders(name: str):
    points = np.array([x for x, _ in BORDERS[name]]).reshape(len(BORDERS[name]), -1).T
    np.testing.assert_array_equal(called(name, *map(tpc.tensor, points)).numpy(), [y for _, y in BORDERS[name]])


def test_multivariate_gamma_function():
    """log gamma_2(x) = log(pi) / 2 + lgamma(x) + lgamma(x - 1/2)"""
    got = tpc.mvlgamma(tpc.tensor([2.5], dtype=tpc.float64), 2).item()
    assert math.isclose(got, math.log(math.pi) / 2 + math.lgamma(2.5) + math.lgamma(2.0), rel_tol=1e-15)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        tpc.special.multigammaln(tpc.ones(1), 0)


def test_orthogonal_polynomials():
    """Written out, at 1.5 and at 1/4, where Chebyshev polynomials of high degrees go by the angle."""
    x = tpc.tensor([1.5, 0.25], dtype=tpc.float64)
    xs = x.numpy()
    special = tpc.special
    np.testing.assert_allclose(special.chebyshev_polynomial_t(x, 3).numpy(), 4 * xs**3 - 3 * xs)
    np.testing.assert_allclose(special.chebyshev_polynomial_u(x, 2).numpy(), 4 * xs**2 - 1)
    np.testing.assert_allclose(special.chebyshev_polynomial_v(x, 2).numpy(), 4 * xs**2 - 2 * xs - 1)
    np.testing.assert_allclose(special.chebyshev_polynomial_w(x, 2).numpy(), 4 * xs**2 + 2 * xs - 1)
    np.testing.assert_allclose(special.hermite_polynomial_h(x, 3).numpy(), 8 * xs**3 - 12 * xs)
    np.testing.assert_allclose(special.hermite_polynomial_he(x, 4).numpy(), xs**4 - 6 * xs**2 + 3)
    np.testing.assert_allclose(special.laguerre_polynomial_l(x, 2).numpy(), (xs**2 - 4 * xs + 2) / 2)
    np.testing.assert_allclose(special.legendre_polynomial_p(x, 3).numpy(), (5 * xs**3 - 3 * xs) / 2)
    np.testing.assert_allclose(special.shifted_chebyshev_polynomial_t(x, 2).numpy(), 2 * (2 * xs - 1) ** 2 - 1)
    t8 = 128 * xs**8 - 256 * xs**6 + 160 * xs**4 - 32 * xs**2 + 1
    np.testing.assert_allclose(special.chebyshev_polynomial_t(x, 8).numpy(), t8)
    ends = tpc.tensor([1.0, -1.0])
    assert special.chebyshev_polynomial_u(ends, 3).tolist() == [4, -4]
    assert special.chebyshev_polynomial_v(ends, 2).tolist() == [1, 5]
    assert special.chebyshev_polynomial_w(ends, 3).tolist() == [7, -1]
    assert special.legendre_polynomial_p(ends, tpc.tensor([[-1], [0]])).tolist() == [[0, 0], [1, 1]]


# --- spellings, modes, errors -------------------------------------------------------------------


def test_spellings():
    x = tpc.tensor([0.25, 0.75], dtype=tpc.float64)
    for name in ("lgamma", "digamma", "erfinv", "i0", "erfc", "logit", "sinc", "asinh", "exp2"):
        want = getattr(tpc, name)(x).tolist()
        assert getattr(x, name)().tolist() == want
        assert getattr(x.clone(), name + "_")().tolist() == want
    assert x.polygamma(1).tolist() == tpc.polygamma(1, x).tolist() == x.clone().polygamma_(1).tolist()
    assert tpc.special.psi(x).tolist() == tpc.special.digamma(x).tolist()
    assert tpc.igamma(x, x).tolist() == tpc.special.gammainc(x, x).tolist()
    assert tpc.special.expit(x).tolist() == tpc.sigmoid(x).tolist()
    np.testing.assert_allclose(tpc.special.log_softmax(x, 0).exp().numpy(), tpc.special.softmax(x, 0).numpy())


@pytest.mark.parametrize("name", ["lgamma", "erfinv", "i0e", "log_ndtr", "logit"])
def test_compiled_batched_and_pushed_forward(name: str):
    x = tpc.tensor([[0.2, 0.4], [0.6, 0.8]], dtype=tpc.float64)
    want = called(name, x).numpy()
    np.testing.assert_array_equal(tpc.compile(lambda x: called(name, x) * 1)(x).numpy(), want)
    np.testing.assert_array_equal(tpc.vmap(lambda row: called(name, row))(x).numpy(), want)
    _, tangent = tpc.func.jvp(lambda x: called(name, x), (x,), (tpc.full((2, 2), 2.0, dtype=tpc.float64),))
    leaf = x.clone().requires_grad_()
    called(name, leaf).sum().backward()
    np.testing.assert_allclose(tangent.numpy(), 2 * leaf.grad.numpy(), rtol=1e-14)


def test_integers_become_floating_and_other_dtypes_are_refused():
    assert tpc.lgamma(tpc.tensor([3])).dtype is tpc.float32
    assert tpc.erfinv(tpc.zeros(1, dtype=tpc.float16)).dtype is tpc.float16
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        tpc.special.bessel_j0(tpc.zeros(1, dtype=tpc.float16))
    with pytest.raises(NotImplementedError, match='"lgamma" not implemented'):
        tpc.lgamma(tpc.zeros(1, dtype=tpc.complex64))
    with pytest.raises(NotImplementedError, match='"gammainc" not implemented'):
        tpc.igamma(tpc.tensor([1]), tpc.tensor([1]))
    with pytest.raises(RuntimeError, match="does not support negative n"):
        tpc.polygamma(-1, tpc.ones(1))
    for call in (
        lambda: tpc.lgamma(2.0),
        lambda: tpc.polygamma(1.5, tpc.ones(1)),
        lambda: tpc.special.zeta(2.0, 3.0),
        lambda: tpc.special.gammainc(tpc.ones(1), 2.0),
        lambda: tpc.logit(2.0),
        lambda: tpc.sinc(2.0),
    ):
        with pytest.raises(TypeError):
            call()
