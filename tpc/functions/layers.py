"""Layers without state: linear maps, tables of vectors, channels into pixels and back."""

from __future__ import annotations

import math

from tpc.autograd.grad_mode import no_grad
from tpc.functions import elementwise as e
from tpc.functions import reduction
from tpc.functions.factories import ones_of, zeros_of
from tpc.functions.gathering import index_add, index_select
from tpc.functions.linalg import einsum, matmul
from tpc.functions.norms import vector_norm
from tpc.functions.shape import mT, permute, reshape, unsqueeze
from tpc.ir.types import tensor_type
from tpc.record import cast
from tpc.tensor import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias."""
    product = matmul(input, weight if weight._type.rank == 1 else mT(weight))
    return product if bias is None else e.add(product, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each output o, input1 @ weight[o] @ input2 + bias[o]."""
    lead = input1._type.shape[:-1]
    if input2._type.shape[:-1] != lead:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {list(lead)} and {list(input2._type.shape[:-1])}")
    if weight._type.shape[1:] != (input1._type.shape[-1], input2._type.shape[-1]):
        raise RuntimeError(
            f"bilinear(): input sizes do not match weight size: got {input1._type.shape[-1]}, {input2._type.shape[-1]} and "
            f"{list(weight._type.shape)}"
        )
    product = einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else e.add(product, bias)


# --- tables -------------------------------------------------------------------------------------


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of `weight` that `input` numbers; the row `padding_idx` gets no gradient.

    With `max_norm`, rows that are looked up are shortened to it first, in `weight` itself. `sparse` has no effect: gradients are dense.
    """
    if input._type.dtype not in ("i64", "i32"):
        raise RuntimeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {input.dtype} "
            "instead (while checking arguments for embedding)"
        )
    if weight._type.rank != 2:
        raise RuntimeError("'weight' must be 2-D")
    if max_norm is not None:
        _shorten(weight, reshape(input, -1), max_norm, norm_type)
    rows = _rows(input, weight)
    if padding_idx is not None:
        _padding_inside(padding_idx, weight)
        padding = unsqueeze(e.eq(input, padding_idx % weight._type.shape[0]), -1)
        rows = e.where(padding, rows.detach(), rows)
    if scale_grad_by_freq and weight._tracked():
        often = _rows(input, _frequencies(reshape(input, -1), weight))
        share = e.div(rows, often)
        rows = e.add(share, e.sub(rows, share).detach())
    return rows


def _padding_inside(padding_idx: int, weight: Tensor) -> None:
    if not -weight._type.shape[0] <= padding_idx < weight._type.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")


def _rows(input: Tensor, weight: Tensor) -> Tensor:
    found = index_select(weight, 0, reshape(input, -1))
    return reshape(found, (*input._type.shape, *weight._type.shape[1:]))


def _frequencies(flat: Tensor, weight: Tensor) -> Tensor:
    """How often each row is looked up, as a column."""
    column = tensor_type(weight._type.dtype, (weight._type.shape[0], 1))
    once = ones_of(tensor_type(weight._type.dtype, (flat._type.numel, 1)))
    return index_add(zeros_of(column), 0, flat, once)


def _shorten(weight: Tensor, flat: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        sizes = vector_norm(weight.detach(), norm_type, 1, keepdim=True)
        looked_up = e.gt(_frequencies(flat, weight), 0)
        factor = e.where(e.logical_and(e.gt(sizes, max_norm), looked_up), e.div(max_norm, e.add(sizes, 1e-7)), 1.0)
        weight._write(e.mul(weight._snapshot(), factor))


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Sums, means or maxima of looked-up rows: of each row of a two-dimensional `input`, or of the bags that begin at `offsets`."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{mode}')"
        )
    rows = embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = e.mul(rows, unsqueeze(per_sample_weights, -1))
    counted = None if padding_idx is None else unsqueeze(e.ne(input, padding_idx % weight._type.shape[0]), -1)
    if input._type.rank == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.")
        return _fixed_bags(rows, counted, mode)
    if input._type.rank != 1 or offsets is None:
        raise ValueError(f"input has to be 1D with offsets or 2D Tensor, but got Tensor of dimension {input._type.rank}")
    bags = offsets._type.numel - include_last_offset
    return _offset_bags(rows, counted, mode, offsets[:bags], bags)  # type: ignore[index]


def _fixed_bags(rows: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    if mode == "max":
        kept = rows if counted is None else e.where(counted, rows, -math.inf)
        most = reduction.max(kept, 1).values
        return most if counted is None else e.where(reduction.any(counted, 1), most, 0)
    total = reduction.sum(rows if counted is None else e.where(counted, rows, 0), 1)
    if mode == "sum":
        return total
    return e.div(total, rows._type.shape[1] if counted is None else e.clamp_min(reduction.sum(counted, 1), 1))


def _offset_bags(rows: Tensor, counted: Tensor | None, mode: str, offsets: Tensor, bags: int) -> Tensor:
    """Bags of different lengths: each element knows its bag, the number of bags that have begun."""
    from tpc.functions.factories import arange
    from tpc.functions.gathering import scatter_reduce
    from tpc.functions.shape import expand

    count, width = rows._type.shape
    bag = e.sub(reduction.sum(e.le(unsqueeze(offsets, 0), unsqueeze(arange(count, dtype=offsets.dtype), 1)), 1), 1)
    empty = zeros_of(tensor_type(rows._type.dtype, (bags, width)))
    lengths = index_add(
        zeros_of(tensor_type(rows._type.dtype, (bags, 1))), 0, bag,
        ones_of(tensor_type(rows._type.dtype, (count, 1))) if counted is None else cast(counted, rows._type.dtype),
    )  # fmt: skip
    if mode == "max":
        kept = rows if counted is None else e.where(counted, rows, -math.inf)
        most = scatter_reduce(empty, 0, expand(unsqueeze(bag, 1), (count, width)), kept, "amax", include_self=False)
        return e.where(e.gt(lengths, 0), most, 0)
    total = index_add(empty, 0, bag, rows if counted is None else e.where(counted, rows, 0))
    return total if mode == "sum" else e.div(total, e.clamp_min(lengths, 1))


# --- channels and pixels ------------------------------------------------------------------------


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """[*, c * r * r, h, w] as [*, c, h * r, w * r]."""
    r, (*lead, channels, height, width) = upscale_factor, _image(input, "pixel_shuffle")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if channels % (r * r):
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r * r}"
        )
    split = reshape(input, (*lead, channels // (r * r), r, r, height, width))
    n = len(lead)
    moved = permute(split, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshape(moved, (*lead, channels // (r * r), height * r, width * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """[*, c, h * r, w * r] as [*, c * r * r, h, w]."""
    r, (*lead, channels, height, width) = downscale_factor, _image(input, "pixel_unshuffle")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, size, at in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is not divisible by {r}"
            )
    split = reshape(input, (*lead, channels, height // r, r, width // r, r))
    n = len(lead)
    moved = permute(split, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshape(moved, (*lead, channels * r * r, height // r, width // r))


def _image(x: Tensor, function: str) -> tuple[int, ...]:
    if x._type.rank < 3:
        raise RuntimeError(f"{function} expects input to have at least 3 dimensions, but got input with {x._type.rank} dimension(s)")
    return x._type.shape


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels (dimension 1) in another order: the first of each group, then the second of each, and so on."""
    shape = input._type.shape
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0 or shape[1] % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups.")
    split = reshape(input, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return reshape(permute(split, (0, 2, 1, *range(3, len(shape) + 1))), shape)
