"""Discrete Fourier transforms.

`n` (or `s`, a size per dimension) is the length of the signal: a longer dimension is cut, a shorter one gets zeros. `norm` is
"backward" (the inverse divides by n), "forward" (the forward transform does) or "ortho" (both divide by the square root of n).
Errors: `RuntimeError` for lengths below 1, unknown norms, repeated dimensions, half precision, complex operands of real transforms;
`IndexError` for dimensions out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tpc.dtype import SCALAR_NAMES, default_dtype
from tpc.functions.arranging import roll
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import conj, mul, stored
from tpc.functions.factories import _Options, arange
from tpc.functions.joining import cat
from tpc.functions.shape import int_list, one_int, sliced
from tpc.ir.ops import fft as ops
from tpc.ir.ops import shape as shape_ops
from tpc.ir.types import complex_dtype, is_complex, is_differentiable, is_floating
from tpc.record import cast, record
from tpc.tensor import Tensor

DIVIDES = {True: {"forward": "n", "ortho": "sqrt", "backward": "none"}, False: {"forward": "none", "ortho": "sqrt", "backward": "n"}}
"""By direction (True: forward) and mode: what a transform is divided by."""


def _norm(mode: str | None, forward: bool) -> str:
    try:
        return DIVIDES[forward][mode or "backward"]
    except KeyError:
        raise RuntimeError(f'Invalid normalization mode: "{mode}"') from None


def _floating(name: str, x: Any) -> Tensor:
    """The operand as a floating or complex tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    if x._type.dtype == "f16":
        raise RuntimeError("Unsupported dtype Half")
    return x if is_differentiable(x._type.dtype) else cast(x, default_dtype())


def _complex(name: str, x: Any) -> Tensor:
    x = _floating(name, x)
    return cast(x, complex_dtype(x._type.dtype))


def _real(name: str, x: Any, says: str = "a real") -> Tensor:
    if isinstance(x, Tensor) and is_complex(x._type.dtype):
        raise RuntimeError(f"{name} expects {says} input tensor, but got {SCALAR_NAMES[x._type.dtype]}")
    return _floating(name, x)


def _dim(x: Tensor, dim: int) -> int:
    if not x._type.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return one_dim(dim, x._type.rank)


def _length(name: str, n: int | None, default: int) -> int:
    size = default if n is None else one_int(n, f"fft_{name}", "n")
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _fitted(x: Tensor, dim: int, size: int) -> Tensor:
    """The first `size` elements along a dimension, zeros where there are fewer."""
    have, rank = x._type.shape[dim], x._type.rank
    if have > size:
        return sliced(x, dim, 0, size)
    if have == size:
        return x
    high = tuple([size - have if d == dim else 0 for d in range(rank)])
    return record(shape_ops.pad, (x,), {"low": (0,) * rank, "high": high, "value": 0j if is_complex(x._type.dtype) else 0.0})  # type: ignore[no-any-return]


def c2c(x: Tensor, dim: int, size: int, forward: bool, norm: str) -> Tensor:
    return record(ops.c2c, (_fitted(x, dim, size),), {"dim": dim, "inverse": not forward, "norm": norm})  # type: ignore[no-any-return]


def r2c(x: Tensor, dim: int, size: int, norm: str) -> Tensor:
    return record(ops.r2c, (_fitted(x, dim, size),), {"dim": dim, "norm": norm})  # type: ignore[no-any-return]


def c2r(x: Tensor, dim: int, size: int, norm: str) -> Tensor:
    return record(ops.c2r, (_fitted(x, dim, size // 2 + 1),), {"dim": dim, "size": size, "norm": norm})  # type: ignore[no-any-return]


def _given(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    if out is not None and is_complex(out._type.dtype) != is_complex(result._type.dtype):
        kind = "complex" if is_complex(result._type.dtype) else "floating point"
        raise RuntimeError(f"{name} expects a {kind} output tensor, but got {SCALAR_NAMES[out._type.dtype]}")
    return stored(result, out)


# --- one dimension ------------------------------------------------------------------------------


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Fourier transform along one dimension."""
    x = _complex("fft", input)
    d = _dim(x, dim)
    return _given("fft", c2c(x, d, _length("fft", n, x._type.shape[d]), True, _norm(norm, True)), out)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `fft`."""
    x = _complex("ifft", input)
    d = _dim(x, dim)
    return _given("ifft", c2c(x, d, _length("ifft", n, x._type.shape[d]), False, _norm(norm, False)), out)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Fourier transform of real numbers: the first n // 2 + 1 elements, of which the others are conjugates."""
    x = _real("rfft", input)
    d = _dim(x, dim)
    return _given("rfft", r2c(x, d, _length("rfft", n, x._type.shape[d]), _norm(norm, True)), out)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `rfft`: n real numbers, by default twice (the spectrum's length - 1)."""
    x = _complex("irfft", input)
    d = _dim(x, dim)
    return _given("irfft", c2r(x, d, _length("irfft", n, 2 * (x._type.shape[d] - 1)), _norm(norm, False)), out)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Fourier transform, a real one, of a signal of which the second half is the conjugate of the first and is not given."""
    x = _complex("hfft", input)
    d = _dim(x, dim)
    return _given("hfft", c2r(conj(x), d, _length("hfft", n, 2 * (x._type.shape[d] - 1)), _norm(norm, True)), out)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `hfft`: the first half of the signal."""
    x = _real("ihfft", input)
    d = _dim(x, dim)
    return _given("ihfft", conj(r2c(x, d, _length("ihfft", n, x._type.shape[d]), _norm(norm, False))), out)


# --- several dimensions -------------------------------------------------------------------------


def _sizes(name: str, x: Tensor, s: Any, dim: Any, last: Callable[[int], int] = lambda n: n) -> tuple[list[int], list[int]]:
    """The dimensions that are transformed and the signal's sizes there; `last` says what the last one is by default."""
    rank = x._type.rank
    wanted = None if s is None else list(int_list((s,), f"fft_{name}", "s"))
    if dim is not None:
        dims = [_dim(x, d) for d in int_list((dim,), f"fft_{name}", "dim")]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if wanted is not None and len(wanted) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif wanted is not None and len(wanted) > rank:
        raise RuntimeError(f"Got shape with {len(wanted)} values but input tensor only has {rank} dimensions.")
    else:
        dims = list(range(0 if wanted is None else rank - len(wanted), rank))
    sizes = [x._type.shape[d] for d in dims]
    if sizes:
        sizes[-1] = last(sizes[-1])
    sizes = [have if n == -1 else n for n, have in zip(wanted, sizes, strict=True)] if wanted else sizes
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _over(x: Tensor, dims: Sequence[int], sizes: Sequence[int], forward: bool, norm: str) -> Tensor:
    for d, n in zip(dims, sizes, strict=True):
        x = c2c(x, d, n, forward, norm)
    return x


def _one_axis(name: str, dims: Sequence[int]) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Fourier transform along several dimensions, by default all."""
    x = _complex("fftn", input)
    return _given("fftn", _over(x, *_sizes("fftn", x, s, dim), True, _norm(norm, True)), out)


def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `fftn`."""
    x = _complex("ifftn", input)
    return _given("ifftn", _over(x, *_sizes("ifftn", x, s, dim), False, _norm(norm, False)), out)


def _half(name: str, x: Tensor, s: Any, dim: Any, forward: bool, norm: str) -> Tensor:
    """Half the spectrum along the last of the dimensions, then whole ones along the others."""
    dims, sizes = _sizes(name, x, s, dim)
    _one_axis(name, dims)
    if is_complex(x._type.dtype):
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {SCALAR_NAMES[x._type.dtype]}")
    half = r2c(x, dims[-1], sizes[-1], norm)
    return _over(half if forward else conj(half), dims[:-1], sizes[:-1], forward, norm)


def _whole(name: str, x: Tensor, s: Any, dim: Any, forward: bool, norm: str) -> Tensor:
    """The inverse of `_half`."""
    dims, sizes = _sizes(name, x, s, dim, lambda n: 2 * (n - 1))
    _one_axis(name, dims)
    half = _over(x, dims[:-1], sizes[:-1], forward, norm)
    return c2r(conj(half) if forward else half, dims[-1], sizes[-1], norm)


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Fourier transform of real numbers along several dimensions: half the spectrum along the last of them."""
    x = _real("rfftn", input, "a real-valued")
    return _given("rfftn", _half("rfftn", x, s, dim, True, _norm(norm, True)), out)


def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `rfftn`."""
    return _given("irfftn", _whole("irfftn", _complex("irfftn", input), s, dim, False, _norm(norm, False)), out)


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fftn` along all but the last of the dimensions, `hfft` along that."""
    return _given("hfftn", _whole("hfftn", _complex("hfftn", input), s, dim, True, _norm(norm, True)), out)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Inverse of `hfftn`."""
    return _given("ihfftn", _half("ihfftn", _floating("ihfftn", input), s, dim, False, _norm(norm, False)), out)


def _in_two(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return transform(input, s, dim, norm, out=out)

    function.__name__ = function.__qualname__ = transform.__name__[:-1] + "2"
    function.__doc__ = f"`{transform.__name__}` along two dimensions, by default the last."
    return function


fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (_in_two(f) for f in (fftn, ifftn, rfftn, irfftn, hfftn, ihfftn))


# --- frequencies --------------------------------------------------------------------------------


def _frequencies(name: str, parts: Sequence[tuple[int, int]], n: int, d: float, options: dict[str, Any]) -> Tensor:
    """start, start + 1, ... before end for each of the parts, times 1 / (n d)."""
    given = _Options(name, options, None)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if not is_differentiable(given.dtype):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if not is_floating(given.dtype):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{SCALAR_NAMES[given.dtype]}'")
    whole = cat([cast(arange(*ends), given.dtype) for ends in parts])
    return given.finish(mul(whole, 1.0 / (n * d) if n * d else math.inf))


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """Frequencies of the elements of `fft` of n samples d apart: 0, 1, ..., then the negative ones, over n d."""
    half = (n + 1) // 2
    return _frequencies("fftfreq", ((0, half), (half - n, 0)), n, d, options)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """Frequencies of the elements of `rfft` of n samples d apart: 0, 1, ..., n // 2 over n d."""
    return _frequencies("rfftfreq", ((0, n // 2 + 1),), n, d, options)


def _shifted(x: Tensor, dim: Any, by: Callable[[int], int]) -> Tensor:
    dims = list(range(x._type.rank)) if dim is None else [one_dim(d, x._type.rank) for d in ((dim,) if isinstance(dim, int) else dim)]
    return roll(x, [by(x._type.shape[d]) for d in dims], dims)


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Elements rolled so that frequency 0 is in the middle, along all dimensions or some."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Inverse of `fftshift`."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)
