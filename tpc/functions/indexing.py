"""Square brackets: `x[...]` to read and to write, and the functions of masks and places.

Ints, slices, None and Ellipsis give views. Index tensors, lists and masks give copies; where they stand side by side their
dimensions come out in place, else in front. How many elements a mask selects is looked at when it is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tpc.functions.data import array_of, checked_number
from tpc.functions.elementwise import clone, ne, where
from tpc.functions.factories import filled
from tpc.functions.shape import broadcast_pair, expand, reshape, reshaped, select
from tpc.inplace import write_some
from tpc.ir.ops import indexing as ops
from tpc.ir.ops import reduction
from tpc.ir.ops import shape as shape_ops
from tpc.ir.types import category
from tpc.record import SCALARS, cast, record, scalar_tensor, view
from tpc.state import STATE
from tpc.tensor import Tensor, from_array

# --- what an index says -------------------------------------------------------------------------


class Subscript(NamedTuple):
    """An index taken apart: slice bounds for every dimension, the shape that ints and None make of what is left, and
    (axis of that shape, index tensor or mask) pairs."""

    bounds: tuple[tuple[int, int, int], ...]
    shape: tuple[int, ...]
    advanced: tuple[tuple[int, Tensor], ...]

    def seen(self, x: Tensor) -> Tensor:
        """The part of `x` that ints, slices and None leave: a view, or `x` itself where that is all."""
        if any(b != (0, n, 1) for b, n in zip(self.bounds, x._type.shape, strict=True)):
            starts, limits, steps = zip(*self.bounds, strict=True)
            x = view(x, shape_ops.slice_, {"starts": starts, "limits": limits, "steps": steps})
        return x if x._type.shape == self.shape else reshaped(x, self.shape)


def parsed(x: Tensor, index: Any) -> Subscript:
    """What an index means for `x`; `IndexError` where it does not fit."""
    items = [_item(i) for i in _items(index)]
    shape = x._type.shape
    used = sum(_width(i) for i in items)
    if used > len(shape):
        _refuse(items, len(shape))
    bounds: list[tuple[int, int, int]] = []
    left: list[int] = []
    advanced: list[tuple[int, Tensor]] = []
    for item in items:
        at = len(bounds)
        if item is None:
            left.append(1)
        elif item is Ellipsis:
            skipped, used = len(shape) - used, len(shape)  # a second one stands for nothing
            bounds += [(0, n, 1) for n in shape[at : at + skipped]]
            left += shape[at : at + skipped]
        elif isinstance(item, slice):
            start, stop, step = _slice(item, shape[at])
            bounds.append((start, stop, step))
            left.append(-(-(stop - start) // step))
        elif isinstance(item, bool):
            # A dimension of size 1 that True keeps and False empties.
            advanced.append((len(left), from_array(np.zeros(int(item), np.int64))))
            left.append(1)
        elif isinstance(item, int):
            bounds.append(_one(item, at, shape[at]))
        else:
            width = _width(item)
            if item._type.dtype == "bool":
                _check_mask(item, shape, at)
            advanced.append((len(left), item))
            bounds += [(0, n, 1) for n in shape[at : at + width]]
            left += shape[at : at + width]
    rest = shape[len(bounds) :]
    return Subscript((*bounds, *[(0, n, 1) for n in rest]), (*left, *rest), tuple(advanced))


def _items(index: Any) -> Sequence[Any]:
    """The parts of an index; an old-style list that holds slices, None, tensors or sequences is taken for a tuple."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32 and any(isinstance(i, _PARTS) for i in index):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of x[seq]",
            UserWarning,
            stacklevel=4,
        )
        return index
    return (index,)


_PARTS = (slice, Tensor, list, tuple, np.ndarray, type(None), type(Ellipsis))


def _item(item: Any) -> Any:
    """None, Ellipsis, a slice, a bool, an int, or a tensor of ints or bools with a dimension."""
    if item is None or item is Ellipsis or isinstance(item, (slice, bool)) or item.__class__ is int:
        return item
    if isinstance(item, Tensor):
        return _index_tensor(item)
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (np.ndarray, list, tuple, range, str)):
        array = array_of(item, None)
        return _index_tensor(from_array(array if array.size or isinstance(item, np.ndarray) else array.astype(np.int64)))
    try:
        return item.__index__()
    except AttributeError:
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {type(item).__name__})"
        ) from None


def _index_tensor(x: Tensor) -> Any:
    dtype = x._type.dtype
    if dtype not in ("i64", "i32", "u8", "bool"):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if dtype == "u8":
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", UserWarning, stacklevel=5
        )
        x = ne(x, 0)
    if x._type.shape:
        return x
    if x._type.dtype == "bool":
        return bool(x._array())
    if STATE.trace is not None and not STATE.trace.concrete:
        return x
    return int(x._array())


def _width(item: Any) -> int:
    """How many dimensions of the tensor an item uses up."""
    if isinstance(item, Tensor):
        return item._type.rank if item._type.dtype == "bool" else 1
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else 1


def _refuse(items: Sequence[Any], rank: int) -> None:
    if rank == 0 and isinstance(items[0], slice):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if rank == 0 and isinstance(items[0], int):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a "
            "number"
        )
    raise IndexError(f"too many indices for tensor of dimension {rank}")


def _slice(item: slice, size: int) -> tuple[int, int, int]:
    start, stop, step = item.indices(size)
    if step < 0:
        raise ValueError("step must be greater than zero")
    return start, max(start, stop), step


def _one(i: int, dim: int, size: int) -> tuple[int, int, int]:
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
    i %= size
    return i, i + 1, 1


def _check_mask(mask: Tensor, shape: tuple[int, ...], at: int) -> None:
    for j, n in enumerate(mask._type.shape):
        if n != shape[at + j]:
            raise IndexError(
                f"The shape of the mask {list(mask._type.shape)} at index {j} does not match the shape of the indexed tensor {list(shape)} "
                f"at index {at + j}"
            )


# --- reading ------------------------------------------------------------------------------------


def getitem(x: Tensor, index: Any) -> Tensor:
    """`x[index]`."""
    if index.__class__ is int and x._type.shape:
        size = x._type.shape[0]
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {size}")
        return select(x, 0, index)
    subscript = parsed(x, index)
    seen = subscript.seen(x)
    if subscript.advanced:
        return picked(seen, subscript.advanced)
    return reshaped(x, x._type.shape) if seen is x else seen


def picked(x: Tensor, advanced: Sequence[tuple[int, Tensor]]) -> Tensor:
    """The elements at index tensors and masks, given with their axes."""
    axes, indices = _places(advanced)
    _common_shape(indices)
    return record(ops.index, (x, *indices), {"axes": axes})  # type: ignore[no-any-return]


def _places(advanced: Sequence[tuple[int, Tensor]]) -> tuple[tuple[int, ...], list[Tensor]]:
    """Axes and index tensors, each mask replaced by the places where it is True."""
    axes: list[int] = []
    indices: list[Tensor] = []
    for axis, index in advanced:
        if index._type.dtype == "bool":
            places = nonzero(index)
            axes += range(axis, axis + index._type.rank)
            indices += [select(places, 1, k) for k in range(index._type.rank)]
        else:
            axes.append(axis)
            indices.append(index)
    return tuple(axes), indices


def _common_shape(indices: Sequence[Tensor]) -> tuple[int, ...]:
    shape: tuple[int, ...] = ()
    for i in indices:
        try:
            shape = broadcast_pair(shape, i._type.shape)
        except RuntimeError:
            shapes = ", ".join(str(list(i._type.shape)) for i in indices)
            raise IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}") from None
    return shape


# --- writing ------------------------------------------------------------------------------------


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, a number or a tensor that broadcasts to the part."""
    if not isinstance(value, (Tensor, *SCALARS)):
        raise TypeError(f"can't assign a {type(value).__name__} to a tensor of {x.dtype}")
    subscript = parsed(x, index)
    part = subscript.seen(x)
    if subscript.advanced:

        def written(old: Tensor, new: Any) -> Tensor:
            return _with_places(old, subscript.advanced, _as_value(new, old._type.dtype), False)

        write_some(part, written(part._snapshot(), value), "index_put_", lambda marks: written(marks, True))
    elif not isinstance(value, Tensor):
        part._write(filled(part._type, checked_number(value, x._type.dtype)))
    elif _is_same(part, value):
        part._refuse_write(part)  # what `x[i] += 1` does last: the view was written already
        part._storage.write(part._storage.read())
    else:
        content = expand(_without_leading_ones(cast(value, x._type.dtype), part._type.rank), part._type.shape)
        part._write(content if part._views else clone(content))


def _is_same(a: Tensor, b: Tensor) -> bool:
    return a._storage is b._storage and a._base is b._base is not None and a._views == b._views


def _without_leading_ones(value: Tensor, rank: int) -> Tensor:
    shape = value._type.shape
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return value if shape == value._type.shape else reshaped(value, shape)


def _as_value(value: Any, dtype: str) -> Tensor:
    """A written value as a tensor; numbers and one-element tensors take the dtype of the target."""
    if not isinstance(value, Tensor):
        return scalar_tensor(checked_number(value, dtype), dtype)
    if value._type.numel == 1:
        return reshape(cast(value, dtype), ())
    if value._type.dtype != dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {dtype} for the destination and {value._type.dtype} for the "
            "source."
        )
    return value


def _with_places(x: Tensor, advanced: Sequence[tuple[int, Tensor]], value: Tensor, accumulate: bool) -> Tensor:
    """`x` with `value` at the places that index tensors and masks tell."""
    if len(advanced) == 1 and advanced[0][1]._type.dtype == "bool" and not accumulate:
        axis, mask = advanced[0]
        trailing = x._type.shape[axis + mask._type.rank :]
        if value._type.rank <= len(trailing):
            # The same for every selected place: no need to know how many there are.
            _check_fits(value, trailing)
            return where(reshape(mask, (*mask._type.shape, *[1] * len(trailing))), value, x)
    axes, indices = _places(advanced)
    _common_shape(indices)
    types = [i._type for i in indices]
    shape = ops.indexed_shape("index_put", x._type, types, axes)
    value = _without_leading_ones(value, len(shape))
    _check_fits(value, shape)
    return record(ops.index_put, (x, value, *indices), {"axes": axes, "accumulate": accumulate})  # type: ignore[no-any-return]


def _check_fits(value: Tensor, shape: tuple[int, ...]) -> None:
    have = value._type.shape
    if len(have) > len(shape) or any(n not in (1, m) for n, m in zip(reversed(have), reversed(shape), strict=False)):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(have)} cannot be broadcast to indexing result of shape {list(shape)}"
        )


def index_put(input: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values` at the places that a tuple of index tensors (or masks) tells; added there with `accumulate`."""
    subscript = parsed(input, tuple([slice(None) if i is None else i for i in indices]))
    if not subscript.advanced:
        raise IndexError("index_put needs at least one index tensor")
    return _with_places(input, subscript.advanced, _as_value(values, input._type.dtype), accumulate)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with elements written (or added) at places of the flat tensor."""
    flat = index_put(reshape(input, -1), (reshape(index, -1),), reshape(source, -1), accumulate)
    return reshape(flat, input._type.shape)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements at places of the flat tensor."""
    if category(index._type.dtype) != 1:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    return record(ops.index, (reshape(input, -1), index), {"axes": (0,)})  # type: ignore[no-any-return]


# --- places -------------------------------------------------------------------------------------


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The places where `input` is not zero, one per row; with `as_tuple` one tensor per dimension."""
    if as_tuple:
        x = input if input._type.shape else reshaped(input, (1,))
        places = nonzero(x)
        return tuple([select(places, 1, k) for k in range(x._type.rank)])
    mask = input.detach() if input._type.dtype == "bool" else ne(input.detach(), 0)
    places = record(ops.nonzero, (mask,), {"count": _count(mask)})
    return places if out is None else out._write(places)


def _count(mask: Tensor) -> int:
    """How many elements are True: looked at, for shapes are known. A trace depends on this number alone, not on the mask."""
    if STATE.trace is None:
        return int(np.count_nonzero(mask._array()))
    rank = mask._type.rank
    total = record(reduction.sum_, (mask,), {"dims": tuple(range(rank)), "keepdim": False}) if rank else cast(mask, "i64")
    return int(total._array())


def argwhere(input: Tensor) -> Tensor:
    """The places where `input` is not zero, one per row."""
    return nonzero(input)  # type: ignore[no-any-return]
