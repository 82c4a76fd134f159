"""Automatic differentiation: Functions, `backward`, `grad`, grad modes, hooks, forward mode, checks."""

from typing import Any

from tpc.autograd import anomaly_mode as anomaly_mode
from tpc.autograd import forward_ad as forward_ad
from tpc.autograd import function as function
from tpc.autograd import graph as graph
from tpc.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from tpc.autograd.backward import backward, grad
from tpc.autograd.function import Function, InplaceFunction, NestedIOFunction
from tpc.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

_LATER = {
    "Variable": ("tpc.legacy", "Variable"),
    "functional": ("tpc.autograd.functional", None),
    "gradcheck": ("tpc.autograd.gradient_check", "gradcheck"),
    "gradgradcheck": ("tpc.autograd.gradient_check", "gradgradcheck"),
}
"""Names that need the operators, which themselves need this package: they are imported when asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tpc.autograd' has no attribute {name!r}")
    from importlib import import_module

    module, member = _LATER[name]
    found = import_module(module)
    return found if member is None else getattr(found, member)


__all__ = [
    "Function",
    "InplaceFunction",
    "NestedIOFunction",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
