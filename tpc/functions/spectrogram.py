"""Short-time Fourier transforms: spectra of overlapping stretches of a signal, and the signal that has such spectra.

Stretches ("frames") of `n_fft` elements begin `hop_length` apart and are weighted with `window`, which stands in their middle. With
`center`, frame t is centred at t * hop_length, and the signal gets a border for it. Errors are `RuntimeError`s in PyTorch's words.
"""

from __future__ import annotations

import warnings
from typing import Any

from tpc.dtype import SCALAR_NAMES
from tpc.functions import elementwise as e
from tpc.functions.arranging import pad
from tpc.functions.dims import one_dim
from tpc.functions.factories import ones_of
from tpc.functions.fft import c2c, c2r, r2c
from tpc.functions.pairs import view_as_real
from tpc.functions.reduction import amin
from tpc.functions.shape import reshape, sliced
from tpc.ir.ops import nn as ops
from tpc.ir.types import complex_dtype, is_complex, is_differentiable, real_dtype, tensor_type
from tpc.record import cast, record
from tpc.tensor import Tensor


def _moves(hop: int) -> dict[str, Any]:
    return {"stride": (hop,), "low": (0,), "high": (0,), "dilation": (1,)}


def _described(name: str, x: Tensor, n_fft: int, hop: int, width: int) -> str:
    kind = f"torch.{SCALAR_NAMES[x._type.dtype]}Tensor{list(x._type.shape)}"
    return f"{name}({kind}, n_fft={n_fft}, hop_length={hop}, win_length={width})"


def _weights(window: Tensor | None, dtype: str, n_fft: int, width: int) -> Tensor | None:
    """The window with zeros on both sides, up to n_fft elements; None for one of ones."""
    if window is None:
        if width == n_fft:
            return None
        window = ones_of(tensor_type(real_dtype(dtype), (width,)))
    left = (n_fft - width) // 2
    return window if width == n_fft else pad(window, (left, n_fft - width - left))


def _down(window: Tensor) -> Tensor:
    """As a column, which meets frames that are columns."""
    return reshape(window, (*window._type.shape, 1))


def _one_sided(asked: bool | None, default: bool, complex_: bool) -> bool:
    sided = default if asked is None else asked
    if sided and complex_:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return sided


def _check_signal(said: str, x: Tensor, n_fft: int, hop: int, width: int, window: Tensor | None) -> None:
    if not is_differentiable(x._type.dtype):
        raise RuntimeError(f"{said} : expected a tensor of floating point or complex values")
    if x._type.rank not in (1, 2):
        raise RuntimeError(f"{said} : expected a 1D or 2D tensor")
    length = x._type.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{said} : expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{said} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{said} : expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window._type.shape != (width,):
        size = list(window._type.shape)
        raise RuntimeError(f"{said} : expected a 1D window tensor of size equal to win_length={width}, but got window with size {size}")


def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Spectra [..., frequencies, frames] of frames of a signal [..., time].

    `hop_length` is n_fft // 4 and `win_length` n_fft by default; `onesided` leaves out the conjugate half of the spectra of real
    signals, `normalized` divides by the square root of n_fft, `return_complex=False` gives real and imaginary parts in a last dimension.
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    x = _bordered(input, n_fft // 2, pad_mode) if center else input
    said = _described("stft", x, n_fft, hop, width)
    is_wave = is_complex(x._type.dtype) or (window is not None and is_complex(window._type.dtype))
    if return_complex is None and not is_wave:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a "
            "future PyTorch release."
        )
    _check_signal(said, x, n_fft, hop, width, window)
    sided = _one_sided(onesided, not is_wave, is_wave)
    if not center and align_to_window:
        x = pad(x, ((n_fft - width) // 2,) * 2)
    frames = record(ops.im2col, (x,), {"kernel": (n_fft,), **_moves(hop)})
    weights = _weights(window, x._type.dtype, n_fft, width)
    frames = frames if weights is None else e.mul(frames, _down(weights))
    dim, norm = frames._type.rank - 2, "sqrt" if normalized else "none"
    if sided:
        spectra = r2c(frames, dim, n_fft, norm)
    else:
        spectra = c2c(cast(frames, complex_dtype(frames._type.dtype)), dim, n_fft, True, norm)
    return spectra if return_complex or return_complex is None else view_as_real(spectra)


def _bordered(x: Tensor, amount: int, mode: str) -> Tensor:
    """A signal of any rank with a border on both sides of its last dimension."""
    shape = x._type.shape
    whole = reshape(x, (1,) * (3 - len(shape)) + shape) if len(shape) < 3 else x
    wide = pad(whole, (amount, amount), mode)
    return reshape(wide, (*shape[:-1], wide._type.shape[-1])) if len(shape) < 3 else wide


ALMOST_0 = 1e-11
"""Where the windows add up to less, nothing is known of the signal."""


def _checked_spectra(said: str, input: Tensor, n_fft: int, hop: int, width: int, window: Tensor | None, onesided: bool | None) -> bool:
    """Whether the spectra are halves."""
    if not is_complex(input._type.dtype):
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if input._type.numel == 0:
        raise RuntimeError(f"{said} : input tensor cannot be empty.")
    if input._type.rank not in (2, 3):
        one_dim(-2, input._type.rank)
        raise RuntimeError(f"{said} : expected a tensor with 3 or 4 dimensions, but got {input._type.rank + 1}")
    bins = input._type.shape[-2]
    sided = bins != n_fft if onesided is None else onesided
    if bins != (n_fft // 2 + 1 if sided else n_fft):
        wanted = "n_fft / 2 + 1 when onesided=True" if sided else "n_fft when onesided=False"
        raise RuntimeError(
            f"{said} : expected the frequency dimension (3rd to the last) of the input tensor to match {wanted}, but got {bins}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{said} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{said} : expected 0 < win_length <= n_fft")
    if window is not None and window._type.shape != (width,):
        raise RuntimeError(f"{said} : Invalid window shape. window has to be 1D and length of `win_length`")
    return sided


def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal [..., time] with these spectra: weighted frames added up where they overlap, over the sum of the squared windows.

    `RuntimeError` where that sum is 0 in the part of the signal that is asked for.
    """
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    said = _described("istft", input, n_fft, hop, width)
    sided = _checked_spectra(said, input, n_fft, hop, width, window, onesided)
    count = input._type.shape[-1]
    if window is not None and is_complex(window._type.dtype) and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    _one_sided(sided, sided, return_complex)
    frames = _frames(input, n_fft, sided, return_complex, "sqrt" if normalized else "n")
    weights = _weights(window, input._type.dtype, n_fft, width)
    if weights is None:
        weights = ones_of(tensor_type(real_dtype(input._type.dtype), (n_fft,)))
    total = n_fft + hop * (count - 1)
    signal = record(ops.col2im, (e.mul(frames, _down(weights)),), {"size": (total,), **_moves(hop)})
    spread = e.mul(_down(e.square(weights)), ones_of(tensor_type(weights._type.dtype, (count,))))
    envelope = record(ops.col2im, (spread,), {"size": (total,), **_moves(hop)})
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    return _normalised(said, signal, envelope, start, end)


def _frames(x: Tensor, n_fft: int, sided: bool, return_complex: bool, norm: str) -> Tensor:
    dim = x._type.rank - 2
    if return_complex:
        return c2c(x, dim, n_fft, False, norm)
    return c2r(x if sided else sliced(x, dim, 0, n_fft // 2 + 1), dim, n_fft, norm)


def _normalised(said: str, signal: Tensor, envelope: Tensor, start: int, end: int) -> Tensor:
    """The elements from `start` to `end` over the envelope; zeros beyond the signal's end."""
    have = signal._type.shape[-1]
    last = min(end, have)
    signal, envelope = sliced(signal, signal._type.rank - 1, start, last), sliced(envelope, 0, start, last)
    if last > start and not bool(e.gt(amin(e.abs(envelope.detach())), ALMOST_0)):
        raise RuntimeError(f"{said} window overlap add min: 1")
    signal = e.div(signal, envelope)
    if end > have:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail.", stacklevel=3
        )
        signal = pad(signal, (0, end - have))
    return signal
