"""Losses with a margin: what is right must be better than what is wrong by some distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.activations import logsigmoid
from tpc.functions.factories import arange, zeros_of
from tpc.functions.gathering import gather, index_select, scatter
from tpc.functions.losses import chosen, reduced
from tpc.functions.normalisation import pairwise_distance
from tpc.functions.reduction import mean, sum
from tpc.functions.shape import reshape, squeeze, unsqueeze
from tpc.ir.types import tensor_type
from tpc.record import cast
from tpc.tensor import Tensor


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """The input where the target is 1; what it lacks of the margin where the target is -1."""
    reduction = chosen(size_average, reduce, reduction)
    apart = e.where(e.eq(target, 1), 0, e.clamp_min(e.sub(margin, input), 0))
    together = e.where(e.eq(target, -1), 0, input)
    return reduced(e.add(apart, together), reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, margin - target * (input1 - input2)); the target is 1 where the first should be the larger, else -1."""
    reduction = chosen(size_average, reduce, reduction)
    if not input1._type.rank == input2._type.rank == target._type.rank:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.shape}, input2: "
            f"{input2.shape}, target: {target.shape} "
        )
    return reduced(e.clamp_min(e.add(e.mul(e.neg(target), e.sub(input1, input2)), margin), 0), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """1 - cos where the target is 1; how far the cosine is above the margin where it is -1."""
    reduction = chosen(size_average, reduce, reduction)
    if target._type.rank + 1 != input1._type.rank or input1._type.rank > 2:
        raise RuntimeError(
            f"{target._type.rank}D target tensor expects {target._type.rank + 1}D input tensors, but found inputs with sizes "
            f"{list(input1._type.shape)} and {list(input2._type.shape)}."
        )
    small = 1e-12
    dots = sum(e.mul(input1, input2), -1)
    norms = e.sqrt(e.mul(e.add(sum(e.square(input1), -1), small), e.add(sum(e.square(input2), -1), small)))
    cosine = e.div(dots, norms)
    alike = e.where(e.eq(target, 1), e.sub(1, cosine), 0)
    different = e.where(e.eq(target, -1), e.clamp_min(e.sub(cosine, margin), 0), 0)
    return reduced(e.add(alike, different), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input))."""
    return reduced(e.log1p(e.exp(e.mul(e.neg(target), input))), chosen(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Binary cross entropy with logits, averaged over the classes of each sample."""
    reduction = chosen(size_average, reduce, reduction)
    losses = e.neg(e.add(e.mul(target, logsigmoid(input)), e.mul(e.sub(1, target), logsigmoid(e.neg(input)))))
    return reduced(mean(losses if weight is None else e.mul(losses, weight), -1), reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """How much the target class lacks of being above each other class by the margin, averaged over the classes."""
    reduction = chosen(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight._type.rank != 1:
        raise ValueError("weight must be one-dimensional")
    rows = input if input._type.rank == 2 else reshape(input, (1, -1))
    picks = reshape(target, (rows._type.shape[0], 1))
    lacks = e.clamp_min(e.add(e.sub(rows, gather(rows, 1, picks)), margin), 0)
    lacks = e.square(lacks) if p == 2 else lacks
    if weight is not None:
        lacks = e.mul(lacks, reshape(index_select(weight, 0, reshape(target, -1)), (-1, 1)))
    others = e.ne(arange(rows._type.shape[1]), picks)
    losses = e.div(sum(e.where(others, lacks, 0), 1), rows._type.shape[1])
    return reduced(losses if input._type.rank == 2 else reshape(losses, ()), reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """How much each target class (listed up to the first -1) lacks of being 1 above each class that is none."""
    reduction = chosen(size_average, reduce, reduction)
    rows = input if input._type.rank == 2 else reshape(input, (1, -1))
    labels = target if input._type.rank == 2 else reshape(target, (1, -1))
    from tpc.functions.arranging import cumsum

    listed = e.eq(cumsum(e.lt(labels, 0), 1), 0)
    safe = e.where(listed, labels, 0)
    flags = scatter(zeros_of(tensor_type("i64", rows._type.shape)), 1, safe, cast(listed, "i64"), reduce="add")
    wrong = unsqueeze(e.eq(flags, 0), 1)
    lacks = e.clamp_min(e.add(e.sub(1, unsqueeze(gather(rows, 1, safe), 2)), unsqueeze(rows, 1)), 0)
    counted = e.logical_and(unsqueeze(listed, 2), wrong)
    losses = e.div(sum(e.where(counted, lacks, 0), (1, 2)), rows._type.shape[1])
    return reduced(losses if input._type.rank == 2 else squeeze(losses, 0), reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """How much nearer than the negative the positive should be to the anchor, by the p-norm."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplets(anchor, positive, negative, distance, margin, swap, chosen(size_average, reduce, reduction))


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` by a distance of one's own."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplets(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def _triplets(
    anchor: Tensor, positive: Tensor, negative: Tensor, distance: Callable[..., Tensor], margin: float, swap: bool, reduction: str
) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = e.minimum(far, distance(positive, negative))
    return reduced(e.clamp_min(e.add(e.sub(near, far), margin), 0), reduction)
