"""Views, what writes through them, arrays from nothing, joining, scans along an axis."""

from __future__ import annotations

import base64
import math

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import Infer, OpDef, define
from tpc.ir.ops.reduction import along
from tpc.ir.ops.rules import Attrs, Types, axis, integer, integers, listed, same_dtype
from tpc.ir.types import MAX_ELEMENTS, NUMPY_DTYPES, TensorType, category, tensor_type


def _shape_attr(op: str, attrs: Attrs) -> tuple[int, ...]:
    shape = integers(attrs, "shape")
    if any(n < 0 for n in shape):
        raise TypeRuleError(f"{op}: a shape has no negative sizes, but this one is {list(shape)}")
    if math.prod(shape) > MAX_ELEMENTS:
        raise TypeRuleError(f"{op}: shape {list(shape)} has more than 2**40 elements")
    return shape


def _view(name: str, infer: Infer, attrs: tuple[str, ...]) -> OpDef:
    return define(OpDef(name, ("x",), infer, attrs, view=True, cost=0.0))


def _reshape(types: Types, attrs: Attrs) -> TensorType:
    shape = _shape_attr("reshape", attrs)
    if math.prod(shape) != types[0].numel:
        raise TypeRuleError(f"shape '{list(shape)}' is invalid for input of size {types[0].numel} {listed('reshape', types)}")
    return tensor_type(types[0].dtype, shape)


def _permute(types: Types, attrs: Attrs) -> TensorType:
    dims = integers(attrs, "dims")
    if sorted(dims) != list(range(types[0].rank)):
        raise TypeRuleError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions: {list(dims)} is no ordering of {types[0].rank} axes {listed('permute', types)}"
        )
    return tensor_type(types[0].dtype, tuple(types[0].shape[d] for d in dims))


def _broadcast_to(types: Types, attrs: Attrs) -> TensorType:
    shape, old = _shape_attr("broadcast_to", attrs), types[0].shape
    if len(shape) < len(old) or any(a not in (1, b) for a, b in zip(reversed(old), reversed(shape), strict=False)):
        raise TypeRuleError(
            f"The expanded size of the tensor must match the existing size at non-singleton dimension: {list(old)} does not expand to "
            f"{list(shape)} {listed('broadcast_to', types)}"
        )
    return tensor_type(types[0].dtype, shape)


def _sliced(op: str, type: TensorType, attrs: Attrs) -> tuple[int, ...]:
    starts, limits, steps = integers(attrs, "starts"), integers(attrs, "limits"), integers(attrs, "steps")
    if not len(starts) == len(limits) == len(steps) == type.rank:
        raise TypeRuleError(f"starts, limits and steps must have one entry per axis {listed(op, (type,))}")
    for s, e, step, n in zip(starts, limits, steps, type.shape, strict=True):
        if step < 1 or not 0 <= s <= e <= n:
            raise TypeRuleError(f"slice {s}:{e}:{step} does not fit an axis of size {n} {listed(op, (type,))}")
    return tuple([-(-(e - s) // step) for s, e, step in zip(starts, limits, steps, strict=True)])


def _slice(types: Types, attrs: Attrs) -> TensorType:
    return tensor_type(types[0].dtype, _sliced("slice", types[0], attrs))


def _diagonal_shape(op: str, type: TensorType, attrs: Attrs) -> tuple[int, ...]:
    first, second, offset = axis(op, attrs, type.rank, "dim1"), axis(op, attrs, type.rank, "dim2"), integer(attrs, "offset")
    if first == second or type.rank < 2:
        raise TypeRuleError(f"diagonal dimensions cannot be identical {first}, {second} {listed(op, (type,))}")
    rows, columns = type.shape[first], type.shape[second]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    rest = tuple(n for i, n in enumerate(type.shape) if i not in (first, second))
    return (*rest, max(length, 0))


def _diagonal(types: Types, attrs: Attrs) -> TensorType:
    return tensor_type(types[0].dtype, _diagonal_shape("diagonal", types[0], attrs))


reshape = _view("reshape", _reshape, ("shape",))
permute = _view("permute", _permute, ("dims",))
broadcast_to = _view("broadcast_to", _broadcast_to, ("shape",))
slice_ = _view("slice", _slice, ("starts", "limits", "steps"))
diagonal = _view("diagonal", _diagonal, ("offset", "dim1", "dim2"))


def _scattered(op: str, types: Types, part: tuple[int, ...]) -> TensorType:
    same_dtype(op, types)
    if types[1].shape != part:
        raise TypeRuleError(
            f"expected src to have a size equal to the slice of self: {list(part)}, not {list(types[1].shape)} {listed(op, types)}"
        )
    return types[0]


def _slice_scatter(types: Types, attrs: Attrs) -> TensorType:
    return _scattered("slice_scatter", types, _sliced("slice_scatter", types[0], attrs))


def _diagonal_scatter(types: Types, attrs: Attrs) -> TensorType:
    return _scattered("diagonal_scatter", types, _diagonal_shape("diagonal_scatter", types[0], attrs))


slice_scatter = define(OpDef("slice_scatter", ("base", "src"), _slice_scatter, ("starts", "limits", "steps"), into=0))
diagonal_scatter = define(OpDef("diagonal_scatter", ("base", "src"), _diagonal_scatter, ("offset", "dim1", "dim2"), into=0))


# --- arrays from nothing ------------------------------------------------------------------------


def _dtype(op: str, attrs: Attrs) -> str:
    dtype = attrs["dtype"]
    if not isinstance(dtype, str) or dtype not in NUMPY_DTYPES:
        raise TypeRuleError(f"{op}: there is no dtype {dtype!r}")
    return dtype


def _number(op: str, value: object, dtype: str) -> None:
    """Refuses a value that the dtype cannot hold."""
    if type(value) not in ((bool,), (int,), (int, float), (int, float, complex))[category(dtype)]:
        raise TypeRuleError(f"{op}: {value!r} is not a value of {dtype}")


def _constant(types: Types, attrs: Attrs) -> TensorType:
    dtype = _dtype("constant", attrs)
    _number("constant", attrs["value"], dtype)
    return tensor_type(dtype, ())


def _iota(types: Types, attrs: Attrs) -> TensorType:
    dtype, size = _dtype("iota", attrs), integer(attrs, "size")
    _number("iota", attrs["start"], dtype)
    _number("iota", attrs["step"], dtype)
    if not 0 <= size <= MAX_ELEMENTS:
        raise TypeRuleError(f"iota: size {size} is negative or too large")
    return tensor_type(dtype, (size,))


def _linspace(types: Types, attrs: Attrs) -> TensorType:
    steps = integer(attrs, "steps")
    if not 0 <= steps <= MAX_ELEMENTS:
        raise TypeRuleError(f"number of steps must be non-negative, not {steps} (linspace)")
    return tensor_type(_dtype("linspace", attrs), (steps,))


def _eye(types: Types, attrs: Attrs) -> TensorType:
    n, m = integer(attrs, "n"), integer(attrs, "m")
    if n < 0 or m < 0 or n * m > MAX_ELEMENTS:
        raise TypeRuleError(f"n must be greater or equal to 0, got {n}, {m} (eye)")
    return tensor_type(_dtype("eye", attrs), (n, m))


def _literal(types: Types, attrs: Attrs) -> TensorType:
    dtype, shape, data = _dtype("literal", attrs), _shape_attr("literal", attrs), attrs["data"]
    type = tensor_type(dtype, shape)
    try:
        size = len(base64.b64decode(data, validate=True)) if isinstance(data, str) else -1
    except ValueError:
        size = -1
    if size != type.nbytes:
        raise TypeRuleError(f"literal: data must be base64 of {type.nbytes} bytes for {type}")
    return type


constant = define(OpDef("constant", (), _constant, ("value", "dtype"), cost=0.0))
iota = define(OpDef("iota", (), _iota, ("start", "step", "size", "dtype"), foldable=False))
linspace = define(OpDef("linspace", (), _linspace, ("start", "end", "steps", "dtype"), foldable=False))
eye = define(OpDef("eye", (), _eye, ("n", "m", "dtype"), foldable=False))
literal = define(OpDef("literal", (), _literal, ("data", "dtype", "shape"), foldable=False, cost=0.0))


# --- joining and moving -------------------------------------------------------------------------


def _cat(types: Types, attrs: Attrs) -> TensorType:
    if not types:
        raise TypeRuleError("expected a non-empty list of Tensors (cat)")
    dtype, dim = same_dtype("cat", types), axis("cat", attrs, types[0].rank)
    first = types[0].shape
    if not first:
        raise TypeRuleError("zero-dimensional tensor (at position 0) cannot be concatenated (cat)")
    total = 0
    for i, t in enumerate(types):
        if t.rank != len(first) or any(a != b for d, (a, b) in enumerate(zip(t.shape, first, strict=True)) if d != dim):
            raise TypeRuleError(
                f"Sizes of tensors must match except in dimension {dim}. Expected {list(first)} but got {list(t.shape)} for tensor "
                f"number {i} in the list {listed('cat', types[:4])}"
            )
        total += t.shape[dim]
    return tensor_type(dtype, (*first[:dim], total, *first[dim + 1 :]))


def _flip(types: Types, attrs: Attrs) -> TensorType:
    dims = integers(attrs, "dims")
    if len(set(dims)) != len(dims) or any(not 0 <= d < types[0].rank for d in dims):
        raise TypeRuleError(f"dims {list(dims)} must be different axes {listed('flip', types)}")
    return types[0]


def _pad(types: Types, attrs: Attrs) -> TensorType:
    (type,) = types
    low, high = integers(attrs, "low"), integers(attrs, "high")
    if not len(low) == len(high) == type.rank or min((*low, *high), default=0) < 0:
        raise TypeRuleError(f"pad: low and high must have one non-negative entry per axis {listed('pad', types)}")
    _number("pad", attrs["value"], type.dtype)
    return tensor_type(type.dtype, tuple(a + n + b for a, n, b in zip(low, type.shape, high, strict=True)))


def _triangle(op: str) -> Infer:
    def infer(types: Types, attrs: Attrs) -> TensorType:
        integer(attrs, "diagonal")
        if types[0].rank < 2:
            raise TypeRuleError(f"{op}: input tensor must have at least 2 dimensions {listed(op, types)}")
        return types[0]

    return infer


cat = define(OpDef("cat", ("*xs",), _cat, ("dim",)))
flip = define(OpDef("flip", ("x",), _flip, ("dims",)))
pad = define(OpDef("pad", ("x",), _pad, ("low", "high", "value")))
tril = define(OpDef("tril", ("x",), _triangle("tril"), ("diagonal",)))
triu = define(OpDef("triu", ("x",), _triangle("triu"), ("diagonal",)))
cumsum = define(OpDef("cumsum", ("x",), along("cumsum", "buifc", "every dtype", wide=True), ("dim",), cost=2.0))
cumprod = define(OpDef("cumprod", ("x",), along("cumprod", "buifc", "every dtype", wide=True), ("dim",), cost=2.0))
