"""Activations as modules."""

from __future__ import annotations

from typing import Any

from tpc.functions.factories import full
from tpc.nn import functional as fn
from tpc.nn.applied import applied
from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor

CELU = applied("CELU", fn.celu, "alpha inplace", "alpha={alpha}")
ELU = applied("ELU", fn.elu, "alpha inplace", "alpha={alpha}")
GELU = applied("GELU", fn.gelu, "approximate", "approximate={approximate!r}")
GLU = applied("GLU", fn.glu, "dim", "dim={dim}")
Hardshrink = applied("Hardshrink", fn.hardshrink, "lambd", "{lambd}")
Hardsigmoid = applied("Hardsigmoid", fn.hardsigmoid, "inplace")
Hardswish = applied("Hardswish", fn.hardswish, "inplace")
Hardtanh = applied("Hardtanh", fn.hardtanh, "min_val max_val inplace", "min_val={min_val}, max_val={max_val}")
LeakyReLU = applied("LeakyReLU", fn.leaky_relu, "negative_slope inplace", "negative_slope={negative_slope}")
LogSigmoid = applied("LogSigmoid", fn.logsigmoid)
LogSoftmax = applied("LogSoftmax", fn.log_softmax, "dim", "dim={dim}", {"dim": None})
Mish = applied("Mish", fn.mish, "inplace")
ReLU = applied("ReLU", fn.relu, "inplace")
ReLU6 = applied("ReLU6", fn.relu6, "inplace")
RReLU = applied("RReLU", fn.rrelu, "lower upper inplace", "lower={lower}, upper={upper}")
SELU = applied("SELU", fn.selu, "inplace")
SiLU = applied("SiLU", fn.silu, "inplace")
Sigmoid = applied("Sigmoid", fn.sigmoid)
Softmax = applied("Softmax", fn.softmax, "dim", "dim={dim}", {"dim": None})
Softmin = applied("Softmin", fn.softmin, "dim", "dim={dim}", {"dim": None})
Softplus = applied("Softplus", fn.softplus, "beta threshold", "beta={beta}, threshold={threshold}", {"beta": 1.0, "threshold": 20.0})
Softshrink = applied("Softshrink", fn.softshrink, "lambd", "{lambd}")
Softsign = applied("Softsign", fn.softsign)
Tanh = applied("Tanh", fn.tanh)
Tanhshrink = applied("Tanhshrink", fn.tanhshrink)
Threshold = applied("Threshold", fn.threshold, "threshold value inplace", "threshold={threshold}, value={value}")


class Softmax2d(Module):
    """Softmax over the channels at each place of an image, [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        if input._type.rank not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input._type.rank}D instead")
        return fn.softmax(input, -3)


class PReLU(Module):
    """`x` where positive, else `x` times a learned slope, of each channel or one for all."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), float(init), dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return fn.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
