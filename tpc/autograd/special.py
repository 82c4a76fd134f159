"""Derivatives of special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from tpc.autograd.rules import derivative, not_differentiable
from tpc.functions import elementwise as f
from tpc.functions import special as s
from tpc.functions.elementwise import conj
from tpc.functions.factories import filled
from tpc.functions.special import zeta
from tpc.ir.ops import special as ops
from tpc.ir.types import is_complex, tensor_type
from tpc.tensor import Tensor


def _gauss(x: Tensor, factor: float) -> Tensor:
    return f.exp(f.mul(f.square(x), factor))


def _acosh(g: Tensor, x: Tensor) -> Tensor:
    if is_complex(x._type.dtype):  # the root of x*x - 1 with the sign that belongs to acosh
        return f.mul(g, conj(f.mul(f.rsqrt(f.add(x, 1)), f.rsqrt(f.sub(x, 1)))))
    return f.mul(g, f.rsqrt(f.sub(f.square(x), 1)))


derivative(ops.asinh, x=lambda g, x: f.mul(g, conj(f.rsqrt(f.add(f.square(x), 1)))))
derivative(ops.acosh, x=_acosh)
derivative(ops.atanh, x=lambda g, x: f.div(g, conj(f.sub(1, f.square(x)))))
derivative(ops.exp2, x=lambda g, y: f.mul(g, conj(f.mul(y, math.log(2)))))
derivative(ops.log2, x=lambda g, x: f.div(g, conj(f.mul(x, math.log(2)))))
derivative(ops.log10, x=lambda g, x: f.div(g, conj(f.mul(x, math.log(10)))))

ROOT_PI = math.sqrt(math.pi)

derivative(ops.erfc, x=lambda g, x: f.mul(f.mul(_gauss(x, -1.0), -2 / ROOT_PI), g))
derivative(ops.erfcx, x=lambda g, x, y: f.mul(f.sub(f.mul(f.mul(x, y), 2), 2 / ROOT_PI), g))
derivative(ops.erfinv, x=lambda g, y: f.mul(f.mul(_gauss(y, 1.0), ROOT_PI / 2), g))
derivative(ops.ndtr, x=lambda g, x: f.mul(f.mul(_gauss(x, -0.5), 1 / math.sqrt(2 * math.pi)), g))
derivative(ops.ndtri, x=lambda g, y: f.mul(f.mul(_gauss(y, 0.5), math.sqrt(2 * math.pi)), g))
# the density over the distribution function
derivative(ops.log_ndtr, x=lambda g, x: f.mul(f.div(g, s.erfcx(f.mul(x, -math.sqrt(0.5)))), math.sqrt(2 / math.pi)))
derivative(ops.entr, x=lambda g, x: f.mul(g, f.neg(f.add(f.log(x), 1))))

derivative(ops.lgamma, x=lambda g, x: f.mul(g, s.digamma(x)))
derivative(ops.digamma, x=lambda g, x: f.mul(g, s.polygamma(1, x)))
derivative(ops.polygamma, x=lambda g, x, n: f.mul(g, s.polygamma(n + 1, x)))


def _over(y: Tensor, x: Tensor) -> Tensor:
    """y / x for an odd function of slope 1/2 in 0."""
    zero = f.eq(x, 0)
    return f.where(zero, 0.5, f.div(y, f.where(zero, 1, x)))


derivative(ops.i0, x=lambda g, x: f.mul(g, s.i1(x)))
derivative(ops.i1, x=lambda g, x, y: f.mul(g, f.sub(s.i0(x), _over(y, x))))
derivative(ops.i0e, x=lambda g, x, y: f.mul(g, f.sub(s.i1e(x), f.mul(f.sign(x), y))))
derivative(ops.i1e, x=lambda g, x, y: f.mul(g, f.sub(f.sub(s.i0e(x), f.mul(f.sign(x), y)), _over(y, x))))


def _logit(g: Tensor, x: Tensor) -> Tensor:
    outside = f.logical_or(f.lt(x, 0), f.gt(x, 1))
    return f.where(outside, math.nan, f.div(g, f.mul(x, f.sub(1, x))))


def _weight(logarithm: Callable[[Tensor], Tensor], border: float) -> Callable[..., Tensor]:
    """log(y), 0 where x is 0 and that is no number."""

    def formula(g: Tensor, x: Any, other: Any) -> Tensor:
        y = other if isinstance(other, Tensor) else filled(tensor_type(g._type.dtype, ()), other)
        nothing = f.logical_and(f.eq(x, 0), f.le(y, border))
        return f.where(nothing, 0, f.mul(g, logarithm(f.where(nothing, 1, y))))

    return formula


derivative(ops.logit, x=_logit)
derivative(ops.xlogy, x=_weight(f.log, 0.0), other=lambda g, x, other: f.div(f.mul(g, x), other))
derivative(ops.xlog1py, x=_weight(f.log1p, -1.0), other=lambda g, x, other: f.div(f.mul(g, x), f.add(other, 1)))


def _unknown(what: str) -> Callable[..., Any]:
    def formula(g: Tensor) -> NoReturn:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return formula


def _density(g: Tensor, a: Tensor, x: Tensor) -> Tensor:
    """x**(a - 1) exp(-x) / gamma(a)"""
    return f.mul(g, f.exp(f.sub(f.sub(f.mul(f.sub(a, 1), f.log(x)), x), s.lgamma(a))))


def _zeta(g: Tensor, s: Any, q: Any) -> Tensor:
    return f.mul(f.neg(g), f.mul(zeta(s + 1, q), s))


derivative(ops.zeta, s=_unknown("zeta"), q=_zeta)
derivative(ops.gammainc, a=_unknown("igamma: input"), x=_density)
derivative(ops.gammaincc, a=_unknown("igammac: input"), x=lambda g, a, x: f.neg(_density(g, a, x)))

not_differentiable(
    ops.airy_ai, ops.bessel_j0, ops.bessel_j1, ops.bessel_y0, ops.bessel_y1, ops.spherical_bessel_j0,
    ops.modified_bessel_i0, ops.modified_bessel_i1, ops.modified_bessel_k0, ops.modified_bessel_k1,
    ops.scaled_modified_bessel_k0, ops.scaled_modified_bessel_k1,
    ops.orthogonal_polynomial,
)  # fmt: skip
