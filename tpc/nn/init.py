"""Initial values: every function fills a tensor in place, outside of any history, and returns it."""

from __future__ import annotations

import math
import warnings
from statistics import NormalDist
from typing import Any

import numpy as np

from tpc.autograd.grad_mode import no_grad
from tpc.dtype import float64
from tpc.functions import factories
from tpc.functions.factories import from_numpy
from tpc.functions.random import Generator, rand, randn, randperm
from tpc.tensor import Tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity shrinks what passes through it, to be made up for by larger weights."""
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input."""
    shape = tensor._type.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)  # type: ignore[no-any-return]


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)  # type: ignore[no-any-return]


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Normal numbers within [a, b]."""

    def below(x: float) -> float:
        return (1 + math.erf((x - mean) / std / math.sqrt(2))) / 2

    quantile = np.frompyfunc(NormalDist(mean, std).inv_cdf, 1, 1)
    shares = rand(*tensor._type.shape, generator=generator, dtype=float64).numpy() * (below(b) - below(a)) + below(a)
    values = quantile(np.clip(shares, np.finfo(float).tiny, 1 - 2.0**-53)).astype(np.float64).clip(a, b)
    with no_grad():
        return tensor.copy_(from_numpy(np.asarray(values)))  # type: ignore[no-any-return]


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    with no_grad():
        return tensor.fill_(val)  # type: ignore[no-any-return]


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor._type.rank != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(factories.eye(*tensor._type.shape, dtype=tensor.dtype))  # type: ignore[no-any-return]


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that passes its input channels on, as many as it can."""
    shape = tensor._type.shape
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = shape[0] // groups
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, shape[1])):
                tensor[(g * per_group + d, d, *(n // 2 for n in shape[2:]))] = 1
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers of variance gain**2 * 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of variance gain**2 * 2 / (fan_in + fan_out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform numbers of variance gain**2 / fan (He et al. 2015); `a` is the slope of a leaky relu."""
    if _is_empty(tensor):
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal numbers of variance gain**2 / fan."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode)), generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor._type.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Rows (or columns, where there are fewer) at right angles, of length `gain`."""
    shape = tensor._type.shape
    if len(shape) < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor._type.numel == 0:
        return tensor
    flat = randn(shape[0], tensor._type.numel // shape[0], generator=generator, dtype=float64).numpy()
    wide = flat.shape[0] < flat.shape[1]
    q, r = np.linalg.qr(flat.T if wide else flat)
    # With positive numbers on the diagonal of r, q is uniform among orthogonal matrices.
    q = q * np.sign(np.diag(r))
    with no_grad():
        return tensor.copy_(from_numpy(np.ascontiguousarray((q.T if wide else q).reshape(shape) * gain)))  # type: ignore[no-any-return]


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers, a share of each column set to zero."""
    if tensor._type.rank != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor._type.shape
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows, generator=generator)[: math.ceil(sparsity * rows)], column] = 0  # type: ignore[index]
    return tensor


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'tpc.nn.init' has no attribute {name!r}; its functions end in an underscore: they work in place")
