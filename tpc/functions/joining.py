"""Tensors put together and taken apart: cat, stack, split and their relatives. The parts are views."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tpc.dtype import promote
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import stored
from tpc.functions.shape import expand, int_list, one_int, reshape, reshaped, select, sliced, unsqueeze
from tpc.ir.ops import shape as ops
from tpc.record import cast, record
from tpc.state import STATE
from tpc.tensor import Tensor

# --- together -----------------------------------------------------------------------------------


def cat(tensors: Sequence[Tensor], dim: Any = 0, *, out: Tensor | None = None, axis: Any = None) -> Tensor:
    """Tensors one after the other along `dim`; the dtype is their common one."""
    parts = _tensor_list(tensors, "cat")
    if not parts:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, x in enumerate(parts):
        if not x._type.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    # An empty 1-d tensor goes with everything: lists were once grown from one.
    filled = [x for x in parts if x._type.shape != (0,)]
    at = one_dim(dim if axis is None else axis, (filled or parts)[0]._type.rank)
    parts = _one_dtype(parts)
    filled = [x for x in parts if x._type.shape != (0,)]
    return stored(record(ops.cat, filled or parts[:1], {"dim": at}), out)


concat = concatenate = cat


def _tensor_list(tensors: Any, function: str) -> list[Tensor]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return list(tensors)


def _one_dtype(parts: list[Tensor]) -> list[Tensor]:
    dtype: str | None = None
    for x in parts:
        dtype = promote(dtype, x._type.dtype)
    assert dtype is not None
    return [cast(x, dtype) for x in parts]


def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape side by side along a new dimension."""
    parts = _tensor_list(tensors, "stack")
    if not parts:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = parts[0]._type.shape
    for i, x in enumerate(parts):
        if x._type.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(x._type.shape)} at entry {i}"
            )
    return cat([unsqueeze(x, dim) for x in parts], one_dim(dim, len(shape) + 1), out=out)


def _some(function: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    parts = _tensor_list(tensors, function)
    if not parts:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    return parts


def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Side by side: along the second dimension, along the first for vectors."""
    parts = atleast_1d(_some("hstack", tensors))
    return cat(parts, 0 if parts and parts[0]._type.rank == 1 else 1, out=out)


def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """On top of each other; vectors are rows."""
    return cat(atleast_2d(_some("vstack", tensors)), 0, out=out)


row_stack = vstack


def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Along the third dimension."""
    return cat(atleast_3d(_some("dstack", tensors)), 2, out=out)


def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Side by side; vectors are columns."""
    parts = [reshaped(x, (x._type.numel, 1)) if x._type.rank < 2 else x for x in _tensor_list(tensors, "column_stack")]
    return cat(parts, 1, out=out)


def atleast_1d(*tensors: Any) -> Any:
    """0-d tensors with one dimension; others as they are."""
    return _at_least(tensors, lambda x: reshaped(x, (1,)) if not x._type.shape else x)


def atleast_2d(*tensors: Any) -> Any:
    """At least two dimensions; new ones come first."""
    return _at_least(tensors, lambda x: reshaped(x, (1,) * (2 - x._type.rank) + x._type.shape) if x._type.rank < 2 else x)


def atleast_3d(*tensors: Any) -> Any:
    """At least three dimensions: a matrix gets a last one, a vector one at each side."""

    def deepened(x: Tensor) -> Tensor:
        shape = x._type.shape
        return x if len(shape) > 2 else reshaped(x, (*shape, 1) if len(shape) == 2 else (1, *shape, 1) if shape else (1, 1, 1))

    return _at_least(tensors, deepened)


def _at_least(tensors: tuple[Any, ...], deepened: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return deepened(tensors[0])
    return tuple([deepened(x) for x in (tensors[0] if len(tensors) == 1 else tensors)])


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a larger one, zeros elsewhere."""
    from tpc.functions.arranging import pad

    blocks = _one_dtype(list(atleast_2d(list(tensors))))
    width, before, rows = sum(b._type.shape[1] for b in blocks), 0, []
    for b in blocks:
        own = b._type.shape[1]
        rows.append(pad(b, (before, width - before - own)))
        before += own
    return cat(rows, 0)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector expanded along its own dimension ("xy" swaps the first two)."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if len({x._type.dtype for x in tensors}) > 1:
        raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    for x in tensors:
        if x._type.rank > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(x._type.shape)}")
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[0], order[1] = 1, 0
    sizes = tuple([tensors[i]._type.numel for i in order])
    return tuple([expand(reshaped(x, _alone(order.index(i), len(sizes), x._type.numel)), sizes) for i, x in enumerate(tensors)])


def _alone(dim: int, rank: int, size: int) -> tuple[int, ...]:
    return tuple([size if d == dim else 1 for d in range(rank)])


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of elements of vectors, one per row."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, -1) for g in meshgrid(*tensors)], -1)


# --- apart --------------------------------------------------------------------------------------


def _unwritable(parts: list[Tensor], node: str) -> tuple[Tensor, ...]:
    """Parts that one call returns may not be written in place one by one where they are tracked, as in PyTorch."""
    if STATE.grad_enabled:
        for i, x in enumerate(parts):
            x._refusal = (
                f"Output {i} of {node} is a view and is being modified inplace. This view is the output of a function that returns "
                "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the inplace "
                "operation by an out-of-place one."
            )
    return tuple(parts)


def _cut(x: Tensor, dim: int, sizes: Sequence[int]) -> list[Tensor]:
    parts, start = [], 0
    for n in sizes:
        parts.append(sliced(x, dim, start, start + n))
        start += n
    return parts


def split(tensor: Tensor, split_size: Any = None, dim: int = 0, *, split_size_or_sections: Any = None) -> tuple[Tensor, ...]:
    """Parts of `split_size` elements (the last may be smaller), or of the sizes in a list."""
    wanted = split_size if split_size is not None else split_size_or_sections
    if isinstance(wanted, (tuple, list)):
        return split_with_sizes(tensor, wanted, dim)
    size, (total, at) = one_int(wanted, "split", "split_size"), _sized(tensor, dim, "split")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and total:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {total}")
    count = max(1, -(-total // size)) if size else 1
    sizes = [size] * (count - 1) + [total - size * (count - 1)]
    return _unwritable(_cut(tensor, at, sizes), "SplitBackward0")


def _sized(x: Tensor, dim: int, function: str) -> tuple[int, int]:
    """Size of a dimension, and its number."""
    if not x._type.shape:
        raise RuntimeError(f"{function} expects at least a 1-dimensional tensor")
    at = one_dim(dim, x._type.rank)
    return x._type.shape[at], at


def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the given sizes, which must add up."""
    total, at = _sized(input, dim, "split_with_sizes")
    sizes = int_list((split_sizes,), "split_with_sizes", "split_sizes")
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}")
    if sum(sizes) != total:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension {at}), but got "
            f"split_sizes={list(sizes)}"
        )
    return _unwritable(_cut(input, at, sizes), "SplitWithSizesBackward0")


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of one size, of which the last may be smaller."""
    total, at = _sized(input, dim, "chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = -(-total // chunks)
    if size == 0:
        return split_with_sizes(input, [0] * chunks, at)
    return split(input, size, at)


def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """Parts that end at the given indices; or as many as a number says, as equal as can be."""
    given = next((x for x in (indices_or_sections, indices, sections) if x is not None), None)
    if isinstance(given, Tensor):
        given = given.tolist()
    total, at = _sized(input, dim, "tensor_split")
    if isinstance(given, (tuple, list)):
        return tuple(_between(input, at, int_list((given,), "tensor_split", "indices")))
    count = one_int(given, "tensor_split", "sections")
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    size, larger = divmod(total, count)
    return tuple(_cut(input, at, [size + 1] * larger + [size] * (count - larger)))


def _between(x: Tensor, dim: int, indices: Sequence[int]) -> list[Tensor]:
    """Slices from each index to the next, with Python's rules for indices outside."""
    edges = [0, *indices, x._type.shape[dim]]
    bounds = [slice(a, b).indices(x._type.shape[dim]) for a, b in pairwise(edges)]
    return [sliced(x, dim, start, max(start, stop)) for start, stop, _ in bounds]


def _split_along(x: Tensor, given: Any, dim: int, function: str, least: int) -> tuple[Tensor, ...]:
    if x._type.rank < least:
        raise RuntimeError(
            f"torch.{function} requires a tensor with at least {least} dimension, but got a tensor with {x._type.rank} dimensions!"
        )
    if isinstance(given, int) and given and x._type.shape[dim] % given:
        raise RuntimeError(
            f"torch.{function} attempted to split along dimension {dim}, but the size of the dimension {x._type.shape[dim]} is not "
            f"divisible by the split_size {given}!"
        )
    return tensor_split(x, given, dim)


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the second dimension (the first, for a vector)."""
    return _split_along(input, indices_or_sections, 0 if input._type.rank == 1 else 1, "hsplit", 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the first dimension."""
    return _split_along(input, indices_or_sections, 0, "vsplit", 2)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the third dimension."""
    return _split_along(input, indices_or_sections, 2, "dsplit", 3)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`."""
    return chunk(input, chunks, dim)


def unsafe_split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`."""
    return split(tensor, split_size, dim)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The tensors along a dimension, which goes away."""
    if not input._type.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    at = one_dim(dim, input._type.rank)
    return _unwritable([select(input, at, i) for i in range(input._type.shape[at])], "UnbindBackward0")
