"""Normalisation over a batch, a layer, groups of channels, single channels and neighbouring channels."""

from __future__ import annotations

import math
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.functions import elementwise as e
from tpc.functions import reduction
from tpc.functions.shape import broadcast_tensors, reshape
from tpc.record import cast
from tpc.tensor import Tensor

Sizes = tuple[int, ...]


def _centred(x: Tensor, dims: Sizes) -> tuple[Tensor, Tensor, Tensor]:
    """`x` less its mean over `dims`, that mean, and the mean square of what is left: the variance."""
    mean = reduction.mean(x, dims, keepdim=True)
    centred = e.sub(x, mean)
    return centred, mean, reduction.mean(e.square(centred), dims, keepdim=True)


def _wide(x: Tensor) -> Tensor:
    """Half precision as single precision: squares of its numbers overflow, and PyTorch computes so."""
    return cast(x, "f32") if x._type.dtype == "f16" else x


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else e.mul(x, weight)
    return x if bias is None else e.add(x, bias)


# --- over the last dimensions -------------------------------------------------------------------


def _last(x: Tensor, normalized_shape: Any) -> Sizes:
    """The dimensions that a shape names; `RuntimeError` where they have other sizes."""
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    rank = x._type.rank
    if not sizes:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        )
    if len(sizes) > rank or x._type.shape[rank - len(sizes) :] != sizes:
        raise RuntimeError(
            f"Given normalized_shape={list(sizes)}, expected input with shape [*, {', '.join(map(str, sizes))}], but got input of size"
            f"{list(x._type.shape)}"
        )
    return tuple(range(rank - len(sizes), rank))


def _shaped(x: Tensor | None, sizes: Any, name: str) -> None:
    wanted = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if x is not None and x._type.shape != wanted:
        raise RuntimeError(
            f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(x._type.shape)} and "
            f"normalized_shape = {list(wanted)}"
        )


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then scaled and shifted."""
    dims = _last(input, normalized_shape)
    _shaped(weight, normalized_shape, "weight")
    _shaped(bias, normalized_shape, "bias")
    centred, _, variance = _centred(_wide(input), dims)
    return cast(_scaled(e.mul(centred, e.rsqrt(e.add(variance, eps))), weight, bias), input._type.dtype)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divided by the root of the mean square over the last dimensions, then scaled."""
    dims = _last(input, normalized_shape)
    _shaped(weight, normalized_shape, "weight")
    if eps is None:
        from tpc.dtype import finfo

        eps = finfo(input.dtype).eps
    x = _wide(input)
    root = e.rsqrt(e.add(reduction.mean(e.square(x), dims, keepdim=True), eps))
    return cast(_scaled(e.mul(x, root), weight, None), input._type.dtype)


# --- over channels ------------------------------------------------------------------------------


def _per_channel(x: Tensor | None, rank: int) -> Tensor | None:
    return None if x is None else reshape(x, (1, -1) + (1,) * (rank - 2))


def _enough(shape: Sizes) -> None:
    if shape[0] * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {_size(shape)}")


def _size(shape: Sizes) -> str:
    return f"torch.Size({list(shape)})"


def _channels_fit(x: Tensor, **others: Tensor | None) -> None:
    for name, other in others.items():
        if other is not None and other._type.numel != x._type.shape[1]:
            raise RuntimeError(f"{name} should contain {x._type.shape[1]} elements not {other._type.numel}")


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel (dimension 1), then scaled and shifted.

    When training, by the batch itself, which also moves the running statistics, in place, by the share `momentum`; else by those.
    """
    rank = input._type.rank
    if rank < 2:
        raise RuntimeError(f"batch_norm expects an input of at least 2 dimensions, but got {list(input._type.shape)}")
    if training:
        _enough(input._type.shape)
    elif running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    _channels_fit(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    weight, bias = _per_channel(weight, rank), _per_channel(bias, rank)
    if training:
        centred, mean, variance = _centred(_wide(input), (0, *range(2, rank)))
        _move(running_mean, mean, momentum)
        count = input._type.numel // max(input._type.shape[1], 1)
        _move(running_var, e.mul(variance.detach(), count / max(count - 1, 1)), momentum)
        scale = e.rsqrt(e.add(variance, eps))
        return cast(_scaled(centred, scale if weight is None else e.mul(scale, weight), bias), input._type.dtype)
    assert running_mean is not None and running_var is not None
    known_mean, known_var = _per_channel(running_mean, rank), _per_channel(running_var, rank)
    scale = e.rsqrt(e.add(known_var, eps))
    return _scaled(e.sub(input, known_mean), scale if weight is None else e.mul(scale, weight), bias)


def _move(running: Tensor | None, new: Tensor, momentum: float) -> None:
    """Brings a running statistic closer to a new one."""
    if running is not None:
        with no_grad():
            kept = e.mul(running._snapshot(), 1 - momentum)
            running._write(e.add(kept, e.mul(reshape(new.detach(), running._type.shape), momentum)))


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel of each sample, then scaled and shifted."""
    shape, rank = input._type.shape, input._type.rank
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {_size(shape)}")
    _channels_fit(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    centred, mean, variance = _centred(_wide(input), tuple(range(2, rank)))
    _move(running_mean, reduction.mean(mean.detach(), 0), momentum)
    count = math.prod(shape[2:])
    _move(running_var, reduction.mean(e.mul(variance.detach(), count / max(count - 1, 1)), 0), momentum)
    weight, bias = _per_channel(weight, rank), _per_channel(bias, rank)
    scale = e.rsqrt(e.add(variance, eps))
    return cast(_scaled(centred, scale if weight is None else e.mul(scale, weight), bias), input._type.dtype)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over each group of channels of each sample, then scaled and shifted per channel."""
    shape, rank = input._type.shape, input._type.rank
    if rank < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {rank}")
    if num_groups < 1 or shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(shape)} and "
            f"num_groups={num_groups}"
        )
    _enough((shape[0] * shape[1] // num_groups, num_groups, *shape[2:]))
    _channels_fit(input, weight=weight, bias=bias)
    groups = reshape(_wide(input), (shape[0], num_groups, math.prod(shape[1:]) // num_groups))
    centred, _, variance = _centred(groups, (2,))
    normal = reshape(e.mul(centred, e.rsqrt(e.add(variance, eps))), shape)
    return cast(_scaled(normal, _per_channel(weight, rank), _per_channel(bias, rank)), input._type.dtype)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divided by a power of the mean square over `size` neighbouring channels."""
    from tpc.functions.arranging import pad
    from tpc.functions.pooling import avg_pool3d

    shape, rank = input._type.shape, input._type.rank
    if rank < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {rank} dimensions)")
    if input._type.numel == 0:
        return input
    inner = math.prod(shape[2:])
    squares = reshape(e.square(input), (shape[0], 1, shape[1], 1, inner))
    means = avg_pool3d(pad(squares, (0, 0, 0, 0, size // 2, (size - 1) // 2)), (size, 1, 1), stride=1)
    return e.div(input, e.pow(e.add(e.mul(reshape(means, shape), alpha), k), beta))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`."""
    from tpc.functions.norms import vector_norm

    x1, x2 = broadcast_tensors(x1, x2)
    dots = reduction.sum(e.mul(x1, x2), dim)
    return e.div(dots, e.mul(e.clamp_min(vector_norm(x1, 2, dim), eps), e.clamp_min(vector_norm(x2, 2, dim), eps)))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    from tpc.functions.norms import vector_norm

    return vector_norm(e.add(e.sub(x1, x2), eps), p, -1, keepdim)
