"""Derivatives of neighbours and mantissas; integers have none."""

from __future__ import annotations

from typing import Any

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions.derived import ldexp
from tpc.functions.elementwise import neg
from tpc.functions.factories import zeros_of
from tpc.functions.numbers import frexp
from tpc.ir.ops import numbers as ops
from tpc.record import cast
from tpc.tensor import Tensor


def _frexp(g: list[Any], x: Tensor) -> Tensor | None:
    """The exponent is constant between its steps."""
    if g[0] is None:
        return None
    return ldexp(g[0], cast(neg(frexp(x.detach()).exponent), x._type.dtype))


derivative(ops.nextafter, a=lambda g: g, b=lambda g: zeros_of(g._type))
derivative(ops.frexp, x=_frexp)
not_differentiable(ops.gcd, ops.lcm)
