"""Activations, each a short composition of elementwise functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions import random, reduction
from tpc.functions.elementwise import sigmoid, tanh
from tpc.functions.factories import zeros_of
from tpc.functions.joining import chunk
from tpc.functions.shape import reshape
from tpc.ir.types import is_differentiable
from tpc.tensor import Tensor


def _result(x: Tensor, new: Tensor, inplace: bool) -> Tensor:
    return x._write(new) if inplace else new


def _source(x: Tensor, inplace: bool) -> Tensor:
    """What a formula reads: for an in-place call the value before the write."""
    return x._snapshot() if inplace else x


def _floating(x: Tensor, name: str) -> None:
    if not is_differentiable(x._type.dtype):
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype}: it takes a floating tensor')


# --- softmax ------------------------------------------------------------------------------------


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
    return reduction.softmax(input, _implicit(input, dim, "softmax"), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)), computed stably."""
    return reduction.log_softmax(input, _implicit(input, dim, "log_softmax"), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    return softmax(e.neg(input), dim, dtype=dtype)


def _implicit(x: Tensor, dim: int | None, name: str) -> int:
    if dim is not None:
        return dim
    text = f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."
    warnings.warn(text, stacklevel=4)
    return 0 if x._type.rank in (0, 1, 3) else 1


# --- piecewise linear ---------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return _result(input, e.relu(_source(input, inplace)), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x brought into [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x brought into a range; the gradient at its ends is 0."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    x = _source(input, inplace)
    if not is_differentiable(x._type.dtype):
        return _result(input, e.clamp(x, int(min_val), int(max_val)), inplace)
    outside = e.logical_or(e.le(x, min_val), e.ge(x, max_val))
    return _result(input, e.where(outside, e.clamp(x.detach(), min_val, max_val), x), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, times the slope where negative."""
    _floating(input, "leaky_relu")
    x = _source(input, inplace)
    return _result(input, e.where(e.gt(x, 0), x, e.mul(x, negative_slope)), inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, times a learnt slope (one, or one per channel in dimension 1) where negative."""
    if weight._type.rank > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._type.rank}")
    if weight._type.numel == 1:
        weight = reshape(weight, ())
    elif not input._type.shape:
        raise RuntimeError("Not allow zero-dim input tensor.")
    elif input._type.rank > 1:
        weight = reshape(weight, (1, -1) + (1,) * (input._type.rank - 2))
    return e.where(e.gt(input, 0), input, e.mul(input, weight))


# --- smooth -------------------------------------------------------------------------------------


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, alpha * (exp(x) - 1) where negative."""
    _floating(input, "elu")
    x = _source(input, inplace)
    negative = e.le(x, 0)
    return _result(input, e.where(negative, e.mul(e.expm1(e.where(negative, x, 0)), alpha), x), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    _floating(input, "celu")
    x = _source(input, inplace)
    negative = e.le(x, 0)
    return _result(input, e.where(negative, e.mul(e.expm1(e.div(e.where(negative, x, 0), alpha)), alpha), x), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * elu(x, alpha), with the two constants of self-normalising networks."""
    x = _source(input, inplace)
    return _result(input, e.mul(elu(x, 1.6732632423543772), 1.0507009873554805), inplace)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function; `approximate="tanh"` uses tanh for it."""
    _floating(input, "gelu")
    if approximate == "none":
        return e.mul(e.mul(input, 0.5), e.add(e.erf(e.mul(input, math.sqrt(0.5))), 1))
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    inner = e.mul(e.add(input, e.mul(e.mul(e.mul(input, input), input), 0.044715)), math.sqrt(2 / math.pi))
    return e.mul(e.mul(input, 0.5), e.add(tanh(inner), 1))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    _floating(input, "silu")
    x = _source(input, inplace)
    return _result(input, e.mul(x, sigmoid(x)), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    _floating(input, "mish")
    x = _source(input, inplace)
    return _result(input, e.mul(x, tanh(softplus(x))), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    _floating(input, "softplus")
    scaled = input if beta == 1 else e.mul(input, beta)
    linear = e.gt(scaled, threshold)
    curve = e.log1p(e.exp(e.where(linear, 0, scaled)))
    return e.where(linear, input, curve if beta == 1 else e.div(curve, beta))


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x))."""
    negative = e.lt(input, 0)
    towards = e.where(negative, input, e.neg(input))
    return e.sub(e.where(negative, input, 0), e.log1p(e.exp(towards)))


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return e.div(input, e.add(e.abs(input), 1))


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return e.sub(input, tanh(input))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`."""
    _floating(input, "softshrink")
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return e.where(e.gt(input, lambd), e.sub(input, lambd), e.where(e.lt(input, -lambd), e.add(input, lambd), e.mul(input, 0)))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, 0 within [-lambd, lambd]."""
    _floating(input, "hardshrink")
    return e.where(e.le(e.abs(input), lambd), 0, input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x, `value` where x is not above the threshold."""
    x = _source(input, inplace)
    return _result(input, e.where(e.le(x, threshold), value, x), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    _floating(input, "hardsigmoid")
    x = _source(input, inplace)
    return _result(input, e.div(relu6(e.add(x, 3)), 6), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6."""
    _floating(input, "hardswish")
    x = _source(input, inplace)
    return _result(input, e.div(e.mul(x, relu6(e.add(x, 3))), 6), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""
    if not input._type.shape:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input._type.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    first, second = chunk(input, 2, dim)
    return e.mul(first, sigmoid(second))


# --- random -------------------------------------------------------------------------------------


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x, times a slope drawn for each negative element between `lower` and `upper`; times their mean when not training."""
    _floating(input, "rrelu")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    x = _source(input, inplace)
    slopes = e.add(e.mul(random.rand_like(x.detach()), upper - lower), lower)
    return _result(input, e.where(e.le(x, 0), e.mul(x, slopes), x), inplace)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A differentiable draw from the categories that `logits` weigh; with `hard` one-hot, with the gradient of the soft draw."""
    noise = e.neg(e.log(_exponential(logits)))
    soft = reduction.softmax(e.div(e.add(logits, noise), tau), dim)
    if not hard:
        return soft
    from tpc.functions.gathering import scatter

    best = scatter(zeros_of(soft._type), dim, reduction.argmax(soft, dim, keepdim=True), 1.0)
    return e.add(e.sub(best, soft.detach()), soft)


def _exponential(like: Tensor) -> Tensor:
    return e.neg(e.log1p(e.neg(random.rand_like(like.detach()))))


# --- in place -----------------------------------------------------------------------------------


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def form(input: Tensor, *args: Any, **options: Any) -> Tensor:
        return function(input, *args, **options, inplace=True)

    form.__name__ = form.__qualname__ = function.__name__ + "_"
    form.__doc__ = f"In-place form of `{function.__name__}`."
    return form


relu_, relu6_, hardtanh_, leaky_relu_ = _in_place(relu), _in_place(relu6), _in_place(hardtanh), _in_place(leaky_relu)
elu_, celu_, selu_, rrelu_, threshold_ = _in_place(elu), _in_place(celu), _in_place(selu), _in_place(rrelu), _in_place(threshold)
