"""Special functions. All are elementwise; integers become floating numbers first.

Values are worked out in double precision, by series that `tools/coefficients` makes, and rounded once. Functions that PyTorch does not
differentiate (Bessel functions of `tpc.special`, Airy's, orthogonal polynomials) have results that do not require grad.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import named, stored, tensor_operand, unary
from tpc.functions.factories import arange
from tpc.functions.reduction import log_softmax as log_softmax_over
from tpc.functions.reduction import softmax as softmax_over
from tpc.functions.reduction import sum
from tpc.functions.shape import unsqueeze
from tpc.ir.ops import special as ops
from tpc.record import record
from tpc.tensor import Tensor

acosh = unary(ops.acosh, "Inverse hyperbolic cosine.")
asinh = unary(ops.asinh, "Inverse hyperbolic sine.")
atanh = unary(ops.atanh, "Inverse hyperbolic tangent.")
exp2 = unary(ops.exp2, "2 to the power x.")
log2 = unary(ops.log2, "Logarithm to base 2.")
log10 = unary(ops.log10, "Logarithm to base 10.")
erfc = unary(ops.erfc, "1 - erf(x), accurate where that is small.")
erfcx = unary(ops.erfcx, "exp(x * x) * erfc(x).")
erfinv = unary(ops.erfinv, "Inverse of erf.")
ndtr = unary(ops.ndtr, "Distribution function of the standard normal distribution.")
ndtri = unary(ops.ndtri, "Inverse of ndtr.")
log_ndtr = unary(ops.log_ndtr, "Logarithm of ndtr, accurate where that is small.")
entr = unary(ops.entr, "-x * log(x), 0 in 0, -inf below.")
logit_of = unary(ops.logit, "log(x / (1 - x)).")
lgamma = unary(ops.lgamma, "Logarithm of the absolute value of the gamma function.")
digamma = unary(ops.digamma, "Derivative of lgamma.")
i0 = unary(ops.i0, "Modified Bessel function of the first kind, order 0.")
i0e = unary(ops.i0e, "exp(-|x|) * i0(x).")
i1 = unary(ops.i1, "Modified Bessel function of the first kind, order 1.")
i1e = unary(ops.i1e, "exp(-|x|) * i1(x).")
airy_ai = unary(ops.airy_ai, "Airy's function Ai.")
bessel_j0 = unary(ops.bessel_j0, "Bessel function of the first kind, order 0.")
bessel_j1 = unary(ops.bessel_j1, "Bessel function of the first kind, order 1.")
bessel_y0 = unary(ops.bessel_y0, "Bessel function of the second kind, order 0.")
bessel_y1 = unary(ops.bessel_y1, "Bessel function of the second kind, order 1.")
spherical_bessel_j0 = unary(ops.spherical_bessel_j0, "sin(x) / x, 1 in 0.")
modified_bessel_i0 = unary(ops.modified_bessel_i0, "Modified Bessel function of the first kind, order 0; `i0` is differentiable.")
modified_bessel_i1 = unary(ops.modified_bessel_i1, "Modified Bessel function of the first kind, order 1; `i1` is differentiable.")
modified_bessel_k0 = unary(ops.modified_bessel_k0, "Modified Bessel function of the second kind, order 0.")
modified_bessel_k1 = unary(ops.modified_bessel_k1, "Modified Bessel function of the second kind, order 1.")
scaled_modified_bessel_k0 = unary(ops.scaled_modified_bessel_k0, "exp(x) * modified_bessel_k0(x).")
scaled_modified_bessel_k1 = unary(ops.scaled_modified_bessel_k1, "exp(x) * modified_bessel_k1(x).")


def _some_tensor(name: str, *operands: Any) -> None:
    if not any(isinstance(x, Tensor) for x in operands):
        kinds = ", ".join(type(x).__name__ for x in operands)
        raise TypeError(f"special_{name}() received an invalid combination of arguments - got ({kinds}): one of them must be a Tensor")


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma. `RuntimeError` for negative n."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    return stored(record(ops.polygamma, (input,), {"n": n}), out)


def polygamma_of(input: Tensor, n: int) -> Tensor:
    """`polygamma` as a method, the tensor first."""
    return polygamma(n, input)


def multigammaln(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p: log(pi) p (p - 1) / 4 + the sum of lgamma(x - j / 2) over j < p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    halves = e.mul(arange(p, dtype=input.dtype if input.is_floating_point() else None), -0.5)
    return stored(e.add(sum(lgamma(e.add(unsqueeze(input, -1), halves)), -1), p * (p - 1) / 4 * math.log(math.pi)), out)


def zeta(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of (other + k) ** -input over k >= 0."""
    _some_tensor("zeta", input, other)
    return stored(record(ops.zeta, (input, other)), out)


def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularised lower incomplete gamma function P(input, other)."""
    return stored(record(ops.gammainc, (input, tensor_operand("special_gammainc", other))), out)


def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularised upper incomplete gamma function Q(input, other) = 1 - P(input, other)."""
    return stored(record(ops.gammaincc, (input, tensor_operand("special_gammaincc", other))), out)


def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * log(y), 0 where x is 0 and y is a number."""
    _some_tensor("xlogy", input, other)
    return stored(record(ops.xlogy, (input, other)), out)


def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * log1p(y), 0 where x is 0 and y is a number."""
    _some_tensor("xlog1py", input, other)
    return stored(record(ops.xlog1py, (input, other)), out)


def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)), of x brought into [eps, 1 - eps] where `eps` is given."""
    if eps is not None:
        inside = e.logical_and(e.ge(input, eps), e.le(input, 1 - eps))
        input = e.where(inside, input, e.clamp(input.detach(), eps, 1 - eps))
    return stored(logit_of(input), out)


# --- orthogonal polynomials ---------------------------------------------------------------------


def _polynomial(family: str, named_after: str) -> Callable[..., Tensor]:
    letter = family.rpartition("_")[2]
    name = f"{family.rpartition('_')[0]}_polynomial_{letter}"

    def function(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
        _some_tensor(name, input, n)
        return stored(record(ops.orthogonal_polynomial, (input, n), {"family": family}), out)

    return named(function, name, f"{named_after} polynomial {letter.capitalize()} of degree n; 0 for negative n. Not differentiable.")


chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w = (
    _polynomial(f"chebyshev_{letter}", "Chebyshev's") for letter in "tuvw"
)
shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v, shifted_chebyshev_polynomial_w = (
    _polynomial(f"shifted_chebyshev_{letter}", "Chebyshev's shifted") for letter in "tuvw"
)
hermite_polynomial_h, hermite_polynomial_he = _polynomial("hermite_h", "Hermite's"), _polynomial("hermite_he", "Hermite's")
laguerre_polynomial_l, legendre_polynomial_p = _polynomial("laguerre_l", "Laguerre's"), _polynomial("legendre_p", "Legendre's")


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along a dimension."""
    return softmax_over(input, one_dim(dim, input._type.rank), dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Logarithm of softmax."""
    return log_softmax_over(input, one_dim(dim, input._type.rank), dtype=dtype)


arccosh, arcsinh, arctanh = acosh, asinh, atanh
igamma, igammac, mvlgamma = gammainc, gammaincc, multigammaln
