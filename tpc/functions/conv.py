"""Convolutions and their transposes over one, two and three axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpc.functions.arranging import pad as pad_border
from tpc.functions.elementwise import add
from tpc.functions.shape import reshape, reshaped
from tpc.ir.opdef import AttrValue
from tpc.ir.ops import nn as ops
from tpc.record import record
from tpc.tensor import Tensor

Sizes = tuple[int, ...]


def several(value: Any, count: int, function: str, name: str) -> Sizes:
    """One number per axis, from one for all or from a sequence."""
    if not isinstance(value, (tuple, list)):
        value = (value,)
    numbers = tuple([_integer(n, function, name) for n in value])
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match the convolution dimensions, but got "
            f"{name}={list(value)} ({function})"
        )
    return numbers


def _integer(n: Any, function: str, name: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, not {type(n).__name__}")
    return n.__index__()  # type: ignore[no-any-return]


def batched(x: Tensor, count: int, function: str) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether it had one."""
    rank = x._type.rank
    if rank not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {function}, but got input of size: {list(x._type.shape)}"
        )
    return (x, True) if rank == count + 2 else (reshaped(x, (1, *x._type.shape)), False)


def _given(function: str, input: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> None:
    for name, x in (("input", input), ("weight", weight)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{function}() argument '{name}' must be Tensor, not {type(x).__name__}")
    if weight._type.rank != count + 2:
        raise RuntimeError(
            f"Expected weight of {count + 2} dimensions in {function}, but got weight of size {list(weight._type.shape)} for input of size "
            f"{list(input._type.shape)}"
        )
    for name, other in (("weight", weight), ("bias", bias)):
        x = input if other is None else other
        if x._type.dtype != input._type.dtype:
            raise RuntimeError(f"Input type ({input.dtype}) and {name} type ({x.dtype}) should be the same")


def _add_bias(y: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> Tensor:
    if bias is None:
        return y
    if bias._type.shape != (y._type.shape[1],):
        raise RuntimeError(
            f"Given weight of size {list(weight._type.shape)}, expected bias to be 1-dimensional with {y._type.shape[1]} elements, but got "
            f"bias of size {list(bias._type.shape)} instead"
        )
    return add(y, reshape(bias, (-1,) + (1,) * count))


def _unbatched(y: Tensor, had_batch: bool) -> Tensor:
    return y if had_batch else reshape(y, y._type.shape[1:])


def _checked(stride: Sizes, dilation: Sizes, groups: int) -> None:
    if min(stride) < 1:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 1:
        raise RuntimeError("dilation should be greater than zero")
    if groups < 1:
        raise RuntimeError("non-positive groups is not supported")


def _padding(padding: Any, x: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, function: str) -> tuple[Tensor, Sizes]:
    """The border as one number per axis. "same" may need one more behind than before: that part is put on here."""
    count = len(kernel)
    if not isinstance(padding, str):
        sizes = several(padding, count, function, "padding")
        if min(sizes) < 0:
            raise RuntimeError("negative padding is not supported")
        return x, sizes
    if padding == "valid":
        return x, (0,) * count
    if padding != "same":
        raise RuntimeError(f"{function}(): padding must be one of 'valid' or 'same', not {padding!r}")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    uneven = [n for t in reversed(total) for n in (0, t % 2)]
    return (pad_border(x, uneven) if any(uneven) else x), tuple([t // 2 for t in total])


def _convolution(count: int) -> Callable[..., Tensor]:
    name = f"conv{count}d"

    def function(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Tensor:
        _given(name, input, weight, bias, count)
        steps, spread = several(stride, count, name, "stride"), several(dilation, count, name, "dilation")
        _checked(steps, spread, groups)
        x, had_batch = batched(input, count, name)
        x, border = _padding(padding, x, weight._type.shape[2:], steps, spread, name)
        attrs: dict[str, AttrValue] = {"stride": steps, "low": border, "high": border, "dilation": spread, "groups": groups}
        y = record(ops.conv, (x, weight), attrs)
        return _unbatched(_add_bias(y, weight, bias, count), had_batch)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Slides `weight` [out, in / groups, *kernel] over the last {count} dimensions of `input` [batch, in, *size].

    `padding` may be "same" and "valid"; the batch dimension may be left out."""
    return function


def _transposed(count: int) -> Callable[..., Tensor]:
    name = f"conv_transpose{count}d"

    def function(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        _given(name, input, weight, bias, count)
        steps, spread = several(stride, count, name, "stride"), several(dilation, count, name, "dilation")
        border, extra = several(padding, count, name, "padding"), several(output_padding, count, name, "output_padding")
        _checked(steps, spread, groups)
        if min(border) < 0:
            raise RuntimeError("negative padding is not supported")
        if any(e < 0 or e >= max(s, d) for e, s, d in zip(extra, steps, spread, strict=True)):
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding: {list(extra)} stride: "
                f"{list(steps)} dilation: {list(spread)}"
            )
        x, had_batch = batched(input, count, name)
        size = transposed_size(x._type.shape[2:], weight._type.shape[2:], steps, border, extra, spread)
        # Extra places take back the border behind; what is beyond that no window reaches: zeros.
        beyond = [max(e - b, 0) for e, b in zip(extra, border, strict=True)]
        high = tuple([b - e + n for b, e, n in zip(border, extra, beyond, strict=True)])
        reached = tuple([n - z for n, z in zip(size, beyond, strict=True)])
        attrs: dict[str, AttrValue] = {
            "size": reached, "stride": steps, "low": border, "high": high, "dilation": spread, "groups": groups,
        }  # fmt: skip
        y = record(ops.conv_input_grad, (x, weight), attrs)
        if any(beyond):
            y = pad_border(y, [n for b in reversed(beyond) for n in (0, b)])
        return _unbatched(_add_bias(y, weight, bias, count), had_batch)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The transpose of `conv{count}d`, `weight` being [in, out / groups, *kernel]."""
    return function


def transposed_size(size: Sequence[int], kernel: Sizes, stride: Sizes, padding: Sizes, extra: Sizes, dilation: Sizes) -> Sizes:
    """The size that a transposed convolution makes; `RuntimeError` where nothing is left."""
    made = tuple(
        [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, e, d in zip(size, kernel, stride, padding, extra, dilation, strict=True)]
    )
    if min(made) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({ops.times(tuple(size))}). Calculated output size per channel: ({ops.times(made)}). Output "
            "size is too small"
        )
    return made


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)
conv_transpose1d, conv_transpose2d, conv_transpose3d = _transposed(1), _transposed(2), _transposed(3)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Tensor:  # fmt: skip
    """A convolution or its transpose over as many axes as `weight` has."""
    count = weight._type.rank - 2
    if not 1 <= count <= 3:
        raise RuntimeError(f"expected weight of 3 to 5 dimensions, but got {list(weight._type.shape)}")
    if transposed:
        return (conv_transpose1d, conv_transpose2d, conv_transpose3d)[count - 1](
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return (conv1d, conv2d, conv3d)[count - 1](input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first dimension of [time, batch, channels], `weight` being [kernel, in, out]."""
    from tpc.functions.shape import permute

    y = conv1d(permute(input, 1, 2, 0), permute(weight, 2, 1, 0), bias, padding=pad)
    return permute(y, 2, 0, 1)
