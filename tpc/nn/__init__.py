"""Neural networks: functions, modules, initial values."""

from tpc.nn import functional, init
from tpc.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from tpc.nn.module import Module
from tpc.nn.parameter import Buffer, Parameter

__all__ = [
    "Buffer", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential", "functional", "init",
]  # fmt: skip
