"""Windows on memory and gradients of sampled functions: as_strided, index_reduce, gradient, unravel_index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.functions import elementwise as e
from tpc.functions.data import checked_number
from tpc.functions.dims import one_dim, some_dims
from tpc.functions.factories import full
from tpc.functions.gathering import scatter_reduce
from tpc.functions.indexing import put, take
from tpc.functions.joining import cat
from tpc.functions.pairs import view_as_complex, view_as_real
from tpc.functions.shape import expand, int_list, narrow, reshape, reshaped, sliced
from tpc.ir.types import category, is_complex
from tpc.record import cast
from tpc.tensor import Tensor, from_array

# --- strides ------------------------------------------------------------------------------------


def _memory(x: Tensor) -> tuple[Tensor, int]:
    """The whole memory as a vector with the history of `x`, and where `x` begins in it."""
    from tpc.strides import is_contiguous, layout_of

    if is_contiguous(x) and x._type.numel == _room(x):
        return reshape(x, -1), layout_of(x).offset
    base = x._base
    if base is not None and not base._views:
        if is_complex(base._type.dtype) != is_complex(x._type.dtype):
            base = view_as_complex(base) if is_complex(x._type.dtype) else view_as_real(base)
        return reshape(base, -1), layout_of(x).offset
    if x._tracked():
        raise RuntimeError("as_strided() of a part of memory that requires grad: use the whole tensor, or contiguous() of the part")
    whole = x._storage.read()
    from tpc.tensor import from_recorded

    return reshape(from_recorded(whole), -1), layout_of(x).offset


def _room(x: Tensor) -> int:
    from tpc.strides import whole_storage

    return whole_storage(x).value.type.numel if x._views else x._type.numel


def _elements(size: Sequence[int], stride: Sequence[int], offset: int, room: int) -> np.ndarray:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    found = np.full(tuple(size), offset)
    for d, (n, step) in enumerate(zip(size, stride, strict=True)):
        found = found + (np.arange(n) * step).reshape((n,) + (1,) * (len(size) - 1 - d))
    if found.size and found.max() >= room:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} are out of bounds for storage of {room} "
            "elements"
        )
    return found


def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """The elements of a tensor's memory at offset + the sum of index * stride. A copy: writing to it does not write to the input."""
    memory, start = _memory(input)
    wanted = _elements(
        int_list((size,), "as_strided"),
        int_list((stride,), "as_strided", "stride"),
        start if storage_offset is None else storage_offset,
        memory._type.numel,
    )
    return take(memory, from_array(wanted))


def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of the tensor with `src` at the elements that `as_strided` of the copy shows."""
    sizes, steps = int_list((size,), "as_strided_scatter"), int_list((stride,), "as_strided_scatter")
    at = _elements(sizes, steps, storage_offset or 0, input._type.numel)
    if src._type.shape != at.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(at.shape)}"
        )
    return put(e.clone(input), from_array(at), src)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Numbers of elements as one index per dimension of a shape."""
    if category(indices._type.dtype) != 1:
        raise ValueError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = int_list((shape,), "unravel_index", "shape") if isinstance(shape, (tuple, list)) else (int(shape),)
    steps = [int(np.prod(sizes[d + 1 :], dtype=np.int64)) for d in range(len(sizes))]
    return tuple(e.remainder(e.floor_divide(indices, step), n) for step, n in zip(steps, sizes, strict=True))


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`narrow`, as a copy."""
    return e.clone(narrow(input, dim, start, length))


# --- combined writing ---------------------------------------------------------------------------


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None
) -> Tensor:
    """Slices of `source` combined with those of `input` that a vector names: "prod", "mean", "amax" or "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    at = one_dim(dim, input._type.rank)
    if index._type.rank > 1:
        raise IndexError(f"index_reduce(): Index is supposed to be a vector, but got dim: {index._type.rank}")
    rank = source._type.rank
    column = tuple([index._type.numel if d == at else 1 for d in range(rank)])
    ids = expand(reshape(index, column), source._type.shape)
    return scatter_reduce(input, at, ids, source, reduce, include_self=include_self, out=out)


# --- derivatives of samples ---------------------------------------------------------------------


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Slopes of a sampled function along each of `dim` (all dimensions): second order inside, `edge_order` at the ends.

    `spacing` is the distance of samples, one number or one per dimension, or their places, one vector per dimension.
    """
    wanted = range(input._type.rank) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = [one_dim(d, input._type.rank) for d in wanted]
    some_dims(dims, input._type.rank)
    spacing = 1 if spacing is None else spacing
    given = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(given) != len(dims):
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar or a list of {len(dims)} but got {len(given)}")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    return tuple(_slope(input, d, h, edge_order) for d, h in zip(dims, given, strict=True))


def _slope(x: Tensor, d: int, spacing: Any, edge_order: int) -> Tensor:
    n = x._type.shape[d]
    if n <= edge_order:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    if category(x._type.dtype) < 2:
        x = cast(x, "f32")
    places = spacing if isinstance(spacing, Tensor) and spacing._type.shape else None
    y = [sliced(x, d, i, n - 2 + i) for i in range(3)]
    if places is None:
        inside = e.div(e.sub(y[2], y[0]), e.mul(spacing, 2) if isinstance(spacing, Tensor) else 2 * spacing)
        first = last = spacing
        steps = [spacing, spacing, spacing, spacing]
    else:
        if places._type.shape != (n,):
            raise RuntimeError("torch.gradient expected each spacing tensor to have one number per sample of its dimension")
        h = e.sub(sliced(places, 0, 1, n), sliced(places, 0, 0, n - 1))
        a, b = (_along(sliced(h, 0, i, n - 2 + i), x, d) for i in range(2))
        inside = e.add(
            e.add(e.mul(y[0], e.neg(e.div(b, e.mul(a, e.add(a, b))))), e.mul(y[1], e.div(e.sub(b, a), e.mul(a, b)))),
            e.mul(y[2], e.div(a, e.mul(b, e.add(a, b)))),
        )
        steps = [h[0], h[1] if n > 2 else h[0], h[-1], h[-2] if n > 2 else h[-1]]  # type: ignore[index]
        first, last = steps[0], steps[2]
    at = [sliced(x, d, i, i + 1) for i in range(min(n, 3))] + [sliced(x, d, n - 1 - i, n - i) for i in range(min(n, 3))]
    low, high = at[: len(at) // 2], at[len(at) // 2 :]
    if edge_order == 1:
        start, end = e.div(e.sub(low[1], low[0]), first), e.div(e.sub(high[0], high[1]), last)
    else:
        start, end = _edge(low, steps[0], steps[1]), e.neg(_edge(high, steps[2], steps[3]))
    return cat((start, inside, end), d)


def _along(h: Tensor, x: Tensor, d: int) -> Tensor:
    return reshaped(h, (h._type.numel, *(1,) * (x._type.rank - 1 - d)))


def _edge(y: list[Tensor], a: Any, b: Any) -> Tensor:
    """The slope at the first of three samples that lie a and b apart, of the parabola through them."""
    total = a + b
    return e.sub(e.sub(e.mul(y[1], total / (a * b)), e.mul(y[0], (2 * a + b) / (a * total))), e.mul(y[2], a / (b * total)))


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of the same shape and dtype, full of `value`."""
    if isinstance(value, Tensor):
        if value._type.shape:
            raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {value._type.rank} dimensions.")
        return e.clone(expand(cast(value, input._type.dtype), input._type.shape))
    return full(input._type.shape, checked_number(value, input._type.dtype), dtype=input.dtype)
