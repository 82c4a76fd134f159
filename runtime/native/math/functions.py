"""The table of functions: op name to the formula for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from tpc.runtime.native.math import exponential, logarithm
from tpc.runtime.native.math.arithmetic import Arithmetic

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": exponential.exp, "expm1": exponential.expm1, "sigmoid": exponential.sigmoid, "tanh": exponential.tanh,
    "sinh": exponential.sinh, "cosh": exponential.cosh, "erf": exponential.erf, "log": logarithm.log, "log1p": logarithm.log1p,
    "pow": logarithm.single_pow,
}  # fmt: skip


def has_function(name: str, dtype: str) -> bool:
    """Whether there is a formula for an op on operands of a floating dtype."""
    return name in FUNCTIONS and (name != "pow" or dtype == "f32")


def emit(builder: ir.IRBuilder, name: str, operands: Sequence[ir.Value], dtype: str) -> ir.Value:
    """The op on numbers of one dtype, "f32" or "f64". Errors stay within 3 units in the last place; those of erf
    in double precision, within 9e-16."""
    return FUNCTIONS[name](Arithmetic(builder, dtype), *operands)
