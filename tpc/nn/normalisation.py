"""Normalisation layers; running statistics are buffers."""

from __future__ import annotations

from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.dtype import int64
from tpc.functions.factories import ones, tensor, zeros
from tpc.nn import functional as fn
from tpc.nn import init
from tpc.nn.linear import weights
from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor


class _Scaled(Module):
    """What all have: a scale and a shift, or neither."""

    weight: Parameter | None
    bias: Parameter | None

    def _scales(self, shape: tuple[int, ...], affine: bool, bias: bool, dtype: Any) -> None:
        weights(self, dtype, weight=shape if affine else None, bias=shape if affine and bias else None)

    def reset_parameters(self) -> None:
        """A scale of one and a shift of zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class Channels(_Scaled):
    RANKS: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool, bias: bool, dtype: Any
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._scales((num_features,), affine, bias, dtype)
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean zero, variance one, no batch seen."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def _check_input_dim(self, input: Tensor) -> None:
        if input._type.rank not in self.RANKS:
            expected = " or ".join(f"{n}D" for n in self.RANKS)
            raise ValueError(f"expected {expected} input (got {input._type.rank}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class Batch(Channels):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        share: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
                if self.momentum is None:
                    # A cumulative average; the count stays a tensor, so that a compiled step reads it anew.
                    share = 1.0 / self.num_batches_tracked.to(input.dtype)
        from_batch = self.training or self.running_mean is None
        kept = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if kept else (None, None)
        return fn.batch_norm(input, mean, var, self.weight, self.bias, from_batch, share, self.eps)


class BatchNorm1d(Batch):
    """Each channel with mean 0 and variance 1 over batch and length: [N, C] or [N, C, L]."""

    RANKS = (2, 3)


class BatchNorm2d(Batch):
    """Each channel with mean 0 and variance 1 over batch and image: [N, C, H, W]."""

    RANKS = (4,)


class BatchNorm3d(Batch):
    """Each channel with mean 0 and variance 1 over batch and volume: [N, C, D, H, W]."""

    RANKS = (5,)


class Instance(Channels):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        whole = input if input._type.rank == self.RANKS[-1] else input.unsqueeze(0)
        from_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        made = fn.instance_norm(whole, self.running_mean, self.running_var, self.weight, self.bias, from_input, momentum, self.eps)
        return made if whole is input else made.squeeze(0)


class InstanceNorm1d(Instance):
    """Each channel of each sample with mean 0 and variance 1: [N, C, L] or [C, L]."""

    RANKS = (2, 3)


class InstanceNorm2d(Instance):
    """Each channel of each image with mean 0 and variance 1: [N, C, H, W] or [C, H, W]."""

    RANKS = (3, 4)


class InstanceNorm3d(Instance):
    """Each channel of each volume with mean 0 and variance 1."""

    RANKS = (4, 5)


class GroupNorm(_Scaled):
    """Groups of channels of each sample with mean 0 and variance 1."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._scales((num_channels,), affine, bias, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return fn.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LayerNorm(_Scaled):
    """The last dimensions of each sample with mean 0 and variance 1."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._scales(self.normalized_shape, elementwise_affine, bias, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return fn.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(_Scaled):
    """The last dimensions of each sample with mean square 1."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weights(self, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A scale of one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return fn.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
