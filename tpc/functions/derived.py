"""Elementwise functions that are a few others put together, so that their gradients follow from those.

Where a branch that is not taken has an infinite slope, its argument is replaced first (`where` inside and outside): otherwise
0 * inf would turn the gradient into NaN.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tpc.dtype import BY_IR, default_dtype
from tpc.functions import elementwise as e
from tpc.functions.elementwise import stored, tensor_operand
from tpc.functions.factories import complex, filled
from tpc.ir.types import is_complex, is_differentiable, is_floating, tensor_type
from tpc.record import cast, common_dtype, promoted
from tpc.tensor import Tensor


def _float(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    return x if is_differentiable(x._type.dtype) else cast(x, default_dtype())


def _floating(name: str, *operands: Tensor) -> None:
    common = common_dtype(operands)
    if not is_differentiable(common):
        raise NotImplementedError(f'"{name}" not implemented for {BY_IR[common]!r}: it takes floating numbers')


def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The part after the point, with the sign of x."""
    _floating("frac", input)
    return stored(e.sub(input, e.trunc(input)), out)


def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    if _float(input)._type.dtype == "f16":
        return stored(cast(sinc(cast(input, "f32")), "f16"), out)
    x = e.mul(_float(input), math.pi)
    zero = e.eq(x, 0)
    safe = e.where(zero, 1, x)
    return stored(e.where(zero, 1, e.div(e.sin(safe), safe)), out)


def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / |x|, 0 at 0; `sign` for real numbers."""
    if not is_complex(input._type.dtype):
        return e.sign(input, out=out)
    size = e.abs(input)
    zero = e.eq(size, 0)
    return stored(e.where(zero, 0, e.div(input, e.where(zero, 1, size))), out)


def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Argument of a complex number; pi for negative reals, 0 for others, NaN for NaN."""
    if is_complex(input._type.dtype):
        return e.atan2(e.imag(input), e.real(input), out=out)
    x = _float(input)
    value = e.where(e.isnan(x), x.detach(), e.mul(cast(e.lt(x, 0), x._type.dtype), math.pi))
    return stored(e.flat(value, x), out)


def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs * exp(i * angle), from two tensors of one floating dtype."""
    size, angle = tensor_operand("polar", abs, "abs", 1), tensor_operand("polar", angle, "angle")
    return complex(e.mul(size, e.cos(angle)), e.mul(size, e.sin(angle)), out=out)


def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""
    return e.eq(e.imag(input), 0) if is_complex(input._type.dtype) else filled(tensor_type("bool", input._type.shape), True)


def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether -inf."""
    return e.eq(input, -math.inf, out=out)


def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether +inf."""
    return e.eq(input, math.inf, out=out)


def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether negative, -0.0 included."""
    if not is_floating(input._type.dtype):
        return e.lt(input, 0, out=out) if input._type.dtype != "bool" else e.ne(input, input, out=out)
    x = input.detach()
    return stored(e.logical_or(e.lt(x, 0), e.logical_and(e.eq(x, 0), e.lt(e.reciprocal(x), 0))), out)


def copysign(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """|input| with the sign of `other`."""
    if not isinstance(other, Tensor):
        return stored(e.mul(e.abs(_float(input)), math.copysign(1.0, other)), out)
    x, y = (_float(a) for a in promoted((input, other), "same"))
    return stored(e.mul(e.abs(x), e.sub(1, e.mul(cast(signbit(y), x._type.dtype), 2))), out)


def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below 0, `values` at 0, 1 above."""
    x, at_zero = tensor_operand("heaviside", input).detach(), tensor_operand("heaviside", values).detach()
    if x._type.dtype != at_zero._type.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return stored(e.where(e.eq(x, 0), at_zero, cast(e.gt(x, 0), x._type.dtype)), out)


def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Length of the vector (input, other), without overflow."""
    _floating("hypot", tensor_operand("hypot", input), tensor_operand("hypot", other))
    x, y = promoted((input, other), "float")
    infinite = e.logical_or(e.isinf(x), e.isinf(y))
    size = e.maximum(e.abs(x.detach()), e.abs(y.detach()))
    scale = e.where(e.logical_or(infinite, e.eq(size, 0)), 1.0, size)
    length = e.mul(e.sqrt(e.add(e.square(e.div(x, scale)), e.square(e.div(y, scale)))), scale)
    return stored(e.where(infinite, math.inf, length), out)


def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """input + weight * (end - input)."""
    difference = e.sub(end, input)
    if not isinstance(weight, Tensor):
        near = builtins.abs(weight) < 0.5
        found = e.add(input, e.mul(difference, weight)) if near else e.sub(end, e.mul(difference, 1 - weight))
    else:
        near_ = e.lt(e.abs(weight.detach()), 0.5)
        found = e.where(near_, e.add(input, e.mul(difference, weight)), e.sub(end, e.mul(difference, e.sub(1, weight))))
    return stored(found, out)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 * tensor2."""
    product = e.mul(tensor1, tensor2)
    return stored(e.add(input, product if value == 1 else e.mul(product, value)), out)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + value * tensor1 / tensor2."""
    if not is_differentiable(common_dtype((tensor1, tensor2))):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true division of tensor1 "
            "and tensor2."
        )
    scaled = tensor1 if value == 1 else e.mul(tensor1, value)
    return stored(e.add(input, e.div(scaled, tensor2)), out)


def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """`pow` in float64."""
    kind = "c128" if any_complex(input, exponent) else "f64"
    a, b = (cast(x, kind) if isinstance(x, Tensor) else x for x in (input, exponent))
    return e.pow(a, b, out=out)


def any_complex(*values: Any) -> bool:
    return builtins.any(is_complex(x._type.dtype) if isinstance(x, Tensor) else isinstance(x, builtins.complex) for x in values)


def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input * 2 ** other."""
    return stored(e.mul(input, e.pow(2.0, tensor_operand("ldexp", other))), out)


def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Degrees to radians."""
    return stored(e.mul(input, math.pi / 180), out)


def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Radians to degrees."""
    return stored(e.mul(input, 180 / math.pi), out)


def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(exp(x) + exp(y)), without overflow."""
    _floating("logaddexp", tensor_operand("logaddexp", input), tensor_operand("logaddexp", other))
    same = e.logical_and(e.isinf(input), e.eq(input, other))
    swap = e.lt(input, other)
    high, low = e.where(swap, other, input), e.where(swap, input, other)
    gap = e.where(same, 0, e.sub(low, high))
    return stored(e.where(same, input, e.add(high, e.log1p(e.exp(gap)))), out)


def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log2(2 ** x + 2 ** y), without overflow."""
    _floating("logaddexp2", tensor_operand("logaddexp2", input), tensor_operand("logaddexp2", other))
    x, y = promoted((input, other), "float")
    scale = math.log(2)
    return stored(e.div(logaddexp(e.mul(x, scale), e.mul(y, scale)), scale), out)


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *, out: Tensor | None = None
) -> Tensor:
    """NaN becomes `nan` (0), infinities `posinf` and `neginf` (the dtype's largest and smallest numbers)."""
    if not is_floating(input._type.dtype):
        return stored(e.clone(input), out)
    limits = np.finfo(input._type.numpy_dtype)
    found = e.where(e.isnan(input), 0.0 if nan is None else nan, input)
    found = e.where(e.eq(input, math.inf), float(limits.max) if posinf is None else posinf, found)
    return stored(e.where(e.eq(input, -math.inf), float(limits.min) if neginf is None else neginf, found), out)
