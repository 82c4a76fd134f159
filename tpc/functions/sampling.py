"""Reading images at places that are computed: grid_sample and the grids of affine maps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.functions import elementwise as e
from tpc.functions.gathering import gather
from tpc.functions.linalg import matmul
from tpc.functions.shape import broadcast_to, expand, mT, reshape, unsqueeze
from tpc.record import cast
from tpc.tensor import Tensor, from_array

Sizes = tuple[int, ...]


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Reads images [batch, channels, *size] at the places `grid` [batch, *new size, axes], given in [-1, 1], x first.

    Modes "bilinear", "nearest", "bicubic" (images of two axes); outside are "zeros", the "border" or a "reflection".
    """
    count = _checked(input, grid, mode, padding_mode)
    align = bool(align_corners)
    size = input._type.shape[2:]
    # x is the last axis of the image.
    at = [_unnormalised(grid[..., count - 1 - d], n, align) for d, n in enumerate(size)]  # type: ignore[index]
    if mode == "bicubic":
        return _cubic(input, at, size, padding_mode, align)
    at = [_brought_inside(x, n, padding_mode, align) for x, n in zip(at, size, strict=True)]
    if mode == "nearest":
        found = _read(input, [e.round(x.detach()) for x in at], size)
        return e.add(found, unsqueeze(_flat(at), 1)) if grid._tracked() else found
    below = [e.floor(x.detach()) for x in at]
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=count):
        weight: Tensor | None = None
        places = []
        for x, low, step in zip(at, below, corner, strict=True):
            share = e.sub(x, low) if step else e.sub(e.add(low, 1), x)
            weight = share if weight is None else e.mul(weight, share)
            places.append(e.add(low, step))
        assert weight is not None
        part = e.mul(_read(input, places, size), unsqueeze(weight, 1))
        total = part if total is None else e.add(total, part)
    assert total is not None
    return total


def _flat(at: Sequence[Tensor]) -> Tensor:
    """Zeros that depend on the places: nearest elements have a gradient by them, which is 0."""
    total = e.round(at[0])
    for x in at[1:]:
        total = e.add(total, e.round(x))
    return e.sub(total, total.detach())


def _checked(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> int:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    x, g = input._type.shape, grid._type.shape
    if len(x) not in (4, 5) or len(g) != len(x) or g[0] != x[0] or g[-1] != len(x) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions and batch size, and grid to have size "
            f"{len(x) - 2} in last dimension, but got input with sizes {list(x)} and grid with sizes {list(g)}"
        )
    if 0 in x[2:]:
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(x)}")
    if mode == "bicubic" and len(x) == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input._type.dtype != grid._type.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and grid has {grid.dtype}"
        )
    return len(x) - 2


def _unnormalised(x: Tensor, n: int, align: bool) -> Tensor:
    """[-1, 1] as element numbers: -1 and 1 are the centres of the outermost elements, or their outer edges."""
    if align:
        return e.mul(e.div(e.add(x, 1), 2), n - 1)
    return e.div(e.sub(e.mul(e.add(x, 1), n), 1), 2)


def _brought_inside(x: Tensor, n: int, padding_mode: str, align: bool) -> Tensor:
    if padding_mode == "reflection":
        x = _reflected(x, *((0, 2 * (n - 1)) if align else (-1, 2 * n - 1)))
    if padding_mode in ("border", "reflection"):
        inside = e.logical_and(e.gt(x, 0), e.lt(x, n - 1))
        return e.where(inside, x, e.clamp(e.where(e.isnan(x), 0, x).detach(), 0, n - 1))
    return x


def _reflected(x: Tensor, twice_low: int, twice_high: int) -> Tensor:
    """Reflected at both ends, which are given doubled, as often as it takes."""
    if twice_low == twice_high:
        return e.mul(x, 0)
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    away = e.sub(x, low)
    distance = e.where(e.lt(away, 0), e.neg(away), away)
    flips = e.floor(e.div(distance.detach(), span))
    over = e.sub(distance, e.mul(flips, span))
    even = e.eq(e.fmod(flips, 2), 0)
    return e.where(even, e.add(over, low), e.sub(span + low, over))


def _read(input: Tensor, places: Sequence[Tensor], size: Sizes) -> Tensor:
    """The elements at whole-numbered places [batch, *new size], 0 outside."""
    flat: Any = 0
    inside: Any = None
    for x, n, below in zip(places, size, [math.prod(size[d + 1 :]) for d in range(len(size))], strict=True):
        here = e.logical_and(e.ge(x, 0), e.le(x, n - 1))
        inside = here if inside is None else e.logical_and(inside, here)
        flat = e.add(e.mul(cast(e.where(here, x, 0), "i64"), below), flat)
    batch, channels = input._type.shape[:2]
    made = places[0]._type.shape[1:]
    index = broadcast_to(reshape(flat, (batch, 1, math.prod(made))), (batch, channels, math.prod(made)))
    found = reshape(gather(reshape(input, (batch, channels, math.prod(size))), 2, index), (batch, channels, *made))
    return e.where(unsqueeze(inside, 1), found, 0)


def _cubic(input: Tensor, at: Sequence[Tensor], size: Sizes, padding_mode: str, align: bool) -> Tensor:
    below = [e.floor(x.detach()) for x in at]
    weights = [_cubic_weights(e.sub(x, low)) for x, low in zip(at, below, strict=True)]
    total: Tensor | None = None
    for i, j in itertools.product(range(4), repeat=2):
        places = [_brought_inside(e.add(low, step - 1), n, padding_mode, align) for low, step, n in zip(below, (i, j), size, strict=True)]
        places = [e.round(p) for p in places] if padding_mode != "zeros" else places
        part = e.mul(_read(input, places, size), unsqueeze(e.mul(weights[0][i], weights[1][j]), 1))
        total = part if total is None else e.add(total, part)
    assert total is not None
    return total


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Weights of four neighbours, of which the second lies t below: Keys' kernel with a = -0.75."""
    a = -0.75

    def far(x: Tensor) -> Tensor:
        return e.mul(e.sub(e.mul(e.add(e.mul(e.sub(x, 5), x), 8), x), 4), a)

    def near(x: Tensor) -> Tensor:
        return e.add(e.mul(e.mul(e.sub(e.mul(x, a + 2), a + 3), x), x), 1)

    rest = e.sub(1, t)
    return [far(e.add(t, 1)), near(t), near(rest), far(e.add(rest, 1))]


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that the affine maps theta [batch, axes, axes + 1] make of images of `size`."""
    if theta._type.dtype[0] != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    count = len(size) - 2
    if count not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively.")
    if theta._type.rank != 3 or theta._type.shape[1:] != (count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size {list(size)}. Got "
            f"{list(theta._type.shape)}."
        )
    sizes = [int(n) for n in size[2:]]
    axes = []
    for n in sizes:
        ends = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(ends if align_corners else ends * ((n - 1) / n))
    coordinates = [c.reshape(-1) for c in np.meshgrid(*axes, indexing="ij")][::-1]
    base = np.stack([*coordinates, np.ones(math.prod(sizes))], -1).astype(theta._type.numpy_dtype)
    batch = int(size[0])
    grid = matmul(expand(unsqueeze(from_array(base), 0), (batch, *base.shape)), mT(theta))
    return reshape(grid, (batch, *sizes, count))
