"""What slides a window over the last axes: convolution with its two gradients, pooling, windows as columns.

Attributes have one entry per axis that the window moves along: `stride`, `low` and `high` (the border before and behind), `dilation` (steps
between the window's elements), `kernel` or `size` (the sizes of what is not an operand). A border holds zeros, for maxima nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, integer, integers, listed, require, same_dtype
from tpc.ir.types import TensorType, tensor_type

Sizes = tuple[int, ...]


def times(sizes: Sizes) -> str:
    """Sizes as PyTorch prints them: ``3 x 3``."""
    return " x ".join(map(str, sizes))


def _entries(op: str, attrs: Attrs, name: str, count: int, least: int) -> Sizes:
    values = integers(attrs, name)
    if len(values) != count or min(values, default=least) < least:
        raise TypeRuleError(f"{op}: {name} must have {count} entries of at least {least}, not {list(values)}")
    return values


def window_places(op: str, size: Sizes, kernel: Sizes, attrs: Attrs) -> Sizes:
    """How many places the window has along each axis; `TypeRuleError` in PyTorch's words where there is none."""
    count = len(kernel)
    stride, low, high = _entries(op, attrs, "stride", count, 1), _entries(op, attrs, "low", count, 0), _entries(op, attrs, "high", count, 0)
    dilation = _entries(op, attrs, "dilation", count, 1) if "dilation" in attrs else (1,) * count
    if min(kernel) < 1:
        raise TypeRuleError(f"kernel size should be greater than zero, but got {times(kernel)} ({op})")
    padded = tuple(a + n + b for a, n, b in zip(low, size, high, strict=True))
    spans = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    if any(s > n for s, n in zip(spans, padded, strict=True)):
        raise TypeRuleError(
            f"Calculated padded input size per channel: ({times(padded)}). Kernel size: ({times(spans)}). Kernel size can't be greater "
            f"than actual input size ({op})"
        )
    return tuple((n - s) // step + 1 for n, s, step in zip(padded, spans, stride, strict=True))


# --- convolution --------------------------------------------------------------------------------


def _groups(op: str, types: Types, attrs: Attrs, w: TensorType, others: int) -> int:
    """The number of groups, after a look at ranks and dtypes: a batch, channels and `others` axes in every operand."""
    same_dtype(op, types)
    require(op, types, "uifc", "numbers")
    if others < 1 or any(t.rank != others + 2 for t in types):
        raise TypeRuleError(f"{op}: operands must have one rank, of at least 3 {listed(op, types)}")
    groups = integer(attrs, "groups")
    if groups < 1:
        raise TypeRuleError(f"non-positive groups is not supported: {groups} {listed(op, types)}")
    if w.shape[0] % groups or w.shape[0] < groups:
        wanted = "divisible by" if w.shape[0] > groups else "at least"
        raise TypeRuleError(
            f"Given groups={groups}, expected weight to be {wanted} {groups} at dimension 0, but got weight of size {list(w.shape)} instead"
        )
    return groups


def _channels(op: str, x: Sizes, w: Sizes, groups: int) -> None:
    if x[1] != w[1] * groups:
        raise TypeRuleError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have {w[1] * groups} channels, but got {x[1]} "
            f"channels instead ({op})"
        )


def _conv(types: Types, attrs: Attrs) -> TensorType:
    x, w = types
    groups = _groups("conv", types, attrs, w, x.rank - 2)
    _channels("conv", x.shape, w.shape, groups)
    places = window_places("conv", x.shape[2:], w.shape[2:], attrs)
    return tensor_type(x.dtype, (x.shape[0], w.shape[0], *places))


def _agrees(op: str, types: Types, g: Sizes, wanted: Sizes) -> None:
    if g != wanted:
        raise TypeRuleError(f"{op}: expected grad_output of size {list(wanted)}, but got {list(g)} {listed(op, types)}")


def _conv_input_grad(types: Types, attrs: Attrs) -> TensorType:
    g, w = types
    op, others = "conv_input_grad", g.rank - 2
    groups = _groups(op, types, attrs, w, others)
    size = _entries(op, attrs, "size", others, 0)
    places = window_places(op, size, w.shape[2:], attrs)
    if g.shape[1] != w.shape[0]:
        raise TypeRuleError(
            f"Given transposed=1, weight of size {list(w.shape)}, expected input{list(g.shape)} to have {w.shape[0]} channels, but got "
            f"{g.shape[1]} channels instead ({op})"
        )
    _agrees(op, types, g.shape, (g.shape[0], w.shape[0], *places))
    return tensor_type(g.dtype, (g.shape[0], w.shape[1] * groups, *size))


def _conv_weight_grad(types: Types, attrs: Attrs) -> TensorType:
    g, x = types
    op, others = "conv_weight_grad", g.rank - 2
    size = _entries(op, attrs, "size", others, 1)
    groups = integer(attrs, "groups")
    if x.rank != g.rank or groups < 1 or x.shape[1] % groups:
        raise TypeRuleError(f"{op}: {groups} groups do not fit {listed(op, types)}")
    w = tensor_type(g.dtype, (g.shape[1], x.shape[1] // groups, *size))
    _groups(op, types, attrs, w, others)
    _agrees(op, types, g.shape, (x.shape[0], g.shape[1], *window_places(op, x.shape[2:], size, attrs)))
    return w


def _conv_flops(types: Types, attrs: Attrs) -> float:
    return 2.0 * _conv(types, attrs).numel * math.prod(types[1].shape[1:])


def _conv_input_flops(types: Types, attrs: Attrs) -> float:
    return 2.0 * types[0].numel * math.prod(types[1].shape[1:])


def _conv_weight_flops(types: Types, attrs: Attrs) -> float:
    return 2.0 * types[0].numel * math.prod(_conv_weight_grad(types, attrs).shape[1:])


_MOVES = ("stride", "low", "high", "dilation")

conv = define(OpDef("conv", ("x", "w"), _conv, (*_MOVES, "groups"), flops=_conv_flops))
conv_input_grad = define(OpDef("conv_input_grad", ("g", "w"), _conv_input_grad, ("size", *_MOVES, "groups"), flops=_conv_input_flops))
conv_weight_grad = define(OpDef("conv_weight_grad", ("g", "x"), _conv_weight_grad, ("size", *_MOVES, "groups"), flops=_conv_weight_flops))


# --- pooling ------------------------------------------------------------------------------------


def _split(op: str, type: TensorType, count: int) -> tuple[Sizes, Sizes]:
    """Leading axes, and the last `count`, along which the window moves."""
    if count < 1 or type.rank < count:
        raise TypeRuleError(f"{op}: a window of {count} axes does not fit {listed(op, (type,))}")
    return type.shape[: type.rank - count], type.shape[type.rank - count :]


def _kernel(op: str, attrs: Attrs) -> Sizes:
    return _entries(op, attrs, "kernel", len(integers(attrs, "kernel")), 1)


def _pooled(op: str, type: TensorType, attrs: Attrs) -> Sizes:
    kernel = _kernel(op, attrs)
    lead, size = _split(op, type, len(kernel))
    return (*lead, *window_places(op, size, kernel, attrs))


def _pool(op: str, kinds: str, result: str | None = None) -> Callable[[Types, Attrs], TensorType]:
    def infer(types: Types, attrs: Attrs) -> TensorType:
        require(op, types, kinds, "numbers")
        return tensor_type(result or types[0].dtype, _pooled(op, types[0], attrs))

    return infer


def _spread(op: str) -> Callable[[Types, Attrs], TensorType]:
    """The rule of an op that takes a gradient of pooled values back to `size`."""

    def infer(types: Types, attrs: Attrs) -> TensorType:
        g, kernel = types[0], _kernel(op, attrs)
        lead, _ = _split(op, g, len(kernel))
        whole = tensor_type(g.dtype, (*lead, *_entries(op, attrs, "size", len(kernel), 0)))
        _agrees(op, types, g.shape, _pooled(op, whole, attrs))
        if len(types) > 1 and types[1] != tensor_type("i64", g.shape):
            raise TypeRuleError(f"{op}: indices must be i64 of the gradient's shape {listed(op, types)}")
        return whole

    return infer


max_pool = define(OpDef("max_pool", ("x",), _pool("max_pool", "buif"), ("kernel", *_MOVES), cost=8.0))
max_pool_indices = define(OpDef("max_pool_indices", ("x",), _pool("max_pool_indices", "buif", "i64"), ("kernel", *_MOVES), cost=20.0))
max_pool_grad = define(OpDef("max_pool_grad", ("g", "indices"), _spread("max_pool_grad"), ("size", "kernel", *_MOVES), cost=10.0))
sum_pool = define(OpDef("sum_pool", ("x",), _pool("sum_pool", "uifc"), ("kernel", "stride", "low", "high"), cost=8.0))
sum_pool_grad = define(OpDef("sum_pool_grad", ("g",), _spread("sum_pool_grad"), ("size", "kernel", "stride", "low", "high"), cost=8.0))


# --- windows as columns -------------------------------------------------------------------------


def _im2col(types: Types, attrs: Attrs) -> TensorType:
    (type,) = types
    kernel = _kernel("im2col", attrs)
    lead, size = _split("im2col", type, len(kernel))
    return tensor_type(type.dtype, (*lead, *kernel, *window_places("im2col", size, kernel, attrs)))


def _col2im(types: Types, attrs: Attrs) -> TensorType:
    (type,) = types
    require("col2im", types, "uifc", "numbers")
    size = _entries("col2im", attrs, "size", len(integers(attrs, "size")), 0)
    count = len(size)
    lead, places = _split("col2im", type, count)
    lead, kernel = _split("col2im", tensor_type(type.dtype, lead), count)
    wanted = window_places("col2im", size, kernel, attrs)
    if places != wanted:
        raise TypeRuleError(f"col2im: expected {times(wanted)} windows, but got {times(places)} {listed('col2im', types)}")
    return tensor_type(type.dtype, (*lead, *size))


im2col = define(OpDef("im2col", ("x",), _im2col, ("kernel", *_MOVES)))
col2im = define(OpDef("col2im", ("x",), _col2im, ("size", *_MOVES), cost=2.0))
