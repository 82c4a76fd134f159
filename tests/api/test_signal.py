"""Window functions and short-time Fourier transforms: values from their definitions, gradients, modes, PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tests.api.differences import check
from tpc.signal import windows

# --- windows ------------------------------------------------------------------------------------

SYMMETRIC: dict[str, Callable[[int], np.ndarray]] = {
    "hann": np.hanning,
    "hamming": np.hamming,
    "blackman": np.blackman,
    "bartlett": np.bartlett,
    "kaiser": lambda n: np.kaiser(n, 12.0),
}


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_windows_of_the_factories(name: str, n: int):
    made = getattr(tpc, f"{name}_window")
    np.testing.assert_allclose(made(n, False, dtype=tpc.float64).numpy(), SYMMETRIC[name](n), atol=1e-15)
    whole = SYMMETRIC[name](n + 1)[:-1] if n > 1 else np.ones(n)
    np.testing.assert_allclose(made(n, dtype=tpc.float64).numpy(), whole, atol=1e-15)
    assert made(n).dtype is tpc.float32
    np.testing.assert_allclose(getattr(windows, name)(n, dtype=tpc.float64).numpy(), SYMMETRIC[name](n), atol=1e-15)
    np.testing.assert_allclose(getattr(windows, name)(n, sym=False, dtype=tpc.float64).numpy(), whole, atol=1e-15)


def test_parameters_of_windows():
    k = np.arange(6)
    got = tpc.hamming_window(6, False, 0.4, 0.7, dtype=tpc.float64).numpy()
    np.testing.assert_allclose(got, 0.4 - 0.7 * np.cos(2 * np.pi * k / 5), atol=1e-15)
    np.testing.assert_allclose(tpc.kaiser_window(6, False, 3.0, dtype=tpc.float64).numpy(), np.kaiser(6, 3.0), atol=1e-15)
    assert tpc.kaiser_window(4, beta=0.0).tolist() == [1, 1, 1, 1]
    f64 = {"dtype": tpc.float64}
    np.testing.assert_allclose(windows.cosine(6, **f64).numpy(), np.sin(np.pi * (k + 0.5) / 6), atol=1e-15)
    np.testing.assert_allclose(windows.cosine(6, sym=False, **f64).numpy(), np.sin(np.pi * (k + 0.5) / 7), atol=1e-15)
    np.testing.assert_allclose(windows.gaussian(6, std=2.0, **f64).numpy(), np.exp(-((k - 2.5) ** 2) / 8), atol=1e-15)
    np.testing.assert_allclose(windows.exponential(6, tau=2.0, sym=False, **f64).numpy(), np.exp(-np.abs(k - 3) / 2), atol=1e-15)
    np.testing.assert_allclose(windows.exponential(6, center=1, sym=False, **f64).numpy(), np.exp(-np.abs(k - 1.0)), atol=1e-15)
    angle = 2 * np.pi * k / 5
    want = 0.5 - 0.25 * np.cos(angle) + 0.125 * np.cos(2 * angle)
    np.testing.assert_allclose(windows.general_cosine(6, a=[0.5, 0.25, 0.125], **f64).numpy(), want, atol=1e-15)
    np.testing.assert_allclose(windows.general_hamming(6, alpha=0.3, **f64).numpy(), 0.3 - 0.7 * np.cos(angle), atol=1e-15)
    weights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    want = sum((-1) ** i * a * np.cos(i * angle) for i, a in enumerate(weights))
    np.testing.assert_allclose(windows.nuttall(6, **f64).numpy(), want, atol=1e-15)
    assert windows.general_cosine(3, a=[0.25]).tolist() == [0.25, 0.25, 0.25]


# --- transforms ---------------------------------------------------------------------------------


def wave(*shape: int) -> np.ndarray:
    return np.sin(1.3 + 0.7 * np.arange(np.prod(shape, dtype=int)) ** 1.1).reshape(shape)


def spectra(x: np.ndarray, n: int, hop: int, window: np.ndarray) -> np.ndarray:
    """Frame by frame, of a signal that has its border."""
    frames = [np.fft.fft(x[..., t : t + n] * window) for t in range(0, x.shape[-1] - n + 1, hop)]
    return np.stack(frames, -1)


@pytest.mark.parametrize("mode", ["reflect", "constant"])
def test_stft_is_the_transform_of_every_frame(mode: str):
    window = np.hanning(6)
    wide = np.pad(window, 1)
    for shape in ((20,), (2, 20)):
        x = wave(*shape)
        bordered = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(4, 4)], mode=mode)
        want = spectra(bordered, 8, 3, wide)
        t, w = tpc.tensor(x), tpc.tensor(window)
        got = tpc.stft(t, 8, 3, 6, w, pad_mode=mode, onesided=False, return_complex=True)
        np.testing.assert_allclose(got.numpy(), want, atol=1e-13)
        half = tpc.stft(t, 8, 3, 6, w, pad_mode=mode, normalized=True, return_complex=True)
        np.testing.assert_allclose(half.numpy(), want[..., :5, :] / np.sqrt(8), atol=1e-13)
        pairs = t.stft(8, 3, 6, w, pad_mode=mode, return_complex=False)
        np.testing.assert_allclose(pairs.numpy(), np.stack((want.real, want.imag), -1)[..., :5, :, :], atol=1e-13)
    z = wave(20) + 1j * wave(21)[1:]
    got = tpc.stft(tpc.tensor(z), 8, center=False)
    np.testing.assert_allclose(got.numpy(), spectra(z, 8, 2, np.ones(8)), atol=1e-13)


@pytest.mark.parametrize("n", [8, 7])
def test_istft_inverts_stft(n: int):
    x = tpc.tensor(wave(2, 33))
    for window in (None, tpc.hann_window(n, dtype=tpc.float64), tpc.hamming_window(n, dtype=tpc.float64)):
        for normalized in (False, True):
            made = tpc.stft(x, n, 2, window=window, normalized=normalized, return_complex=True)
            back = tpc.istft(made, n, 2, window=window, normalized=normalized, length=33)
            covered = (made.shape[-1] - 1) * 2
            np.testing.assert_allclose(back.numpy()[:, :covered], x.numpy()[:, :covered], atol=1e-13)
    z = tpc.complex(x, x.flip(1))
    made = tpc.stft(z, n, 2, onesided=False)
    np.testing.assert_allclose(tpc.istft(made, n, 2, return_complex=True, length=33).numpy()[:, :32], z.numpy()[:, :32], atol=1e-13)


def test_istft_fills_up_to_the_length_with_zeros():
    x = tpc.tensor(wave(16))
    made = tpc.stft(x, 4, return_complex=True)
    with pytest.warns(UserWarning, match="padded with zeros"):
        long = tpc.istft(made, 4, length=30)
    assert long.shape == (30,)
    np.testing.assert_allclose(long.numpy()[:16], wave(16), atol=1e-14)
    assert long[18:].tolist() == [0] * 12


def parts(z: tpc.Tensor) -> tpc.Tensor:
    return tpc.view_as_real(z) if z.is_complex() else z


def test_gradients():
    window = np.hanning(6)[1:5] + 0.1
    check(lambda x, w: parts(tpc.stft(x, 4, 2, window=w, return_complex=True)) ** 2, wave(9), window)
    check(lambda x: parts(tpc.stft(x, 4, 3, center=False, onesided=False, return_complex=True)) ** 2, wave(2, 7))
    check(lambda re, im, w: tpc.istft(tpc.complex(re, im), 4, 2, window=w) ** 2, wave(3, 4), wave(4, 3).reshape(3, 4), window)


def test_batches_and_compiled_calls():
    x, w = tpc.tensor(wave(3, 20)), tpc.hann_window(8, dtype=tpc.float64)

    def there_and_back(x: tpc.Tensor) -> tpc.Tensor:
        return tpc.istft(tpc.stft(x, 8, 2, window=w, return_complex=True) * 2, 8, 2, window=w)

    np.testing.assert_allclose(tpc.compile(there_and_back)(x).numpy(), 2 * x.numpy(), atol=1e-13)
    batch = tpc.vmap(lambda row: tpc.stft(row, 8, 2, window=w, return_complex=True))(x)
    np.testing.assert_allclose(batch.numpy(), tpc.stft(x, 8, 2, window=w, return_complex=True).numpy(), atol=1e-14)


# --- errors -------------------------------------------------------------------------------------

x, X = tpc.ones(20), tpc.ones(5, 11, dtype=tpc.complex64)
REFUSED: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (RuntimeError, "hann_window requires non-negative window_length, got window_length=-1", lambda: tpc.hann_window(-1)),
    (RuntimeError, "hann_window expects floating point dtypes", lambda: tpc.hann_window(4, dtype=tpc.int64)),
    (ValueError, "requires non-negative window length, got M=-1", lambda: windows.hann(-1)),
    (ValueError, "bartlett expects float32 or float64 dtypes", lambda: windows.bartlett(4, dtype=tpc.float16)),
    (ValueError, "Standard deviation must be positive, got: -1 instead", lambda: windows.gaussian(4, std=-1)),
    (ValueError, "Tau must be positive", lambda: windows.exponential(4, tau=0)),
    (ValueError, "Center must be None for symmetric windows", lambda: windows.exponential(4, center=1)),
    (ValueError, "beta must be non-negative", lambda: windows.kaiser(4, beta=-1)),
    (ValueError, "Coefficients cannot be empty", lambda: windows.general_cosine(4, a=[])),
    (TypeError, "Coefficients must be a list/tuple", lambda: windows.general_cosine(4, a=3)),  # type: ignore[arg-type]
    (RuntimeError, "stft requires the return_complex parameter be given for real inputs", lambda: tpc.stft(x, 8)),
    (RuntimeError, "expected 0 < n_fft < 20, but got n_fft=30", lambda: tpc.stft(x, 30, center=False, return_complex=True)),
    (RuntimeError, "expected hop_length > 0, but got hop_length=0", lambda: tpc.stft(x, 8, 0, return_complex=True)),
    (RuntimeError, "expected 0 < win_length <= n_fft, but got win_length=9", lambda: tpc.stft(x, 8, 2, 9, return_complex=True)),
    (RuntimeError, "window with size", lambda: tpc.stft(x, 8, window=tpc.ones(3), return_complex=True)),
    (RuntimeError, "expected a 1D or 2D tensor", lambda: tpc.stft(x.reshape(2, 2, 5), 2, return_complex=True)),
    (RuntimeError, "floating point or complex values", lambda: tpc.stft(tpc.arange(20), 8, return_complex=True)),
    (RuntimeError, "Cannot have onesided output", lambda: tpc.stft(tpc.complex(x, x), 8, onesided=True)),
    (RuntimeError, "align_to_window should only be set when center = false", lambda: tpc.stft(x, 8, align_to_window=True)),
    (RuntimeError, "istft requires a complex-valued input tensor", lambda: tpc.istft(x.reshape(5, 4), 8)),
    (RuntimeError, "n_fft / 2 \\+ 1 when onesided=True, but got 5", lambda: tpc.istft(X, 10)),
    (RuntimeError, "expected 0 < hop_length <= win_length", lambda: tpc.istft(X, 8, 9)),
    (RuntimeError, "Invalid window shape", lambda: tpc.istft(X, 8, window=tpc.ones(6))),
    (RuntimeError, "input tensor cannot be empty", lambda: tpc.istft(X[:, :0], 8)),
    (RuntimeError, "window overlap add min: 1", lambda: tpc.istft(X, 8, window=tpc.hann_window(8), center=False)),
    (RuntimeError, "Cannot have onesided output", lambda: tpc.istft(X, 8, return_complex=True)),
]


@pytest.mark.parametrize(("kind", "phrase", "call"), REFUSED, ids=[phrase for _, phrase, _ in REFUSED])
def test_errors_are_those_of_pytorch(kind: type[Exception], phrase: str, call: Callable[[], object]):
    with pytest.raises(kind, match=phrase):
        call()
