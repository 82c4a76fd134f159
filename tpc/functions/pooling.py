"""Pooling: windows of the last axes combined to their maximum, mean or p-norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpc.functions import elementwise as e
from tpc.functions import reduction
from tpc.functions.arranging import flip
from tpc.functions.conv import several
from tpc.functions.factories import filled
from tpc.functions.gathering import gather, scatter
from tpc.functions.reduction import argmax, mean
from tpc.functions.shape import expand, reshape
from tpc.ir.opdef import AttrValue
from tpc.ir.ops import indexing as index_ops
from tpc.ir.ops import nn as ops
from tpc.ir.types import is_floating, tensor_type
from tpc.record import cast, record
from tpc.tensor import Tensor, from_array

Sizes = tuple[int, ...]


def _check(x: Tensor, count: int, function: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{function}(): argument 'input' must be Tensor, not {type(x).__name__}")
    shape = x._type.shape
    if len(shape) not in (count + 1, count + 2) or 0 in shape[-count - 1 :]:
        raise RuntimeError(
            f"{function}(): Expected {count + 1}D or {count + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got: "
            f"{list(shape)}"
        )


def _window(
    x: Tensor, count: int, function: str, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[dict[str, AttrValue], Sizes]:
    """The attributes of a pooling op, and the places that the window has."""
    _check(x, count, function)
    kernel = several(kernel_size, count, function, "kernel_size")
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    steps = kernel if empty else several(stride, count, function, "stride")
    border, spread = several(padding, count, function, "padding"), several(dilation, count, function, "dilation")
    if min(kernel) < 1 or min(steps) < 1 or min(spread) < 1:
        given = f"{list(kernel)}, {list(steps)}, {list(spread)}"
        raise RuntimeError(f"{function}(): kernel size, stride and dilation should be greater than zero, but got {given}")
    high, places = [], []
    size = x._type.shape[-count:]
    for n, k, s, p, d in zip(size, kernel, steps, border, spread, strict=True):
        span = d * (k - 1) + 1
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if 2 * p > span:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
        rest = n + 2 * p - span
        made = (-(-rest // s) if ceil_mode else rest // s) + 1
        if ceil_mode and (made - 1) * s >= n + p:
            made -= 1  # the last window would begin behind the elements
        high.append(max(p, (made - 1) * s + span - n - p))
        places.append(made)
    if min(places) < 1:
        channels = x._type.shape[-count - 1]
        given, made_of = ("x".join(map(str, (channels, *sizes))) for sizes in (size, [max(n, 0) for n in places]))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({made_of}). Output size is too small ({function})")
    return {"kernel": kernel, "stride": steps, "low": border, "high": tuple(high), "dilation": spread}, tuple(places)


# --- maximum ------------------------------------------------------------------------------------


def _max_pool(count: int) -> Callable[..., Any]:
    name = f"max_pool{count}d"

    def function(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        attrs, _ = _window(input, count, name, kernel_size, stride, padding, dilation, ceil_mode)
        values = record(ops.max_pool, (input,), attrs)
        return (values, record(ops.max_pool_indices, (input,), attrs)) if return_indices else values

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The largest element of each window of the last {count} dimensions; with `return_indices` also its flat index.

    The border counts as minus infinity. With `ceil_mode`, a last window that is not full counts too."""
    return function


def _with_indices(pool: Callable[..., Any], name: str) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        return pool(*args, **{**options, "return_indices": True})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{pool.__name__}` and the indices of the maxima."
    return function


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
max_pool1d_with_indices = _with_indices(max_pool1d, "max_pool1d_with_indices")
max_pool2d_with_indices = _with_indices(max_pool2d, "max_pool2d_with_indices")
max_pool3d_with_indices = _with_indices(max_pool3d, "max_pool3d_with_indices")


def _max_unpool(count: int) -> Callable[..., Tensor]:
    name = f"max_unpool{count}d"

    def function(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
        kernel = several(kernel_size, count, name, "kernel_size")
        steps = kernel if stride is None else several(stride, count, name, "stride")
        border = several(padding, count, name, "padding")
        if indices._type.shape != input._type.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(input._type.shape)}) but got indices tensor with "
                f"shape: {list(indices._type.shape)}"
            )
        usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input._type.shape[-count:], steps, kernel, border, strict=True)]
        size = tuple(usual) if output_size is None else tuple(output_size)[-count:]
        if len(size) != count or any(not u - s < n < u + s for u, n, s in zip(usual, size, steps, strict=True)):
            raise ValueError(f"invalid output_size {output_size!r}: each size must be closer than the stride {list(steps)} to {usual}")
        lead = input._type.shape[:-count]
        base = filled(tensor_type(input._type.dtype, (*lead, math.prod(size))), 0)
        flat = (reshape(x, (*lead, -1)) for x in (indices, input))
        return reshape(scatter(base, -1, *flat), (*lead, *size))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The partial inverse of `max_pool{count}d`: each maximum back at its index, 0 elsewhere."
    return function


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)

# --- mean ---------------------------------------------------------------------------------------


def _counts(n: int, kernel: int, stride: int, border: int, places: int, with_border: bool) -> np.ndarray:
    """How many elements (or elements and border) the windows of one axis hold."""
    starts = np.arange(places) * stride - border
    ends = np.minimum(starts + kernel, n + border)
    return ends - starts if with_border else np.minimum(ends, n) - np.maximum(starts, 0)


def _avg_pool(count: int) -> Callable[..., Tensor]:
    name = f"avg_pool{count}d"

    def function(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        attrs, places = _window(input, count, name, kernel_size, stride, padding, 1, ceil_mode)
        del attrs["dilation"]
        total = record(ops.sum_pool, (input,), attrs)
        if divisor_override is not None:
            if divisor_override == 0:
                raise RuntimeError("divisor must be not zero")
            return e.div(total, divisor_override)
        return e.div(total, _divisor(input._type.shape[-count:], attrs, places, count_include_pad, input._type.dtype))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The mean of each window of the last {count} dimensions; the border counts as zeros, or not at all."""
    return function


def _divisor(size: Sizes, attrs: dict[str, Any], places: Sizes, with_border: bool, dtype: str) -> Any:
    counts = [
        _counts(n, k, s, p, made, with_border)
        for n, k, s, p, made in zip(size, attrs["kernel"], attrs["stride"], attrs["low"], places, strict=True)
    ]
    if all((c == c[0]).all() for c in counts):
        return math.prod(int(c[0]) for c in counts)
    total = np.ones((), np.int64)
    for c in counts:
        total = total[..., None] * c
    return from_array(total.astype(tensor_type(dtype, ()).numpy_dtype))


avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)


def _lp_pool(count: int) -> Callable[..., Tensor]:
    name = f"lp_pool{count}d"

    def function(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
        kernel = several(kernel_size, count, name, "kernel_size")
        means = (avg_pool1d, avg_pool2d, avg_pool3d)[count - 1](e.pow(input, norm_type), kernel, stride, 0, ceil_mode)
        total = e.mul(e.mul(e.sign(means), e.relu(e.abs(means))), math.prod(kernel))
        return e.pow(total, 1.0 / norm_type)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The p-norm of each window of the last {count} dimensions."
    return function


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)

# --- windows that share an axis out evenly ------------------------------------------------------


def _wanted(x: Tensor, output_size: Any, count: int, function: str) -> Sizes:
    _check(x, count, function)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(given) != count:
        raise RuntimeError(f"{function}(): output_size must have {count} entries, but got {list(given)}")
    made = tuple([n if m is None else int(m) for n, m in zip(x._type.shape[-count:], given, strict=True)])
    if min(made) < 0:
        raise RuntimeError(f"{function}: elements of output_size must be greater than or equal to 0 but received {list(made)}")
    return made


def _even(size: Sequence[int], made: Sequence[int]) -> dict[str, AttrValue] | None:
    """Attributes of ordinary pooling where the windows are equal and do not overlap."""
    if any(m == 0 or n % m for n, m in zip(size, made, strict=True)):
        return None
    kernel, none = tuple([n // m for n, m in zip(size, made, strict=True)]), (0,) * len(size)
    return {"kernel": kernel, "stride": kernel, "low": none, "high": none}


def _shares(n: int, made: int) -> list[tuple[int, int]]:
    """First element and end of each of `made` windows on an axis of n elements."""
    return [(i * n // made, -(-(i + 1) * n // made)) for i in range(made)]


def _adaptive_avg_pool(count: int) -> Callable[..., Tensor]:
    name = f"adaptive_avg_pool{count}d"

    def function(input: Tensor, output_size: Any) -> Tensor:
        made = _wanted(input, output_size, count, name)
        size = input._type.shape[-count:]
        if all(m == 1 for m in made):
            return mean(input, tuple(range(-count, 0)), keepdim=True)
        attrs = _even(size, made)
        if attrs is not None:
            return e.div(record(ops.sum_pool, (input,), attrs), math.prod(n // m for n, m in zip(size, made, strict=True)))
        if 0 in made:
            return filled(tensor_type(input._type.dtype, (*input._type.shape[:-count], *made)), 0)
        for axis, (n, m) in enumerate(zip(size, made, strict=True), input._type.rank - count):
            if n != m:
                input = _uneven_means(input, axis, m)
        return input

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The means of windows that divide the last {count} dimensions into `output_size` parts."
    return function


def _uneven_means(x: Tensor, axis: int, made: int) -> Tensor:
    """Means along one axis of windows of which some are longer: element by element of the window, where it has one."""
    shares = _shares(x._type.shape[axis], made)
    lengths = np.array([end - first for first, end in shares], np.int64)
    behind = (1,) * (x._type.rank - axis - 1)
    total: Tensor | None = None
    for i in range(int(lengths.max(initial=0))):
        places = np.array([min(first + i, end - 1) for first, end in shares], np.int64)
        part = record(index_ops.index_select, (x, from_array(places)), {"dim": axis})
        if (lengths <= i).any():
            part = e.where(from_array((lengths > i).reshape(-1, *behind)), part, 0)
        total = part if total is None else e.add(total, part)
    assert total is not None
    return e.div(total, from_array(lengths.astype(x._type.numpy_dtype).reshape(-1, *behind)))


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg_pool(n) for n in (1, 2, 3))


def _adaptive_max_pool(count: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{count}d"

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        made = _wanted(input, output_size, count, name)
        attrs = _even(input._type.shape[-count:], made)
        if attrs is None:
            values, indices = _uneven_maxima(input, made)
            return (values, indices) if return_indices else values
        attrs = {**attrs, "dilation": (1,) * count}
        values = record(ops.max_pool, (input,), attrs)
        return (values, record(ops.max_pool_indices, (input,), attrs)) if return_indices else values

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The largest elements of windows that divide the last {count} dimensions into `output_size` parts."
    return function


def _uneven_maxima(x: Tensor, made: Sizes) -> tuple[Tensor, Tensor]:
    """Windows of different sizes: all are read as large as the largest, with their last elements again in what is too much."""
    count = len(made)
    lead, size = x._type.shape[:-count], x._type.shape[-count:]
    flat = np.zeros((1,) * (2 * count), np.int64)
    for d, (n, m) in enumerate(zip(size, made, strict=True)):
        shares = _shares(n, m)
        widest = max((end - first for first, end in shares), default=1)
        places = np.array([[min(first + i, end - 1) for i in range(widest)] for first, end in shares], np.int64).reshape(m, widest)
        shape = [1] * (2 * count)
        shape[d], shape[count + d] = places.shape
        flat = flat + (places * math.prod(size[d + 1 :])).reshape(shape)
    flat = flat.reshape(*made, -1)
    line = reshape(x, (*lead, -1))
    windows = record(index_ops.index, (line, from_array(flat)), {"axes": (len(lead),)})
    best = argmax(windows, -1, keepdim=True)
    if is_floating(x._type.dtype):
        # Of several NaN the last one counts, as in the other pools.
        unknown = e.isnan(windows)
        last = e.sub(flat.shape[-1] - 1, argmax(cast(flip(unknown, -1), "u8"), -1, keepdim=True))
        best = e.where(reduction.any(unknown, -1, keepdim=True), last, best)
    table = expand(from_array(flat), (*lead, *flat.shape))
    indices = reshape(gather(table, -1, best), (*lead, *made))
    values = gather(line, -1, reshape(indices, (*lead, -1)))
    return reshape(values, (*lead, *made)), indices


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max_pool(n) for n in (1, 2, 3))
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d, "adaptive_max_pool1d_with_indices")
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d, "adaptive_max_pool2d_with_indices")
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d, "adaptive_max_pool3d_with_indices")
