"""Derivatives of elementwise ops: PyTorch's formulas, kinks, ties and NaN included.

A Python scalar stands where the user gave one, so operands that may be one go through functions that take both.
"""

from __future__ import annotations

import math
from typing import Any

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions import elementwise as f
from tpc.functions.derived import sgn
from tpc.functions.factories import zeros_of
from tpc.ir.ops import elementwise as ops
from tpc.ir.ops import pairs
from tpc.ir.types import TensorType, is_complex
from tpc.record import cast, record
from tpc.tensor import Tensor


def _conj(x: Any) -> Any:
    if isinstance(x, Tensor):
        return f.conj(x)
    return x.conjugate() if isinstance(x, complex) else x


def _nothing(g: Tensor) -> Tensor:
    """Zero: the op is constant between its steps."""
    return zeros_of(g._type)


def _kept(g: Tensor, mask: Tensor) -> Tensor:
    """`g` where the mask holds, else 0 (also where `g` is infinite or NaN)."""
    return f.where(mask, g, 0)


# --- one operand --------------------------------------------------------------------------------

derivative(ops.neg, x=lambda g: f.neg(g))
derivative(ops.exp, x=lambda g, y: f.mul(g, _conj(y)))
derivative(ops.log, x=lambda g, x: f.div(g, _conj(x)))
derivative(ops.log1p, x=lambda g, x: f.div(g, _conj(f.add(x, 1))))
derivative(ops.expm1, x=lambda g, y: f.mul(g, _conj(f.add(y, 1))))
derivative(ops.sqrt, x=lambda g, y: f.div(g, _conj(f.mul(y, 2))))
derivative(ops.rsqrt, x=lambda g, y: f.mul(f.mul(g, -0.5), _conj(f.pow(y, 3))))
derivative(ops.reciprocal, x=lambda g, y: f.neg(f.mul(g, _conj(f.mul(y, y)))))
derivative(ops.sin, x=lambda g, x: f.mul(g, _conj(f.cos(x))))
derivative(ops.cos, x=lambda g, x: f.neg(f.mul(g, _conj(f.sin(x)))))
derivative(ops.tan, x=lambda g, y: f.mul(g, _conj(f.add(f.mul(y, y), 1))))
derivative(ops.tanh, x=lambda g, y: f.mul(g, _conj(f.sub(1, f.mul(y, y)))))
derivative(ops.asin, x=lambda g, x: f.mul(g, _conj(f.rsqrt(f.sub(1, f.mul(x, x))))))
derivative(ops.acos, x=lambda g, x: f.neg(f.mul(g, _conj(f.rsqrt(f.sub(1, f.mul(x, x)))))))
derivative(ops.atan, x=lambda g, x: f.div(g, _conj(f.add(f.mul(x, x), 1))))
derivative(ops.sinh, x=lambda g, x: f.mul(g, _conj(f.cosh(x))))
derivative(ops.cosh, x=lambda g, x: f.mul(g, _conj(f.sinh(x))))
derivative(ops.sigmoid, x=lambda g, y: f.mul(g, _conj(f.mul(f.sub(1, y), y))))
derivative(ops.erf, x=lambda g, x: f.mul(f.mul(f.exp(f.neg(f.mul(x, x))), 2 / math.sqrt(math.pi)), g))
derivative(ops.square, x=lambda g, x: f.mul(g, _conj(f.mul(x, 2))))
derivative(ops.abs_, x=lambda g, x: f.mul(g, sgn(x)))
derivative(ops.relu, x=lambda g, y: f.where(f.le(y, 0), 0, g))
derivative(ops.sign, x=_nothing)
derivative(ops.floor, x=_nothing)
derivative(ops.ceil, x=_nothing)
derivative(ops.trunc, x=_nothing)
derivative(ops.round_, x=_nothing)
derivative(ops.conj, x=lambda g: _conj(g))
derivative(ops.real, x=lambda g, x_type: cast(g, x_type.dtype))
derivative(ops.imag, x=lambda g: record(pairs.complex_, (0.0, g)))
derivative(ops.copy, x=lambda g: g)


def _cast(g: Tensor, x_type: TensorType) -> Tensor:
    if is_complex(g._type.dtype) and not is_complex(x_type.dtype):
        g = f.real(g)
    return cast(g, x_type.dtype)


derivative(ops.cast, x=_cast)

not_differentiable(
    ops.isnan, ops.isinf, ops.isfinite, ops.logical_not, ops.logical_and, ops.logical_or, ops.logical_xor,
    ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge,
    ops.bitwise_not, ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor, ops.left_shift, ops.right_shift,
)  # fmt: skip

# --- two operands -------------------------------------------------------------------------------

derivative(ops.add, a=lambda g: g, b=lambda g: g)
derivative(ops.sub, a=lambda g: g, b=lambda g: f.neg(g))
derivative(ops.mul, a=lambda g, b: f.mul(g, _conj(b)), b=lambda g, a: f.mul(g, _conj(a)))
derivative(
    ops.div,
    a=lambda g, b: f.div(g, _conj(b)),
    b=lambda g, a, b: f.mul(f.neg(g), _conj(f.div(f.div(a, b), b))),
)
derivative(ops.floor_divide, a=_nothing, b=_nothing)
derivative(ops.remainder, a=lambda g: g, b=lambda g, a, b: f.mul(f.neg(g), f.div(a, b, rounding_mode="floor")))
derivative(ops.fmod, a=lambda g: g, b=lambda g, a, b: f.mul(f.neg(g), f.div(a, b, rounding_mode="trunc")))
derivative(
    ops.atan2,
    a=lambda g, a, b: f.mul(g, _over_norm(b, a, b)),
    b=lambda g, a, b: f.mul(g, f.neg(_over_norm(a, a, b))),
)


def _over_norm(x: Any, a: Any, b: Any) -> Tensor:
    """x / (a*a + b*b), 0 at the origin."""
    norm = f.add(f.mul(a, a), f.mul(b, b))
    zero = f.eq(norm, 0)
    return f.where(zero, 0, f.div(x, f.where(zero, 1, norm)))


def _pow_base(g: Tensor, a: Tensor, b: Any) -> Tensor:
    if not isinstance(b, Tensor):
        if b == 0:
            return _nothing(g)
        if b == 2:
            return f.mul(g, _conj(f.mul(a, 2)))
        return f.mul(g, _conj(f.mul(f.pow(a, b - 1), b)))
    return f.where(f.eq(b, 0), 0, f.mul(g, _conj(f.mul(f.pow(a, f.sub(b, 1)), b))))


def _pow_exponent(g: Tensor, a: Any, b: Tensor, y: Tensor) -> Tensor:
    """y * log(a), 0 where 0 is raised to a power that is not negative."""
    if not isinstance(a, Tensor):
        if a == 0:
            flat = f.ge(f.real(b), 0)
            return f.where(flat, 0, f.mul(g, _conj(f.mul(y, -math.inf))))
        if not isinstance(a, complex) and a > 0:
            return f.mul(g, _conj(f.mul(y, math.log(a))))
        a = f.as_operand(a)
        return f.mul(g, _conj(f.mul(y, f.log(cast(a, b._type.dtype)))))
    flat = f.logical_and(f.eq(a, 0), f.ge(f.real(b), 0))
    return f.where(flat, 0, f.mul(g, _conj(f.mul(y, f.log(a)))))


derivative(ops.pow_, a=_pow_base, b=_pow_exponent)


def _larger(g: Tensor, x: Any, other: Any, loses: Any) -> Tensor:
    """All of `g` where `x` was chosen, half of it in a tie."""
    shared = f.where(f.eq(x, other), f.mul(g, 0.5), g)
    return f.where(loses(x, other), 0, shared)


derivative(ops.maximum, a=lambda g, a, b: _larger(g, a, b, f.lt), b=lambda g, a, b: _larger(g, b, a, f.lt))
derivative(ops.minimum, a=lambda g, a, b: _larger(g, a, b, f.gt), b=lambda g, a, b: _larger(g, b, a, f.gt))

# --- selection ----------------------------------------------------------------------------------

derivative(ops.where, a=lambda g, cond: f.where(cond, g, 0), b=lambda g, cond: f.where(cond, 0, g))
derivative(
    ops.clamp,
    x=lambda g, x, lo, hi: _kept(g, f.logical_and(f.ge(x, lo), f.le(x, hi))),
    lo=lambda g, x, lo, hi: _kept(g, f.logical_and(_lt(lo, hi), f.lt(x, lo))),
    hi=lambda g, x, lo, hi: _kept(g, f.logical_or(f.gt(x, hi), _lt(hi, lo))),
)
derivative(ops.clamp_min, x=lambda g, x, lo: _kept(g, f.ge(x, lo)), lo=lambda g, x, lo: _kept(g, f.lt(x, lo)))
derivative(ops.clamp_max, x=lambda g, x, hi: _kept(g, f.le(x, hi)), hi=lambda g, x, hi: _kept(g, f.gt(x, hi)))


def _lt(a: Any, b: Any) -> Tensor:
    """a < b for tensors and numbers in any order."""
    if isinstance(a, Tensor):
        return f.lt(a, b)
    return f.gt(b, a)
