"""Convolutions and their transposes."""

from __future__ import annotations

import math
from typing import Any

from tpc.functions.conv import several
from tpc.nn import functional as fn
from tpc.nn import init
from tpc.nn.linear import weights
from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor

MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(Module):
    COUNT = 0
    TRANSPOSED = False
    weight: Parameter
    bias: Parameter | None
    padding: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any,
        groups: int, bias: bool, padding_mode: str, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of ('same', 'valid')")
        if padding == "same" and any(s != 1 for s in self._several(stride)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in MODES:
            raise ValueError(f"padding_mode must be one of {set(MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = self._several(kernel_size), self._several(stride), self._several(dilation)
        self.padding = padding if isinstance(padding, str) else self._several(padding)
        self.output_padding = self._several(output_padding)
        outer, inner = (in_channels, out_channels) if self.TRANSPOSED else (out_channels, in_channels)
        shape = (outer, inner // groups, *self.kernel_size)
        weights(self, dtype, weight=shape, bias=(out_channels,) if bias else None)
        self.reset_parameters()

    def _several(self, value: Any) -> tuple[int, ...]:
        return several(value, self.COUNT, type(self).__name__, "argument")

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        plain = {"padding": 0, "dilation": 1, "output_padding": 0}
        text += "".join(f", {k}={getattr(self, k)}" for k, v in plain.items() if getattr(self, k) != (v,) * self.COUNT)
        text += f", groups={self.groups}" if self.groups != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class _Forward(Convolution):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, dtype)

    def _borders(self) -> list[int]:
        """What `functional.pad` takes: both sides of each dimension, the last first."""
        if self.padding == "valid":
            return [0] * (2 * self.COUNT)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [side for t in reversed(totals) for side in (t // 2, t - t // 2)]
        return [p for p in reversed(self.padding) for _ in range(2)]

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        return self._borders()

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with another weight, for subclasses."""
        function = getattr(fn, f"conv{self.COUNT}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = fn.pad(input, self._borders(), self.padding_mode), 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)  # type: ignore[no-any-return]


class Transposed(Convolution):
    TRANSPOSED = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, dtype
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._output_padding(input, output_size)
        function = getattr(fn, f"conv_transpose{self.COUNT}d")
        settings = (self.stride, self.padding, extra, self.groups, self.dilation)
        return function(input, self.weight, self.bias, *settings)  # type: ignore[no-any-return]

    def _output_padding(self, input: Tensor, output_size: Any, *settings: Any, **more: Any) -> tuple[int, ...]:
        """The output padding that leads to a size; `ValueError` where none does."""
        wanted = tuple(output_size)[-self.COUNT :]
        sizes = zip(input.shape[-self.COUNT :], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * s - 2 * int(p) + d * (k - 1) + 1 for n, s, p, d, k in sizes]
        most = [low + s - 1 for low, s in zip(least, self.stride, strict=True)]
        if not all(low <= w <= high for low, w, high in zip(least, wanted, most, strict=True)):
            raise ValueError(f"requested an output size of {list(wanted)}, but valid sizes range from {least} to {most}")
        return tuple(w - low for w, low in zip(wanted, least, strict=True))


class Conv1d(_Forward):
    """Cross-correlation over one dimension: [N, C, L] to [N, C', L']."""

    COUNT = 1


class Conv2d(_Forward):
    """Cross-correlation over two dimensions: [N, C, H, W] to [N, C', H', W']."""

    COUNT = 2


class Conv3d(_Forward):
    """Cross-correlation over three dimensions."""

    COUNT = 3


class ConvTranspose1d(Transposed):
    """The gradient of a Conv1d as a layer: it makes inputs longer by its stride."""

    COUNT = 1


class ConvTranspose2d(Transposed):
    """The gradient of a Conv2d as a layer."""

    COUNT = 2


class ConvTranspose3d(Transposed):
    """The gradient of a Conv3d as a layer."""

    COUNT = 3
