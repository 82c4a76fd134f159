"""Automatic differentiation: Functions, `backward`, `grad`, grad modes, hooks."""

from tpc.autograd import anomaly_mode as anomaly_mode
from tpc.autograd import forward_ad as forward_ad
from tpc.autograd import function as function
from tpc.autograd import graph as graph
from tpc.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from tpc.autograd.backward import backward, grad
from tpc.autograd.function import Function, InplaceFunction, NestedIOFunction
from tpc.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "InplaceFunction",
    "NestedIOFunction",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
