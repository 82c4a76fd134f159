"""Losses, each a short composition. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import warnings
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.derived import xlogy
from tpc.functions.nn import log_softmax, logsigmoid
from tpc.functions.reduction import mean, sum
from tpc.functions.shape import reshape, squeeze, unsqueeze
from tpc.ir.types import is_floating
from tpc.record import cast
from tpc.tensor import Tensor


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """All of a loss, its mean or its sum."""
    if reduction == "mean":
        return mean(loss)
    if reduction == "sum":
        return sum(loss)
    if reduction == "none":
        return loss
    raise ValueError(f"{reduction} is not a valid value for reduction")


def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """(input - target) squared."""
    _warn_sizes("mse_loss", input, target)
    return reduced(e.square(e.sub(input, target)), reduction)


def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """|input - target|."""
    _warn_sizes("l1_loss", input, target)
    return reduced(e.abs(e.sub(input, target)), reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Quadratic below `beta`, linear above."""
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    size = e.abs(e.sub(input, target))
    return reduced(e.where(e.lt(size, beta), e.div(e.mul(e.square(size), 0.5), beta), e.sub(size, 0.5 * beta)), reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """`delta` times the smooth L1 loss."""
    size = e.abs(e.sub(input, target))
    return reduced(e.where(e.lt(size, delta), e.mul(e.square(size), 0.5), e.mul(e.sub(size, 0.5 * delta), delta)), reduction)


def _warn_sizes(name: str, input: Tensor, target: Tensor) -> None:
    if input._type.shape != target._type.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to incorrect "
            "results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-probability of the target class, classes in dimension 1 (0 for one sample)."""
    from tpc.functions.gathering import gather

    classes = 0 if input._type.rank == 1 else 1
    ignored = e.eq(target, ignore_index)
    safe = e.where(ignored, 0, target)
    chosen = squeeze(gather(input, classes, unsqueeze(safe, classes)), classes)
    weights = cast(e.logical_not(ignored), input._type.dtype)
    if weight is not None:
        weights = e.mul(weight[safe], weights)  # type: ignore[index]
    losses = e.where(ignored, 0, e.neg(e.mul(chosen, weights)))
    if reduction == "mean":
        return e.div(sum(losses), sum(weights))
    return reduced(losses, reduction)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`nll_loss` of `log_softmax`; `target` holds class indices, or probabilities of the input's shape."""
    classes = 0 if input._type.rank == 1 else 1
    logs = log_softmax(input, classes)
    if is_floating(target._type.dtype):
        return _soft_cross_entropy(logs, target, weight, classes, reduction, label_smoothing)
    hard = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing == 0:
        return hard
    known = e.ne(target, ignore_index)
    weights = cast(known, input._type.dtype)
    spread = logs if weight is None else e.mul(logs, _per_class(weight, logs, classes))
    smooth = e.where(known, e.neg(sum(spread, classes)), 0)
    if reduction == "mean":
        total = weights if weight is None else e.mul(weight[e.where(known, target, 0)], weights)  # type: ignore[index]
        smooth = e.div(sum(smooth), sum(total))
    else:
        smooth = reduced(smooth, reduction)
    share = label_smoothing / input._type.shape[classes]
    return e.add(e.mul(hard, 1 - label_smoothing), e.mul(smooth, share))


def _per_class(weight: Tensor, logs: Tensor, classes: int) -> Tensor:
    return reshape(weight, (-1,) + (1,) * (logs._type.rank - classes - 1))


def _soft_cross_entropy(logs: Tensor, target: Tensor, weight: Tensor | None, classes: int, reduction: str, smoothing: float) -> Tensor:
    if smoothing:
        target = e.add(e.mul(target, 1 - smoothing), smoothing / logs._type.shape[classes])
    products = e.mul(logs, target)
    if weight is not None:
        products = e.mul(products, _per_class(weight, logs, classes))
    losses = e.neg(sum(products, classes))
    if reduction == "mean":
        return e.div(sum(losses), logs._type.numel / logs._type.shape[classes])
    return reduced(losses, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities; logarithms are taken no lower than -100."""
    first = e.mul(target, e.clamp_min(e.log(input), -100))
    second = e.mul(e.sub(1, target), e.clamp_min(e.log1p(e.neg(input)), -100))
    losses = e.neg(e.add(first, second))
    return reduced(losses if weight is None else e.mul(losses, weight), reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`binary_cross_entropy` of `sigmoid(input)`, computed stably."""
    log_of_one = logsigmoid(input)
    if pos_weight is None:
        losses = e.sub(e.mul(e.sub(1, target), input), log_of_one)
    else:
        factor = e.add(e.mul(e.sub(pos_weight, 1), target), 1)
        losses = e.sub(e.mul(e.sub(1, target), input), e.mul(factor, log_of_one))
    return reduced(losses if weight is None else e.mul(losses, weight), reduction)


def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """target * (log(target) - input), the input being log-probabilities."""
    if log_target:
        losses = e.mul(e.exp(target), e.sub(target, input))
    else:
        losses = e.sub(xlogy(target, target), e.mul(target, input))
    if reduction == "batchmean":
        return e.div(sum(losses), input._type.shape[0])
    return reduced(losses, reduction)
