"""Losses of differences, of probabilities and of classes. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.activations import log_softmax, logsigmoid
from tpc.functions.gathering import gather, index_select
from tpc.functions.reduction import mean, sum
from tpc.functions.shape import reshape, squeeze, unsqueeze
from tpc.functions.special import xlogy
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


def chosen(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that the two old arguments ask for, where one is given."""
    if size_average is None and reduce is None:
        return reduction
    kept = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{kept}' instead.", stacklevel=3)
    return kept


# --- differences --------------------------------------------------------------------------------


def _times(loss: Tensor, weight: Tensor, input: Tensor) -> Tensor:
    if weight._type.shape != input._type.shape:
        raise ValueError("Weights and input must have the same size.")
    return e.mul(loss, weight)


def _weighted(loss: Tensor, weight: Tensor | None, input: Tensor, reduction: str) -> Tensor:
    """Reduced with a weight per element: the mean is a weighted mean."""
    if weight is None:
        return reduced(loss, reduction)
    total = _times(loss, weight, input)
    return e.div(sum(total), sum(weight)) if reduction == "mean" else reduced(total, reduction)


def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """(input - target) squared."""
    _warn_sizes(input, target)
    return _weighted(e.square(e.sub(input, target)), weight, input, chosen(size_average, reduce, reduction))


def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """|input - target|."""
    _warn_sizes(input, target)
    return _weighted(e.abs(e.sub(input, target)), weight, input, chosen(size_average, reduce, reduction))


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Quadratic below `beta`, linear above."""
    reduction = chosen(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    _warn_sizes(input, target)
    size = e.abs(e.sub(input, target))
    return reduced(e.where(e.lt(size, beta), e.div(e.mul(e.square(size), 0.5), beta), e.sub(size, 0.5 * beta)), reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """`delta` times the smooth L1 loss."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _warn_sizes(input, target)
    size = e.abs(e.sub(input, target))
    loss = e.where(e.le(size, delta), e.mul(e.square(size), 0.5), e.mul(e.sub(size, 0.5 * delta), delta))
    # Here PyTorch's mean is over the elements, whatever their weights.
    return reduced(loss if weight is None else _times(loss, weight, input), reduction)


def _warn_sizes(input: Tensor, target: Tensor) -> None:
    if input._type.shape != target._type.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to incorrect "
            "results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


# --- classes ------------------------------------------------------------------------------------


def _check_classes(input: Tensor, target: Tensor, weight: Tensor | None) -> int:
    """The dimension of the classes."""
    x, t = input._type.shape, target._type.shape
    if not x:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(x) > 1 and (not t or x[0] != t[0]):
        raise ValueError(f"Expected input batch_size ({x[0]}) to match target batch_size ({t[0] if t else 1}).")
    wanted = () if len(x) == 1 else (x[0], *x[2:])
    if t != wanted:
        raise RuntimeError(f"Expected target size {list(wanted)}, got {list(t)}")
    if target._type.dtype not in ("i64", "u8", "i32"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype}")
    classes = 0 if len(x) == 1 else 1
    if weight is not None and weight._type.shape != (x[classes],):
        raise RuntimeError(
            f"weight tensor should be defined either for all {x[classes]} classes or no classes but got weight tensor of shape: "
            f"{list(weight._type.shape)}"
        )
    return classes


def _weights(target: Tensor, known: Tensor, weight: Tensor | None, dtype: str) -> Tensor:
    """The weight of each sample's class; 0 where the target is to be ignored."""
    if weight is None:
        return cast(known, dtype)
    safe = e.where(known, target, 0)
    found = reshape(index_select(weight, 0, reshape(safe, -1)), safe._type.shape)
    return e.where(known, found, 0)


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-probability of the target class, classes in dimension 1 (0 for one sample)."""
    reduction = chosen(size_average, reduce, reduction)
    classes = _check_classes(input, target, weight)
    if target._type.dtype != "i64":
        target = cast(target, "i64")
    known = e.ne(target, ignore_index)
    picked = squeeze(gather(input, classes, unsqueeze(e.where(known, target, 0), classes)), classes)
    weights = _weights(target, known, weight, input._type.dtype)
    losses = e.where(known, e.neg(e.mul(picked, weights)), 0)
    if reduction == "mean":
        return e.div(sum(losses), sum(weights))
    return reduced(losses, reduction)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`nll_loss` of `log_softmax`; `target` holds class indices, or probabilities of the input's shape."""
    reduction = chosen(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    classes = 0 if input._type.rank == 1 else 1
    if is_floating(target._type.dtype):
        if target._type.shape != input._type.shape:
            raise RuntimeError(f"expected scalar type Long but found {target.dtype}")
        return _soft_cross_entropy(log_softmax(input, classes), target, weight, classes, reduction, label_smoothing)
    _check_classes(input, target, weight)
    logs = log_softmax(input, classes)
    hard = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if label_smoothing == 0:
        return hard
    known = e.ne(target, ignore_index)
    spread = logs if weight is None else e.mul(logs, _per_class(weight, logs, classes))
    smooth = e.where(known, e.neg(sum(spread, classes)), 0)
    if reduction == "mean":
        smooth = e.div(sum(smooth), sum(_weights(target, known, weight, input._type.dtype)))
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


# --- probabilities ------------------------------------------------------------------------------


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities; logarithms are taken no lower than -100."""
    reduction = chosen(size_average, reduce, reduction)
    if target._type.shape != input._type.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. Please ensure they "
            "have the same size."
        )
    if target._type.dtype != input._type.dtype:
        raise RuntimeError(f"Found dtype {target.dtype} but expected {input.dtype}")
    losses = e.neg(e.add(e.mul(target, _bounded_log(input)), e.mul(e.sub(1, target), _bounded_log(e.sub(1, input)))))
    return reduced(losses if weight is None else e.mul(losses, weight), reduction)


def _bounded_log(p: Tensor) -> Tensor:
    """The logarithm, at least -100; its slope is 1 / p, at most 1e12."""
    small = e.le(p, 1e-12)
    logs = e.log(e.where(small, 1, p))
    return e.where(small, e.add(e.clamp_min(e.log(p.detach()), -100), e.mul(e.sub(p, p.detach()), 1e12)), logs)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`binary_cross_entropy` of `sigmoid(input)`, computed stably."""
    reduction = chosen(size_average, reduce, reduction)
    if target._type.shape != input._type.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    log_of_one = logsigmoid(input)
    factor = 1 if pos_weight is None else e.add(e.mul(e.sub(pos_weight, 1), target), 1)
    losses = e.sub(e.mul(e.sub(1, target), input), log_of_one if pos_weight is None else e.mul(factor, log_of_one))
    return reduced(losses if weight is None else e.mul(losses, weight), reduction)


def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """target * (log(target) - input), the input being log-probabilities; "batchmean" is the sum over the batch size."""
    reduction = chosen(size_average, reduce, reduction)
    if log_target:
        losses = e.mul(e.exp(target), e.sub(target, input))
    else:
        losses = e.sub(xlogy(target, target), e.mul(target, input))
    if reduction == "batchmean":
        return e.div(sum(losses), input._type.shape[0] if input._type.shape else 1)
    return reduced(losses, reduction)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8,
    reduce: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of counts, `input` being (the logarithm of) their mean; `full` adds Stirling's term."""
    reduction = chosen(size_average, reduce, reduction)
    if log_input:
        losses = e.sub(e.exp(input), e.mul(target, input))
    else:
        losses = e.sub(input, e.mul(target, e.log(e.add(input, eps))))
    if full:
        stirling = e.add(e.sub(e.mul(target, e.log(target)), target), e.mul(e.log(e.mul(target, 2 * math.pi)), 0.5))
        losses = e.add(losses, e.where(e.gt(target, 1), stirling, 0))
    return reduced(losses, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """Minus the log-likelihood of normal numbers of mean `input` and variance `var`, which is taken to be at least `eps`."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = e.add(e.mul(input.detach(), 0), var)
    elif var._type.shape != input._type.shape:
        if input._type.shape[:-1] == var._type.shape:
            var = unsqueeze(var, -1)
        elif not _almost(input._type.shape, var._type.shape):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    low = e.lt(var.detach(), eps)
    # Where the variance is raised to eps, the gradient still flows as if it were not.
    var = e.add(var, e.where(low, e.sub(eps, var.detach()), 0))
    losses = e.mul(e.add(e.log(var), e.div(e.square(e.sub(input, target)), var)), 0.5)
    return reduced(e.add(losses, 0.5 * math.log(2 * math.pi)) if full else losses, reduction)


def _almost(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Equal apart from sizes of 1 in the other."""
    return len(shape) == len(other) and all(m in (1, n) for n, m in zip(shape, other, strict=True))
