"""Elements, or whole channels, set to zero at random."""

from __future__ import annotations

import math
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions import random
from tpc.functions.factories import zeros
from tpc.record import cast
from tpc.tensor import Tensor


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    """1 with probability 1 - p, else 0; of a shape that broadcasts to that of `x`."""
    like = x.detach() if shape == x._type.shape else zeros(shape, dtype=x.dtype)
    return cast(e.ge(random.rand_like(like), p), x._type.dtype)


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    _check(p)
    if not training or p == 0:
        return input
    x = input._snapshot() if inplace else input
    new = e.mul(x, 0) if p == 1 else e.mul(x, e.div(_kept(x, p, shape), 1 - p))
    return input._write(new) if inplace else new


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p."""
    return _dropped(input, p, training, inplace, input._type.shape)


def _channels(x: Tensor) -> tuple[int, ...]:
    """Ones behind batch and channels."""
    shape = x._type.shape
    return (*shape[:2], *[1] * (len(shape) - 2))


def _feature_dropout(x: Tensor, p: float, training: bool, inplace: bool, count: int) -> Tensor:
    """Drops channels of a batch [batch, channels, *count axes]; without a batch the first dimension holds the channels."""
    rank = x._type.rank
    if rank not in (count + 1, count + 2):
        raise RuntimeError(f"dropout{count}d: Expected {count + 1}D or {count + 2}D input, but received a {rank}D input")
    shape = x._type.shape
    return _dropped(x, p, training, inplace, _channels(x) if rank == count + 2 else (shape[0], *[1] * count))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of [batch, channels, length] 0 with probability `p`."""
    return _feature_dropout(input, p, training, inplace, 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of [batch, channels, height, width] 0 with probability `p`."""
    if input._type.rank == 3:
        # PyTorch takes the first of three dimensions for the batch here.
        return _dropped(input, p, training, inplace, _channels(input))
    return _feature_dropout(input, p, training, inplace, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel of [batch, channels, depth, height, width] 0 with probability `p`."""
    return _feature_dropout(input, p, training, inplace, 3)


ALPHA = -1.7580993408473766
"""What selu tends to for very negative numbers: scale * alpha, negative."""


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    _check(p)
    if not training or p == 0:
        return input
    x = input._snapshot() if inplace else input
    if p == 1:
        new = e.mul(x, 0)
    else:
        # Dropped elements become ALPHA; then mean 0 and variance 1 are restored.
        scale = 1 / math.sqrt((1 - p) * (1 + p * ALPHA**2))
        kept = _kept(x, p, shape)
        new = e.add(e.mul(e.add(e.mul(x, kept), e.mul(e.sub(1, kept), ALPHA)), scale), -scale * p * ALPHA)
    return input._write(new) if inplace else new


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 of what went through selu."""
    return _alpha_dropped(input, p, training, inplace, input._type.shape)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return _alpha_dropped(input, p, training, inplace, _channels(input))


def feature_dropout(input: Tensor, p: float, train: Any) -> Tensor:
    """Dropout of whole channels."""
    return _dropped(input, p, bool(train), False, _channels(input))
