"""New tensors from the elements of one: flipped, rolled, repeated, padded, parts set to zero, running sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.dtype import ir_dtype
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import clone, logical_xor, stored, sub
from tpc.functions.factories import zeros_of
from tpc.functions.joining import cat
from tpc.functions.shape import int_list, one_int, permute, reshape, reshaped, sliced, transpose
from tpc.ir.opdef import OpDef
from tpc.ir.ops import indexing as index_ops
from tpc.ir.ops import shape as ops
from tpc.ir.types import category, tensor_type
from tpc.record import cast, record
from tpc.recording import constant
from tpc.tensor import Tensor, from_array

# --- another order ------------------------------------------------------------------------------


def flip(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Elements in reverse order along `dims`."""
    wanted = [one_dim(d, input._type.rank) for d in int_list(order if dims is None else (dims,), "flip", "dims")]
    for d in wanted:
        if wanted.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if not wanted or not input._type.shape:
        return clone(input)
    return record(ops.flip, (input,), {"dims": tuple(sorted(wanted))})  # type: ignore[no-any-return]


def fliplr(input: Tensor) -> Tensor:
    """The second dimension reversed."""
    if input._type.rank < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """The first dimension reversed."""
    if input._type.rank < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by `k` right angles, from the first of `dims` towards the second."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input._type.rank < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input._type.rank}")
    a, b = (one_dim(d, input._type.rank) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if turns == 1:
        return transpose(flip(input, b), a, b)
    if turns == 2:
        return flip(input, a, b)
    return flip(transpose(input, a, b), b) if turns else clone(input)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved by `shifts` along `dims` (along the flat tensor, without them); what leaves at one end enters at the other."""
    amounts = int_list((shifts,) if isinstance(shifts, (tuple, list)) else (int(shifts),), "roll", "shifts")
    if dims is None:
        if len(amounts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(amounts)}, dims:0")
        return reshape(roll(reshape(input, -1), amounts, 0), input._type.shape)
    along = int_list((dims,) if isinstance(dims, (tuple, list)) else (int(dims),), "roll", "dims")
    if len(amounts) != len(along):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(amounts)}, dims:{len(along)}")
    moved = input
    for amount, dim in zip(amounts, along, strict=True):
        if not input._type.shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        at = one_dim(dim, input._type.rank)
        size = moved._type.shape[at]
        cut = (size - amount % size) if size else 0
        if cut % (size or 1):
            moved = cat([sliced(moved, at, cut, size), sliced(moved, at, 0, cut)], at)
    return clone(input) if moved is input else moved


# --- more than once -----------------------------------------------------------------------------


def repeat(input: Tensor, *sizes: Any, repeats: Any = None) -> Tensor:
    """The tensor laid out side by side, so many times along each dimension; more numbers than dimensions make new ones in front."""
    times = int_list(sizes if repeats is None else (repeats,), "repeat", "repeats")
    extra = len(times) - input._type.rank
    if extra < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(n < 0 for n in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(times)}: {list(times)}")
    shape = (1,) * extra + input._type.shape
    if all(n == 1 for n in times):
        return clone(reshaped(input, shape))
    single = tuple([m for n in shape for m in (1, n)])
    several = tuple([m for n, k in zip(shape, times, strict=True) for m in (k, n)])
    tiled = record(ops.broadcast_to, (record(ops.reshape, (input,), {"shape": single}),), {"shape": several})
    final = tuple([n * k for n, k in zip(shape, times, strict=True)])
    return record(ops.reshape, (tiled,), {"shape": final})  # type: ignore[no-any-return]


def tile(input: Tensor, *sizes: Any, dims: Any = None) -> Tensor:
    """`repeat`, where missing numbers in front are 1."""
    times = int_list(sizes if dims is None else (dims,), "tile", "dims")
    return repeat(input, (1,) * (input._type.rank - len(times)) + times)


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element (or slice along `dim`) several times in a row: as often as a number, or its own entry of a tensor, says."""
    if repeats is None:
        counts = _counts(input)
        return from_array(np.repeat(np.arange(counts.size), counts))
    if dim is None:
        input, dim = reshape(input, -1), 0
    x = input if input._type.shape else reshaped(input, (1,))
    at = one_dim(dim, x._type.rank)
    shape = x._type.shape
    if isinstance(repeats, Tensor) and repeats._type.numel == 1:
        repeats = int(_counts(reshape(repeats, -1))[0])
    if not isinstance(repeats, Tensor):
        times = one_int(repeats, "repeat_interleave", "repeats")
        if times < 0:
            raise RuntimeError("Repeats must be non-negative")
        split = record(ops.reshape, (x,), {"shape": (*shape[: at + 1], 1, *shape[at + 1 :])})
        several = record(ops.broadcast_to, (split,), {"shape": (*shape[: at + 1], times, *shape[at + 1 :])})
        return record(ops.reshape, (several,), {"shape": (*shape[:at], shape[at] * times, *shape[at + 1 :])})  # type: ignore[no-any-return]
    counts = _counts(repeats)
    if counts.size != shape[at]:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and input.size({at}) = "
            f"{shape[at]}"
        )
    if output_size is not None and output_size != counts.sum():
        raise RuntimeError("allocated size does not match required size")
    places = from_array(np.repeat(np.arange(counts.size), counts))
    return record(index_ops.index_select, (x, places), {"dim": at})  # type: ignore[no-any-return]


def _counts(repeats: Tensor) -> np.ndarray:
    """The numbers themselves: the size of the result depends on them."""
    if repeats._type.rank > 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats._type.dtype not in ("i32", "i64"):
        raise RuntimeError("repeats has to be Long or Int tensor")
    counts = repeats._array()
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    return np.atleast_1d(counts)


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` elements at every `step`-th place along a dimension; the window is a new last dimension."""
    rank = input._type.rank
    at = one_dim(dimension, rank)
    x = input if rank else reshaped(input, (1,))
    total = x._type.shape[at]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > total:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {total} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    starts = np.arange(0, total - size + 1, step)
    windows = from_array(starts[:, None] + np.arange(size))
    picked = record(index_ops.index, (x, windows), {"axes": (at,)})
    order = [d for d in range(picked._type.rank) if d != at + 1]
    return permute(picked, (*order, at + 1)) if rank else reshaped(picked, (size,))


# --- diagonals, triangles, borders --------------------------------------------------------------


def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with zeros above a diagonal."""
    return stored(record(ops.tril, (input,), {"diagonal": int(diagonal)}), out)


def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Matrices with zeros below a diagonal."""
    return stored(record(ops.triu, (input,), {"diagonal": int(diagonal)}), out)


def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """A square matrix with a vector on its diagonal, or the diagonal of a matrix (a copy)."""
    if input._type.rank == 1:
        return stored(diag_embed(input, diagonal), out)
    if input._type.rank != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._type.rank}D")
    return stored(record(ops.diagonal, (input,), {"offset": int(diagonal), "dim1": 0, "dim2": 1}), out)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension laid along the diagonal of new dimensions `dim1` and `dim2`."""
    if not input._type.shape:
        raise IndexError("Dimension out of range: diag_embed() needs at least one dimension")
    *rest, length = input._type.shape
    rank = len(rest) + 2
    a, b = one_dim(dim1, rank), one_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = length + (offset if offset >= 0 else -offset)
    sizes = iter(rest)
    shape = tuple([side if d in (a, b) else next(sizes) for d in range(rank)])
    base = zeros_of(tensor_type(input._type.dtype, shape))
    return record(ops.diagonal_scatter, (base, input), {"offset": offset, "dim1": a, "dim2": b})  # type: ignore[no-any-return]


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A square matrix with all elements of a tensor on its diagonal."""
    return diag_embed(reshape(input, -1), offset)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """A border around the last dimensions: `pad` holds (before, after) of the last dimension, then of the one before it, and so on.

    Negative numbers cut off. Modes "reflect", "replicate" and "circular" take the border from the tensor itself.
    """
    amounts, rank = int_list((pad,), "pad", "pad"), input._type.rank
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * rank:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length {len(amounts)} and input "
            f"of dimension {rank}"
        )
    low, high = [0] * rank, [0] * rank
    for i in range(len(amounts) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    if mode != "constant":
        if value is not None and value != 0:
            raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
        if len(amounts) not in (2, 4, 6) or rank - len(amounts) // 2 not in (1, 2):
            raise NotImplementedError(
                f"Padding size {len(amounts)} is not supported for {rank}D input tensor: mode {mode!r} is for 1 to 3 last dimensions of "
                "tensors with one or two dimensions before them"
            )
        return _bordered(input, low, high, mode)
    return _padded(input, low, high, 0 if value is None else value)


def _padded(x: Tensor, low: Sequence[int], high: Sequence[int], value: Any) -> Tensor:
    for d, (n, a, b) in enumerate(zip(x._type.shape, low, high, strict=True)):
        if n + a + b < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {a} and {b} resulted in a negative output size, which is invalid. Check "
                f"dimension {d} of your input."
            )
        if a < 0 or b < 0:
            x = sliced(x, d, max(0, -a), max(n + min(b, 0), max(0, -a)))
    fill = constant(value.item() if hasattr(value, "item") else value, x._type.dtype).attrs["value"]
    attrs = {"low": tuple([max(0, a) for a in low]), "high": tuple([max(0, b) for b in high]), "value": fill}
    return record(ops.pad, (x,), attrs)  # type: ignore[no-any-return]


def _bordered(x: Tensor, low: Sequence[int], high: Sequence[int], mode: str) -> Tensor:
    """A border of the tensor's own elements, picked by index dimension by dimension."""
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    for d, (a, b) in enumerate(zip(low, high, strict=True)):
        n = x._type.shape[d]
        if a == b == 0:
            continue
        if mode == "reflect" and max(a, b) >= n:
            raise RuntimeError(
                f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({a}, {b}) at "
                f"dimension {d} of input {list(x._type.shape)}"
            )
        if mode == "circular" and max(a, b) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        first, end = max(0, -a), n - max(0, -b)
        around = np.arange(n)[first:end] if mode == "circular" else np.arange(n)  # what goes around is what is left
        places = np.pad(around, (max(a, 0), max(b, 0)), mode=modes[mode])  # type: ignore[call-overload]
        if mode != "circular":
            places = places[first : len(places) - max(0, -b)]
        x = record(index_ops.index_select, (x, from_array(places)), {"dim": d})
    return x


# --- along a dimension --------------------------------------------------------------------------


def _scan(defn: OpDef, x: Tensor, dim: int, dtype: Any, out: Tensor | None) -> Tensor:
    at = one_dim(dim, x._type.rank)
    if dtype is not None:
        x = cast(x, ir_dtype(dtype))
    flat = x if x._type.shape else reshaped(x, (1,))
    scanned = record(defn, (flat,), {"dim": at})
    scanned = scanned if x._type.shape else reshaped(scanned, ())
    return stored(scanned if dtype is None else cast(scanned, ir_dtype(dtype)), out)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Sums of the elements up to each; bool and small integers add up in int64."""
    return _scan(ops.cumsum, input, dim, dtype, out)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Products of the elements up to each; bool and small integers multiply in int64."""
    return _scan(ops.cumprod, input, dim, dtype, out)


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along a dimension, `n` times over."""
    if not input._type.shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    at = one_dim(dim, input._type.rank)
    if n == 0:
        return clone(input)
    parts = [x for x in (prepend, input, append) if x is not None]
    x = cat(parts, at) if len(parts) > 1 else input
    for _ in range(min(n, x._type.shape[at])):
        size = x._type.shape[at]
        later, earlier = sliced(x, at, min(1, size), size), sliced(x, at, 0, max(size - 1, 0))
        x = logical_xor(later, earlier) if category(x._type.dtype) == 0 else sub(later, earlier)
    return clone(x) if x is input else x
