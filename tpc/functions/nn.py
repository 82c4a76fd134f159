"""Activations and layers without state, each a short composition: the first set of `tpc.nn.functional`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions import random, reduction
from tpc.functions.elementwise import sigmoid, tanh
from tpc.functions.gathering import one_hot as one_hot
from tpc.functions.linalg import matmul
from tpc.functions.norms import vector_norm
from tpc.functions.shape import mT, reshape, unsqueeze
from tpc.record import cast
from tpc.tensor import Tensor


def _result(x: Tensor, new: Tensor, inplace: bool) -> Tensor:
    return x._write(new) if inplace else new


def _source(x: Tensor, inplace: bool) -> Tensor:
    """What a formula reads: for an in-place call the value before the write."""
    return x._snapshot() if inplace else x


# --- activations --------------------------------------------------------------------------------


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


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return _result(input, e.relu(_source(input, inplace)), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x brought into [0, 6]."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x brought into a range; the gradient at its ends is 0."""
    x = _source(input, inplace)
    outside = e.logical_or(e.le(x, min_val), e.ge(x, max_val))
    return _result(input, e.where(outside, e.clamp(x.detach(), min_val, max_val), x), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, times the slope where negative."""
    x = _source(input, inplace)
    return _result(input, e.where(e.gt(x, 0), x, e.mul(x, negative_slope)), inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, times a learnt slope (one, or one per channel in dimension 1) where negative."""
    if weight._type.numel != 1:
        weight = reshape(weight, (1, -1) + (1,) * (input._type.rank - 2)) if input._type.rank > 1 else weight
    return e.where(e.gt(input, 0), input, e.mul(input, weight))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, alpha * (exp(x) - 1) where negative."""
    x = _source(input, inplace)
    negative = e.le(x, 0)
    return _result(input, e.where(negative, e.mul(e.expm1(e.where(negative, x, 0)), alpha), x), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    x = _source(input, inplace)
    negative = e.le(x, 0)
    return _result(input, e.where(negative, e.mul(e.expm1(e.div(e.where(negative, x, 0), alpha)), alpha), x), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * elu(x, alpha), with the two constants of self-normalising networks."""
    x = _source(input, inplace)
    return _result(input, e.mul(elu(x, 1.6732632423543772), 1.0507009873554805), inplace)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function; `approximate="tanh"` uses tanh for it."""
    if approximate == "none":
        return e.mul(e.mul(input, 0.5), e.add(e.erf(e.mul(input, math.sqrt(0.5))), 1))
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    inner = e.mul(e.add(input, e.mul(e.mul(e.mul(input, input), input), 0.044715)), math.sqrt(2 / math.pi))
    return e.mul(e.mul(input, 0.5), e.add(tanh(inner), 1))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    x = _source(input, inplace)
    return _result(input, e.mul(x, sigmoid(x)), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    x = _source(input, inplace)
    return _result(input, e.mul(x, tanh(softplus(x))), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
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
    return e.where(e.gt(input, lambd), e.sub(input, lambd), e.where(e.lt(input, -lambd), e.add(input, lambd), e.mul(input, 0)))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, 0 within [-lambd, lambd]."""
    return e.where(e.le(e.abs(input), lambd), 0, input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x, `value` where x is not above the threshold."""
    x = _source(input, inplace)
    return _result(input, e.where(e.gt(x, threshold), x, value), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    x = _source(input, inplace)
    return _result(input, e.div(relu6(e.add(x, 3)), 6), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6."""
    x = _source(input, inplace)
    return _result(input, e.div(e.mul(x, relu6(e.add(x, 3))), 6), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second."""
    from tpc.functions.catalogue import find

    first, second = find("chunk")(input, 2, dim)
    return e.mul(first, sigmoid(second))


# --- layers without state -----------------------------------------------------------------------


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias."""
    product = matmul(input, weight if weight._type.rank == 1 else mT(weight))
    return product if bias is None else e.add(product, bias)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, **options: Any) -> Tensor:
    """The rows of `weight` that `input` numbers; the row `padding_idx` gets no gradient."""
    if padding_idx is not None:
        row = padding_idx % weight._type.shape[0]
        rows = weight[input]  # type: ignore[index]
        return e.where(unsqueeze(e.eq(input, row), -1), rows.detach(), rows)
    return weight[input]  # type: ignore[index, no-any-return]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    x = _source(input, inplace)
    if p == 1:
        return _result(input, e.mul(x, 0), inplace)
    kept = cast(e.ge(random.rand_like(x.detach()), p), x._type.dtype)
    return _result(input, e.mul(x, e.div(kept, 1 - p)), inplace)


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then scaled and shifted."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if input._type.shape[input._type.rank - len(sizes) :] != sizes:
        raise RuntimeError(
            f"Given normalized_shape={list(sizes)}, expected input with shape [*, {', '.join(map(str, sizes))}], but got input of size"
            f"{list(input._type.shape)}"
        )
    dims = tuple(range(input._type.rank - len(sizes), input._type.rank))
    centred = e.sub(input, reduction.mean(input, dims, keepdim=True))
    scale = e.rsqrt(e.add(reduction.mean(e.square(centred), dims, keepdim=True), eps))
    normal = e.mul(centred, scale)
    if weight is not None:
        normal = e.mul(normal, weight)
    return normal if bias is None else e.add(normal, bias)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divided by the root of the mean square over the last dimensions, then scaled."""
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    dims = tuple(range(input._type.rank - count, input._type.rank))
    if eps is None:
        from tpc.dtype import finfo

        eps = finfo(input.dtype).eps
    normal = e.mul(input, e.rsqrt(e.add(reduction.mean(e.square(input), dims, keepdim=True), eps)))
    return normal if weight is None else e.mul(normal, weight)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`."""
    dots = reduction.sum(e.mul(x1, x2), dim)
    return e.div(dots, e.mul(e.clamp_min(vector_norm(x1, 2, dim), eps), e.clamp_min(vector_norm(x2, 2, dim), eps)))
