"""Images in another size: nearest elements, linear and cubic interpolation, areas. One axis at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tpc.functions import elementwise as e
from tpc.ir.ops import indexing as index_ops
from tpc.ir.ops import shape as shape_ops
from tpc.ir.types import is_complex
from tpc.record import cast, record
from tpc.tensor import Tensor, from_array

Sizes = tuple[int, ...]
Array: TypeAlias = Any


class Taps(NamedTuple):
    """How an axis is made of an old one: output i is the sum over t of weights[t, i] * input[places[t, i]]."""

    places: Array
    weights: Array


def tapped(x: Tensor, axis: int, taps: Taps) -> Tensor:
    """`x` with one axis resampled."""
    total: Tensor | None = None
    behind = x._type.rank - axis - 1
    for places, weights in zip(*taps, strict=True):
        part = record(index_ops.index_select, (x, from_array(places)), {"dim": axis})
        if (weights != 1).any():
            part = e.mul(part, from_array(weights.astype(x._type.numpy_dtype).reshape(-1, *(1,) * behind)))
        total = part if total is None else e.add(total, part)
    assert total is not None
    return total


# --- which elements -----------------------------------------------------------------------------


def _step(n: int, made: int, scale: float | None) -> float:
    """How far outputs lie apart, in inputs."""
    return 1 / scale if scale is not None and scale > 0 else n / made


def _nearest(n: int, made: int, scale: float | None, centred: bool) -> Array:
    """The element for each output, in single precision as in PyTorch."""
    i = np.arange(made, dtype=np.float32) + np.float32(0.5 if centred else 0)
    return np.minimum(np.floor(i * np.float32(_step(n, made, scale))), n - 1).astype(np.int64)


def _positions(n: int, made: int, scale: float | None, align_corners: bool, dtype: np.dtype) -> Array:
    """Where outputs lie among inputs, in the precision of the image."""
    work: Any = np.float64 if dtype == np.float64 else np.float32
    i = np.arange(made).astype(work)
    if align_corners:
        return i * work((n - 1) / (made - 1) if made > 1 else 0)
    return (i + work(0.5)) * work(_step(n, made, scale)) - work(0.5)


def _linear(n: int, made: int, scale: float | None, align_corners: bool, dtype: np.dtype) -> Taps:
    at = np.maximum(_positions(n, made, scale, align_corners, dtype), 0)
    first = np.minimum(at.astype(np.int64), n - 1)
    share = np.clip(at - first, 0, 1)
    return Taps(np.stack([first, np.minimum(first + 1, n - 1)]), np.stack([1 - share, share]))


def _cubic_weight(x: Array, a: float) -> Array:
    """Keys' cubic convolution kernel at distance x."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _cubic(n: int, made: int, scale: float | None, align_corners: bool, dtype: np.dtype) -> Taps:
    at = _positions(n, made, scale, align_corners, dtype)
    first = np.floor(at)
    share = at - first
    offsets = np.arange(-1, 3)[:, None]
    return Taps(np.clip(first.astype(np.int64) + offsets, 0, n - 1), _cubic_weight(share - offsets, -0.75))


def _smoothed(n: int, made: int, scale: float | None, align_corners: bool, cubic: bool) -> Taps:
    """Linear and cubic weights widened by the step, so that every input counts when an image shrinks."""
    step = ((n - 1) / (made - 1) if made > 1 else 0.0) if align_corners else _step(n, made, scale)
    wide = max(step, 1.0)
    support = (2.0 if cubic else 1.0) * wide
    centre = step * (np.arange(made) + 0.5)
    first = np.maximum((centre - support + 0.5).astype(np.int64), 0)
    count = np.minimum((centre + support + 0.5).astype(np.int64), n) - first
    offsets = np.arange(max(int(count.max(initial=1)), 1))[:, None]
    distance = (offsets + first - centre + 0.5) / wide
    weights = _cubic_weight(distance, -0.5) if cubic else np.maximum(1 - np.abs(distance), 0)
    weights = np.where(offsets < count, weights, 0)
    return Taps(np.minimum(first + offsets, np.minimum(first + count, n) - 1), weights / weights.sum(0))


# --- the public function ------------------------------------------------------------------------

_AXES = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
"""The rank that each of these modes needs."""
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Images [batch, channels, *size] brought to another size, or to `scale_factor` times theirs."""
    rank = input._type.rank
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif mode not in _MODES:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: {' | '.join(_MODES)} (got {mode})"
        )
    elif rank != _AXES[mode]:
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {_AXES[mode]}D input")
    if not 3 <= rank <= 5:
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D)")
    if is_complex(input._type.dtype):
        raise NotImplementedError("interpolate does not take complex tensors")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input")
    old = input._type.shape[2:]
    new, scales = _target(old, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return _area(input, new)
    # Of images in bytes the columns come first, and each step is rounded.
    bytes_ = input._type.dtype == "u8"
    axes = list(enumerate(zip(old, new, scales, strict=True), 2))
    for axis, (n, made, scale) in axes[::-1] if bytes_ else axes:
        if mode.startswith("nearest"):
            input = _repeated(input, axis, _nearest(n, made, scale, mode == "nearest-exact"))
        elif n != made or (scale is not None and scale != 1):
            x = cast(input, "f32") if bytes_ else input
            x = tapped(x, axis, _taps(mode, n, made, scale, bool(align_corners), antialias, x._type.numpy_dtype))
            input = cast(e.clamp(e.floor(e.add(x, 0.5)), 0, 255), "u8") if bytes_ else x
    return input


def _taps(mode: str, n: int, made: int, scale: float | None, align_corners: bool, antialias: bool, dtype: np.dtype) -> Taps:
    if antialias:
        return _smoothed(n, made, scale, align_corners, mode == "bicubic")
    return (_cubic if mode == "bicubic" else _linear)(n, made, scale, align_corners, dtype)


def _target(old: Sizes, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[Sizes, Sequence[float | None]]:
    """The new size, and the scale for each axis where positions follow it rather than the sizes."""
    count = len(old)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        new = tuple(size) if isinstance(size, (tuple, list)) else (size,) * count
        if len(new) != count:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {list(old)} "
                f"and output size of {size}"
            )
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        new, scales = tuple([int(n) for n in new]), [None] * count
    elif scale_factor is not None:
        given = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * count
        if len(given) != count:
            raise ValueError(
                f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(old)} and scale_factor of shape {scale_factor}"
            )
        new = tuple([math.floor(float(n) * s) for n, s in zip(old, given, strict=True)])
        scales = [None] * count if recompute else [float(s) for s in given]  # type: ignore[misc]
    else:
        raise ValueError("either size or scale_factor should be defined")
    if min(new) < 1:
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input {list(old)} and output {list(new)}")
    return new, scales


def _area(x: Tensor, size: Sizes) -> Tensor:
    from tpc.functions import pooling

    return (pooling.adaptive_avg_pool1d, pooling.adaptive_avg_pool2d, pooling.adaptive_avg_pool3d)[len(size) - 1](x, size)


def _repeated(x: Tensor, axis: int, places: Array) -> Tensor:
    """The elements at these places; by a broadcast where each comes equally often."""
    shape = x._type.shape
    n, made = shape[axis], len(places)
    if made % n == 0 and (places == np.arange(made) // (made // n)).all():
        if made == n:
            return x
        split = record(shape_ops.reshape, (x,), {"shape": (*shape[: axis + 1], 1, *shape[axis + 1 :])})
        wide = record(shape_ops.broadcast_to, (split,), {"shape": (*shape[: axis + 1], made // n, *shape[axis + 1 :])})
        return record(shape_ops.reshape, (wide,), {"shape": (*shape[:axis], made, *shape[axis + 1 :])})  # type: ignore[no-any-return]
    return record(index_ops.index_select, (x, from_array(places)), {"dim": axis})  # type: ignore[no-any-return]


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """The old name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by nearest elements."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` bilinearly, corners on corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)
