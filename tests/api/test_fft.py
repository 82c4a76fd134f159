"""Fourier transforms against the sums that define them; gradients, modes, batches, frequencies, PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tests.api.differences import check


def numbers(*shape: int) -> np.ndarray:
    return np.sin(1.3 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def both(*shape: int) -> np.ndarray:
    return numbers(*shape) + 1j * np.cos(0.7 * np.arange(np.prod(shape, dtype=int))).reshape(shape)


def matrix(n: int, sign: int) -> np.ndarray:
    """exp(sign 2 pi i j k / n)"""
    k = np.arange(n)
    return np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


DIVISOR = {None: (1, 0), "backward": (1, 0), "ortho": (0.5, 0.5), "forward": (0, 1)}
"""Exponents of n in the inverse and in the forward transform's divisor."""


def summed(x: np.ndarray, n: int, axis: int, sign: int, norm: str | None) -> np.ndarray:
    """The definition, of a signal cut or filled up to n."""
    x = np.moveaxis(x, axis, -1)[..., :n]
    x = np.concatenate([x, np.zeros((*x.shape[:-1], n - x.shape[-1]))], -1)
    return np.moveaxis(x @ matrix(n, sign), -1, axis) / n ** DIVISOR[norm][sign < 0]


def mirrored(half: np.ndarray, n: int) -> np.ndarray:
    """A whole spectrum of n elements from its first half, along the last axis; elements without a partner are real."""
    whole = np.zeros((*half.shape[:-1], n), complex)
    for k in range(n):
        j = min(k, n - k)
        part = half[..., j] if j < half.shape[-1] else 0
        whole[..., k] = np.real(part) if k in (0, n - k) else part if k == j else np.conj(part)
    return whole


@pytest.mark.parametrize("norm", DIVISOR, ids=str)
@pytest.mark.parametrize("n", [None, 1, 3, 4, 7])
@pytest.mark.parametrize("dim", [0, -1])
def test_transforms_are_the_sums_that_define_them(norm: str | None, n: int | None, dim: int):
    z, x = both(5, 4), numbers(5, 4)
    size = n or z.shape[dim]
    for name, sign in (("fft", -1), ("ifft", 1)):
        for operand in (z, x):
            got = getattr(tpc.fft, name)(tpc.tensor(operand), n, dim, norm)
            np.testing.assert_allclose(got.numpy(), summed(operand, size, dim, sign, norm), atol=1e-14)
    for name, sign in (("rfft", -1), ("ihfft", 1)):
        want = np.take(summed(x, size, dim, sign, norm), range(size // 2 + 1), dim)
        np.testing.assert_allclose(getattr(tpc.fft, name)(tpc.tensor(x), n, dim, norm).numpy(), want, atol=1e-14)
    size = n or 2 * (z.shape[dim] - 1)
    for name, sign in (("irfft", 1), ("hfft", -1)):
        whole = np.moveaxis(mirrored(np.moveaxis(z, dim, -1), size), -1, dim)
        want = summed(whole, size, dim, sign, norm).real
        np.testing.assert_allclose(getattr(tpc.fft, name)(tpc.tensor(z), n, dim, norm).numpy(), want, atol=1e-13)


def test_precision_of_the_operand_is_kept():
    assert tpc.fft.fft(tpc.ones(4)).dtype is tpc.complex64
    assert tpc.fft.rfft(tpc.ones(4, dtype=tpc.float64)).dtype is tpc.complex128
    assert tpc.fft.irfft(tpc.ones(3, dtype=tpc.complex64)).dtype is tpc.float32
    assert tpc.fft.rfft(tpc.arange(4)).dtype is tpc.complex64


# --- gradients ----------------------------------------------------------------------------------


def parts(z: tpc.Tensor) -> tpc.Tensor:
    return tpc.view_as_real(z) if z.is_complex() else z


COMPLEX: dict[str, Callable[[tpc.Tensor], tpc.Tensor]] = {
    "fft": lambda z: tpc.fft.fft(z, 4),
    "ifft": lambda z: tpc.fft.ifft(z, dim=0, norm="ortho"),
    "irfft even": lambda z: tpc.fft.irfft(z),
    "irfft odd": lambda z: tpc.fft.irfft(z, 5),
    "irfft cut": lambda z: tpc.fft.irfft(z, 2),
    "hfft": lambda z: tpc.fft.hfft(z, 6, 0, "forward"),
    "fftn": lambda z: tpc.fft.fftn(z, norm="forward"),
    "irfftn": lambda z: tpc.fft.irfftn(z, (3, 4)),
    "hfft2": lambda z: tpc.fft.hfft2(z),
}
REAL: dict[str, Callable[[tpc.Tensor], tpc.Tensor]] = {
    "fft": lambda x: tpc.fft.fft(x),
    "rfft odd": lambda x: tpc.fft.rfft(x),
    "rfft even": lambda x: tpc.fft.rfft(x, 4, norm="ortho"),
    "rfft one": lambda x: tpc.fft.rfft(x, 1),
    "rfft two": lambda x: tpc.fft.rfft(x, dim=0),
    "ihfft": lambda x: tpc.fft.ihfft(x),
    "irfft": lambda x: tpc.fft.irfft(x),
    "rfft2": lambda x: tpc.fft.rfft2(x),
    "ihfftn": lambda x: tpc.fft.ihfftn(x, (2, 4)),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_gradients_of_complex_operands(name: str):
    def squared(re: tpc.Tensor, im: tpc.Tensor) -> tpc.Tensor:
        y = parts(COMPLEX[name](tpc.complex(re, im)))
        return y * y * y

    check(squared, numbers(2, 3), numbers(3, 2).reshape(2, 3) / 2)


@pytest.mark.parametrize("name", REAL)
def test_gradients_of_real_operands(name: str):
    def cubed(x: tpc.Tensor) -> tpc.Tensor:
        y = parts(REAL[name](x))
        return y * y * y

    check(cubed, numbers(2, 3))


def test_gradient_of_a_complex_leaf_is_the_conjugate_transpose():
    z, g = both(3), both(4)[1:]
    leaf = tpc.tensor(z, requires_grad=True)
    tpc.fft.fft(leaf).backward(tpc.tensor(g))
    np.testing.assert_allclose(leaf.grad.numpy(), matrix(3, -1).conj().T @ g, atol=1e-14)
    half = tpc.tensor(z, requires_grad=True)
    tpc.fft.irfft(half, 4).backward(tpc.tensor([1.0, 2.0, 3.0, 5.0], dtype=tpc.float64))
    # 1/4 of rfft, the middle twice: (11, -2 + 3i, -3) is the half spectrum
    np.testing.assert_allclose(half.grad.numpy(), [11 / 4, (-2 + 3j) / 2, -3 / 4], atol=1e-14)


@pytest.mark.parametrize("name", REAL)
def test_forward_mode_is_the_transform_of_the_tangent(name: str):
    x, v = tpc.tensor(numbers(2, 3)), tpc.tensor(numbers(3, 2).reshape(2, 3))
    _, tangent = tpc.func.jvp(REAL[name], (x,), (v,))
    np.testing.assert_allclose(tangent.numpy(), REAL[name](v).numpy(), atol=1e-14)


@pytest.mark.parametrize("name", COMPLEX)
def test_forward_mode_of_complex_operands(name: str):
    z, v = tpc.tensor(both(2, 3)), tpc.tensor(both(3, 2).reshape(2, 3))
    _, tangent = tpc.func.jvp(COMPLEX[name], (z,), (v,))
    np.testing.assert_allclose(tangent.numpy(), COMPLEX[name](v).numpy(), atol=1e-14)


@pytest.mark.parametrize("name", REAL)
def test_vmap_and_compile_give_the_same(name: str):
    xs = tpc.tensor(numbers(4, 2, 3))
    want = np.stack([REAL[name](x).numpy() for x in xs])
    np.testing.assert_allclose(tpc.vmap(REAL[name])(xs).numpy(), want, atol=1e-14)
    np.testing.assert_allclose(tpc.compile(tpc.vmap(REAL[name]))(xs).numpy(), want, atol=1e-14)


# --- several dimensions, frequencies ------------------------------------------------------------


def test_transforms_over_several_dimensions():
    z, x = both(3, 4, 5), numbers(3, 4, 5)
    for norm in (None, "ortho", "forward"):
        for name, operand in (("fftn", z), ("ifftn", z), ("rfftn", x), ("irfftn", z)):
            ours, theirs = getattr(tpc.fft, name), getattr(np.fft, name)
            np.testing.assert_allclose(ours(tpc.tensor(operand), norm=norm).numpy(), theirs(operand, norm=norm), atol=1e-13)
            got = ours(tpc.tensor(operand), (2, 6), (2, 0), norm).numpy()
            np.testing.assert_allclose(got, theirs(operand, (2, 6), (2, 0), norm), atol=1e-13)
            got = ours(tpc.tensor(operand), s=(6, -1), norm=norm).numpy()
            sizes = (6, 8 if name == "irfftn" else 5)
            np.testing.assert_allclose(got, theirs(operand, sizes, (1, 2), norm), atol=1e-13)
    np.testing.assert_allclose(tpc.fft.fft2(tpc.tensor(z)).numpy(), np.fft.fft2(z), atol=1e-13)
    back = tpc.fft.ihfft2(tpc.fft.hfft2(tpc.tensor(x + 0j), s=(4, 9)), norm=None).numpy()
    np.testing.assert_allclose(back.imag, 0, atol=1e-14)
    whole = tpc.fft.hfftn(tpc.tensor(z), s=(3, 4, 8)).numpy()
    np.testing.assert_allclose(tpc.fft.ihfftn(tpc.tensor(whole)).numpy()[..., 1:4], z[..., 1:4], atol=1e-13)


def test_frequencies_and_shifts():
    np.testing.assert_allclose(tpc.fft.fftfreq(5, 0.1).numpy(), np.float32([0, 2, 4, -4, -2]))
    np.testing.assert_allclose(tpc.fft.fftfreq(4, dtype=tpc.float64).numpy(), [0, 0.25, -0.5, -0.25])
    np.testing.assert_allclose(tpc.fft.rfftfreq(5, 0.5).numpy(), np.float32([0, 0.4, 0.8]))
    assert tpc.fft.fftfreq(0).shape == (0,)
    x = tpc.arange(15).reshape(3, 5)
    assert tpc.fft.fftshift(x).numpy().tolist() == np.fft.fftshift(x.numpy()).tolist()
    assert tpc.fft.fftshift(x, 1).numpy().tolist() == np.fft.fftshift(x.numpy(), 1).tolist()
    assert tpc.fft.ifftshift(tpc.fft.fftshift(x)).numpy().tolist() == x.numpy().tolist()


# --- errors -------------------------------------------------------------------------------------

z, x = tpc.ones(3, 4, dtype=tpc.complex64), tpc.ones(3, 4)
REFUSED: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (RuntimeError, r"Invalid number of data points \(0\) specified", lambda: tpc.fft.fft(x, 0)),
    (RuntimeError, r"Invalid number of data points \(0\) specified", lambda: tpc.fft.fft(tpc.ones(3, 0))),
    (RuntimeError, r"Invalid number of data points \(0\) specified", lambda: tpc.fft.irfft(tpc.ones(3, 1))),
    (RuntimeError, r"Invalid number of data points \(-2\) specified", lambda: tpc.fft.fftn(x, (-2, 2))),
    (RuntimeError, 'Invalid normalization mode: "most"', lambda: tpc.fft.rfft(x, norm="most")),
    (RuntimeError, "rfft expects a real input tensor, but got ComplexFloat", lambda: tpc.fft.rfft(z)),
    (RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat", lambda: tpc.fft.rfftn(z)),
    (RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat", lambda: tpc.fft.ihfftn(z)),
    (RuntimeError, "Unsupported dtype Half", lambda: tpc.fft.fft(x.half())),
    (RuntimeError, "FFT dims must be unique", lambda: tpc.fft.fftn(x, dim=(0, -2))),
    (RuntimeError, "When given, dim and shape arguments must have the same length", lambda: tpc.fft.fft2(x, (2,))),
    (RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions", lambda: tpc.fft.fftn(x, (1, 2, 3))),
    (RuntimeError, "rfftn must transform at least one axis", lambda: tpc.fft.rfftn(tpc.tensor(1.0))),
    (RuntimeError, "fft expects a complex output tensor, but got Float", lambda: tpc.fft.fft(x, out=tpc.empty(3, 4))),
    (RuntimeError, "fftfreq requires a floating point or complex dtype", lambda: tpc.fft.fftfreq(4, dtype=tpc.int64)),
    (IndexError, "Dimension specified as -1 but tensor has no dimensions", lambda: tpc.fft.fft(tpc.tensor(1.0))),
    (IndexError, "Dimension out of range", lambda: tpc.fft.fft(x, dim=2)),
    (TypeError, r"argument 'input' \(position 1\) must be Tensor, not str", lambda: tpc.fft.fft("x")),
]


@pytest.mark.parametrize(("kind", "phrase", "call"), REFUSED, ids=[phrase for _, phrase, _ in REFUSED])
def test_errors_are_those_of_pytorch(kind: type[Exception], phrase: str, call: Callable[[], object]):
    with pytest.raises(kind, match=phrase):
        call()
