"""`tpc.distributions`: a few of them, with `sample`, `rsample`, `log_prob` and moments. Parameters broadcast; gradients flow to them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.dtype import finfo
from tpc.functions import elementwise as e
from tpc.functions.factories import tensor, zeros
from tpc.functions.random import multinomial, rand, randn
from tpc.functions.reduction import log_softmax, picked, softmax, sum
from tpc.functions.shape import broadcast_tensors, expand, reshape, unsqueeze
from tpc.functions.special import erfinv, xlogy
from tpc.record import cast
from tpc.tensor import Tensor

EULER = 0.57721566490153286060


def _parameters(*values: Any) -> tuple[Tensor, ...]:
    return broadcast_tensors(*[v if isinstance(v, Tensor) else tensor(float(v)) for v in values])


class Distribution:
    """What all have: a shape of independent variables, and samples of it."""

    has_rsample = False
    SHOWN: tuple[str, ...] = ("loc", "scale", "low", "high")
    batch_shape: tuple[int, ...] = ()

    def _shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        return (*sample_shape, *self.batch_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples that are differentiable functions of the parameters; `NotImplementedError` where there are none."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample()")

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples, of shape `sample_shape` and then that of the parameters."""
        with no_grad():
            return self.rsample(sample_shape)

    def __repr__(self) -> str:
        shown = {k: v for k, v in vars(self).items() if isinstance(v, Tensor) and k in self.SHOWN}
        text = ", ".join(f"{k}: {v if v._type.numel == 1 else v.size()}" for k, v in shown.items())
        return f"{type(self).__name__}({text})"

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density (or probability) at a value."""
        raise NotImplementedError


class _LocScale(Distribution):
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = _parameters(loc, scale)
        self.batch_shape = tuple(self.loc.shape)

    def _standard(self, value: Tensor) -> Tensor:
        return e.div(e.sub(value, self.loc), self.scale)

    def _moved(self, noise: Tensor) -> Tensor:
        return e.add(self.loc, e.mul(self.scale, noise))


class Normal(_LocScale):
    """Normal with mean `loc` and standard deviation `scale`."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._moved(randn(self._shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        return e.sub(e.sub(e.mul(e.square(self._standard(value)), -0.5), e.log(self.scale)), 0.5 * math.log(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        return e.mul(e.add(e.erf(e.div(self._standard(value), math.sqrt(2))), 1), 0.5)

    def icdf(self, value: Tensor) -> Tensor:
        """The value whose `cdf` it is."""
        return self._moved(e.mul(erfinv(e.sub(e.mul(value, 2), 1)), math.sqrt(2)))

    def entropy(self) -> Tensor:
        """Entropy."""
        return e.add(e.log(self.scale), 0.5 + 0.5 * math.log(2 * math.pi))

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: e.square(self.scale))


class Gumbel(_LocScale):
    """Gumbel, the distribution of extremes."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = e.clamp(rand(self._shape(sample_shape), dtype=self.loc.dtype), 1e-38, 1 - 2.0**-24)
        return self._moved(e.neg(e.log(e.neg(e.log(u)))))

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return e.neg(e.add(e.add(z, e.exp(e.neg(z))), e.log(self.scale)))

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        return e.exp(e.neg(e.exp(e.neg(self._standard(value)))))

    def icdf(self, value: Tensor) -> Tensor:
        """The value whose `cdf` it is."""
        return self._moved(e.neg(e.log(e.neg(e.log(value)))))

    def entropy(self) -> Tensor:
        """Entropy."""
        return e.add(e.log(self.scale), 1 + EULER)

    mean = property(lambda self: e.add(self.loc, e.mul(self.scale, EULER)))
    variance = property(lambda self: e.mul(e.square(self.scale), math.pi**2 / 6))


class Uniform(Distribution):
    """Uniform on [low, high)."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = _parameters(low, high)
        self.batch_shape = tuple(self.low.shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return e.add(self.low, e.mul(e.sub(self.high, self.low), rand(self._shape(sample_shape), dtype=self.low.dtype)))

    def log_prob(self, value: Tensor) -> Tensor:
        inside = e.logical_and(e.ge(value, self.low), e.lt(value, self.high))
        return e.where(inside, e.neg(e.log(e.sub(self.high, self.low))), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        return e.clamp(e.div(e.sub(value, self.low), e.sub(self.high, self.low)), 0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """The value whose `cdf` it is."""
        return e.add(self.low, e.mul(value, e.sub(self.high, self.low)))

    def entropy(self) -> Tensor:
        """Entropy."""
        return e.log(e.sub(self.high, self.low))

    mean = property(lambda self: e.mul(e.add(self.low, self.high), 0.5))


def _one(probs: Any, logits: Any) -> Tensor:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return _parameters(logits if probs is None else probs)[0]


class Bernoulli(Distribution):
    """1 with probability `probs` (or sigmoid(`logits`)), else 0."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        given = _one(probs, logits)
        self.probs = e.sigmoid(given) if probs is None else given
        self.SHOWN = ("logits",) if probs is None else ("probs",)
        if probs is None:
            self.logits = given
        else:
            least = finfo(given.dtype).eps
            inner = e.clamp(given, least, 1 - least)
            self.logits = e.sub(e.log(inner), e.log1p(e.neg(inner)))
        self.batch_shape = tuple(self.probs.shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        p = self.probs.detach()
        return cast(e.lt(rand(self._shape(sample_shape), dtype=p.dtype), p), p._type.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return e.add(xlogy(value, self.probs), xlogy(e.sub(1, value), e.sub(1, self.probs)))

    def entropy(self) -> Tensor:
        """Entropy."""
        q = e.sub(1, self.probs)
        return e.neg(e.add(xlogy(self.probs, self.probs), xlogy(q, q)))

    mean = property(lambda self: self.probs)
    variance = property(lambda self: e.mul(self.probs, e.sub(1, self.probs)))


class Categorical(Distribution):
    """An index along the last dimension, with probabilities `probs` (scaled to sum 1) or softmax(`logits`)."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        given = _one(probs, logits)
        self.probs = softmax(given, -1) if probs is None else e.div(given, sum(given, -1, keepdim=True))
        self.SHOWN = ("logits",) if probs is None else ("probs",)
        self.logits = log_softmax(given, -1) if probs is None else e.log(self.probs)
        self.batch_shape = tuple(given.shape[:-1])

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._shape(sample_shape)
        if 0 in shape:
            return zeros(shape, dtype=int)
        rows = reshape(expand(self.probs.detach(), (*shape, self.probs._type.shape[-1])), (-1, self.probs._type.shape[-1]))
        return reshape(multinomial(rows, 1), shape)

    def log_prob(self, value: Tensor) -> Tensor:
        at = cast(value, "i64")
        rows = expand(self.logits, (*at._type.shape, self.logits._type.shape[-1]))
        return reshape(picked(rows, unsqueeze(at, -1), -1), at._type.shape)

    def entropy(self) -> Tensor:
        """Entropy."""
        return e.neg(sum(xlogy(self.probs, self.probs), -1))


# PyTorch has a module for each: `torch.distributions.bernoulli.Bernoulli`
bernoulli = categorical = distribution = gumbel = normal = uniform = sys.modules[__name__]

__all__ = ["Bernoulli", "Categorical", "Distribution", "Gumbel", "Normal", "Uniform"]
