"""Other shapes of the same memory: views. Nothing is copied, and a write to a view shows in what it is a view of.

Dimensions may be negative. `reshape`, `flatten` and their like copy where strides cannot express the result.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from tpc import dtype as dtypes
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import clone, conj
from tpc.ir.ops import shape as ops
from tpc.record import record
from tpc.record import view as view_of
from tpc.size import Size
from tpc.strides import is_contiguous, is_viewable, layout_of, whole_storage
from tpc.tensor import Tensor

# --- arguments ----------------------------------------------------------------------------------


def int_list(values: Sequence[Any], function: str, name: str = "size") -> tuple[int, ...]:
    """Ints given as `f(2, 3)` or as `f((2, 3))`; `TypeError` for anything else, and for nothing."""
    if not values:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{name}"')
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    return tuple([v if v.__class__ is int else one_int(v, function, name) for v in values])


def one_int(value: Any, function: str, name: str) -> int:
    """An int, also one in a 0-d integer tensor or array; `TypeError` for anything else."""
    if not isinstance(value, bool):
        try:
            return value.__index__()  # type: ignore[no-any-return]
        except (AttributeError, TypeError):
            pass
    raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, but found element of type {type(value).__name__}")


def completed(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """A shape of `numel` elements, its one -1 worked out; `RuntimeError` where that cannot be."""
    unknown = None
    known = 1
    for i, n in enumerate(shape):
        if n >= 0:
            known *= n
        elif n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
        elif unknown is not None:
            raise RuntimeError("only one dimension can be inferred")
        else:
            unknown = i
    if unknown is None:
        if known != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return shape
    if known == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be any value and "
            "is ambiguous"
        )
    if known == 0 or numel % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return (*shape[:unknown], numel // known, *shape[unknown + 1 :])


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view in a shape that is known to fit the memory."""
    return view_of(x, ops.reshape, {"shape": shape})


# --- the same elements in the same order --------------------------------------------------------


def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """A view in another shape; `RuntimeError` where the memory does not allow one (`reshape` copies there)."""
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], (dtypes.dtype, type))):
        return _view_dtype(input, shape[0] if dtype is None else dtype)
    wanted = completed(int_list(shape if size is None else (size,), "view"), input._type.numel)
    if not is_viewable(input, wanted):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
            "subspaces). Use .reshape(...) instead."
        )
    return reshaped(input, wanted)


def _view_dtype(x: Tensor, dtype: Any) -> Tensor:
    if dtypes.ir_dtype(dtype) == x._type.dtype:
        return reshaped(x, x._type.shape)
    raise RuntimeError(
        f"view({dtype}): the bytes of a tensor of {x.dtype} cannot be seen as another dtype; convert the values with to({dtype})"
    )


def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements in another shape: a view where the memory allows one, else a copy."""
    wanted = completed(int_list(sizes if shape is None else (shape,), "reshape", "shape"), input._type.numel)
    if is_viewable(input, wanted):
        return reshaped(input, wanted)
    return record(ops.reshape, (input,), {"shape": wanted})  # type: ignore[no-any-return]


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of `other`."""
    return view(input, other._type.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of `other`."""
    return reshape(input, other._type.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` joined into one."""
    shape = input._type.shape
    first, last = one_dim(start_dim, len(shape)), one_dim(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and shape:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Dimension `dim` split into several; one of `sizes` may be -1."""
    shape = input._type.shape
    at = one_dim(dim, len(shape))
    parts = int_list((sizes,), "unflatten", "sizes")
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    total = shape[at] if shape else 1
    try:
        parts = completed(parts, total)
    except RuntimeError as error:
        if "is invalid for input" not in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {at} ({total}) in the input tensor"
        ) from None
    return view(input, (*shape[:at], *parts, *shape[at + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """One dimension."""
    return reshape(input, (-1,)) if input._type.numel else reshape(input, (0,))


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """Itself where its elements follow each other in memory, else a copy in which they do."""
    return input if is_contiguous(input) else clone(input)


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without dimensions of size 1: all of them, or those in `dim` that have it."""
    shape = input._type.shape
    if dim is None:
        return reshaped(input, tuple([n for n in shape if n != 1]))
    dims = [one_dim(d, len(shape)) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return reshaped(input, tuple([n for d, n in enumerate(shape) if n != 1 or d not in dims]))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 at `dim`."""
    shape = input._type.shape
    at = one_dim(dim, len(shape) + 1)
    return reshaped(input, (*shape[:at], 1, *shape[at:]))


# --- dimensions in another order ----------------------------------------------------------------


def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Dimensions in the order `dims`."""
    rank = input._type.rank
    wanted = int_list(order if dims is None else (dims,), "permute", "dims")
    if len(wanted) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(wanted)}"
        )
    wanted = tuple([one_dim(d, rank) for d in wanted])
    if len(set(wanted)) < rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_of(input, ops.permute, {"dims": wanted})


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped."""
    rank = input._type.rank
    a, b = one_dim(dim0, rank), one_dim(dim1, rank)
    dims = list(range(rank))
    if rank:
        dims[a], dims[b] = b, a
    return view_of(input, ops.permute, {"dims": tuple(dims)})


swapaxes = swapdims = transpose


def t(input: Tensor) -> Tensor:
    """A matrix transposed; a tensor with fewer dimensions seen as it is."""
    if input._type.rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._type.rank}D")
    return transpose(input, 0, -1)


def T(input: Tensor) -> Tensor:  # noqa: N802 - PyTorch's spelling
    """All dimensions in reverse order."""
    rank = input._type.rank
    if rank not in (0, 2):
        warnings.warn(
            f"The use of `x.T` on tensors of dimension other than 0 or 2 is deprecated (here: {rank}). Consider `x.mT` to transpose "
            "batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            UserWarning,
            stacklevel=2,
        )
    return permute(input, tuple(range(rank - 1, -1, -1)))


def mT(input: Tensor) -> Tensor:  # noqa: N802 - PyTorch's spelling
    """The last two dimensions swapped."""
    if input._type.rank < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {input._type.rank}-D tensor.")
    return transpose(input, -2, -1)


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions swapped, complex numbers conjugated."""
    if input._type.rank < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input._type.rank}-D tensor.")
    return conj(transpose(input, -2, -1))


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` at the places `destination`; the others keep their order."""
    rank = input._type.rank
    moved, places = (list(d) if isinstance(d, (tuple, list)) else [d] for d in (source, destination))
    if len(moved) != len(places):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({moved} dims) should contain the same number of dims as destination "
            f"({places} dims)"
        )
    chosen = {one_dim(p, rank): one_dim(d, rank) for p, d in zip(places, moved, strict=True)}
    if len(set(chosen.values())) < len(moved) or len(chosen) < len(places):
        name, given = ("destination", places) if len(chosen) < len(places) else ("source", moved)
        raise RuntimeError(f"movedim: repeated dim in `{name}` ({given})")
    rest = iter([d for d in range(rank) if d not in chosen.values()])
    return permute(input, tuple([chosen[p] if p in chosen else next(rest) for p in range(rank)]))


moveaxis = movedim

# --- parts --------------------------------------------------------------------------------------


def sliced(x: Tensor, dim: int, start: int, limit: int, step: int = 1) -> Tensor:
    """The part start:limit:step of a dimension that all bounds are inside of."""
    shape = x._type.shape
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dim], limits[dim], steps[dim] = start, limit, step
    return view_of(x, ops.slice_, {"starts": tuple(starts), "limits": tuple(limits), "steps": tuple(steps)})


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements from `start` on, along `dim`."""
    shape = input._type.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    at, first = one_dim(dim, len(shape)), one_int(start, "narrow", "start")
    size = shape[at]
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return sliced(input, at, first, first + length)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The elements at one index of `dim`, which goes away."""
    shape = input._type.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, i = one_dim(dim, len(shape)), one_int(index, "select", "index")
    size = shape[at]
    if not -size <= i < size:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(shape)} at dimension {at}")
    i %= size
    return reshaped(sliced(input, at, i, i + 1), shape[:at] + shape[at + 1 :])


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Where the indices of two dimensions are equal (up to `offset`); the diagonal becomes the last dimension."""
    rank = input._type.rank
    a, b = one_dim(dim1, rank), one_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return view_of(input, ops.diagonal, {"offset": offset, "dim1": a, "dim2": b})


# --- the same elements more than once -----------------------------------------------------------


def expand(input: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Dimensions of size 1 seen as larger, new ones in front; -1 leaves a size as it is."""
    shape = input._type.shape
    wanted = int_list(sizes if size is None else (size,), "expand")
    extra = len(wanted) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(shape)}}}, size={list(wanted)}): the number of sizes provided ({len(wanted)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    target = list(wanted)
    for i in range(len(wanted) - 1, -1, -1):
        have, n = (shape[i - extra] if i >= extra else 1), wanted[i]
        if n == -1 and i >= extra:
            target[i] = have
        elif n < 0:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}")
        elif have not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension {i}.  Target "
                f"sizes: {list(wanted)}.  Tensor sizes: {list(shape)}"
            )
    if math.prod(target) == input._type.numel != 0:
        return reshaped(input, tuple(target))  # nothing overlaps: such a view may be written
    return view_of(input, ops.broadcast_to, {"shape": tuple(target)})


def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`expand` to a shape."""
    return expand(input, size)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`."""
    return expand(input, other._type.shape)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes have together; `RuntimeError` where they do not broadcast."""
    all_shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    result = [1] * max((len(s) for s in all_shapes), default=0)
    for at, s in enumerate(all_shapes):
        for i in range(-len(s), 0):
            if s[i] != 1 and result[i] not in (1, s[i]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {s[i]} at {i}! Mismatching argument at index {at} had {s}; but "
                    f"expected shape should be broadcastable to {result}"
                )
            result[i] = s[i] if s[i] != 1 else result[i]
    return Size(result)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Every tensor expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = broadcast_pair(shape, x._type.shape)
    return tuple([expand(x, shape) for x in tensors])


def broadcast_pair(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of two tensors, with PyTorch's error."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for i in range(rank - 1, -1, -1):
        if a[i] != b[i] and 1 not in (a[i], b[i]):
            raise RuntimeError(f"The size of tensor a ({a[i]}) must match the size of tensor b ({b[i]}) at non-singleton dimension {i}")
    return tuple([m if n == 1 else n for n, m in zip(a, b, strict=True)])


# --- which memory -------------------------------------------------------------------------------


def shares_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are views of one storage (their elements need not overlap)."""
    return whole_storage(a) is whole_storage(b)


def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors show the very same memory in the same way."""
    return shares_memory(input, tensor) and layout_of(input) == layout_of(tensor)
