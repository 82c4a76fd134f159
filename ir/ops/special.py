"""Special functions of mathematical physics and statistics, elementwise."""

from __future__ import annotations

from tpc.ir.errors import DtypeError, TypeRuleError
from tpc.ir.opdef import Infer, OpDef, define
from tpc.ir.ops.rules import Attrs, Types, broadcast, elementwise, integer, listed, require, same_dtype
from tpc.ir.types import TensorType, tensor_type


def _rule(name: str, half: bool) -> Infer:
    rule = elementwise(name, "f", "floating dtypes")

    def infer(types: Types, attrs: Attrs) -> TensorType | tuple[TensorType, ...]:
        if not half and types[0].dtype == "f16":
            raise DtypeError(f"\"{name}\" not implemented for 'Half' {listed(name, types)}")
        return rule(types, attrs)

    return infer


def _unary(name: str, cost: float, half: bool = True) -> OpDef:
    return define(OpDef(name, ("x",), _rule(name, half), promotion="float", elementwise=True, cost=cost))


def _inexact(name: str, cost: float) -> OpDef:
    """A function of floating or complex numbers."""
    rule = elementwise(name, "fc", "floating and complex dtypes")
    return define(OpDef(name, ("x",), rule, promotion="float", elementwise=True, cost=cost))


asinh, acosh, atanh = _inexact("asinh", 10.0), _inexact("acosh", 10.0), _inexact("atanh", 10.0)
exp2, log2, log10 = _inexact("exp2", 6.0), _inexact("log2", 6.0), _inexact("log10", 6.0)

erfc, erfinv, ndtr = _unary("erfc", 150.0), _unary("erfinv", 150.0), _unary("ndtr", 150.0)
erfcx, ndtri, log_ndtr = _unary("erfcx", 150.0, half=False), _unary("ndtri", 150.0, half=False), _unary("log_ndtr", 200.0, half=False)
entr, logit = _unary("entr", 10.0), _unary("logit", 15.0)
lgamma, digamma = _unary("lgamma", 150.0), _unary("digamma", 150.0)
i0, i0e, i1, i1e = (_unary(name, 150.0) for name in ("i0", "i0e", "i1", "i1e"))
modified_bessel_i0, modified_bessel_i1 = (_unary(f"modified_bessel_i{order}", 150.0, half=False) for order in (0, 1))

airy_ai, spherical_bessel_j0 = _unary("airy_ai", 150.0, half=False), _unary("spherical_bessel_j0", 12.0, half=False)
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = (_unary(f"bessel_{kind}", 200.0, half=False) for kind in ("j0", "j1", "y0", "y1"))
modified_bessel_k0, modified_bessel_k1, scaled_modified_bessel_k0, scaled_modified_bessel_k1 = (
    _unary(f"{scaled}modified_bessel_k{order}", 250.0, half=False) for scaled in ("", "scaled_") for order in (0, 1)
)


def _polygamma(types: Types, attrs: Attrs) -> TensorType:
    require("polygamma", types, "f", "floating dtypes")
    if integer(attrs, "n") < 0:
        raise TypeRuleError("polygamma(n, x) does not support negative n.")
    return types[0]


polygamma = define(OpDef("polygamma", ("x",), _polygamma, ("n",), promotion="float", elementwise=True, cost=300.0))
xlogy, xlog1py = (
    define(OpDef(name, ("x", "other"), _rule(name, True), promotion="float", elementwise=True, cost=12.0)) for name in ("xlogy", "xlog1py")
)
zeta = define(OpDef("zeta", ("s", "q"), _rule("zeta", False), promotion="float", elementwise=True, cost=300.0))
gammainc, gammaincc = (
    define(OpDef(name, ("a", "x"), _rule(name, True), promotion="same", elementwise=True, cost=800.0)) for name in ("gammainc", "gammaincc")
)

FAMILIES = (
    "chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h", "hermite_he", "laguerre_l", "legendre_p",
    "shifted_chebyshev_t", "shifted_chebyshev_u", "shifted_chebyshev_v", "shifted_chebyshev_w",
)  # fmt: skip


def _orthogonal(types: Types, attrs: Attrs) -> TensorType:
    if attrs["family"] not in FAMILIES:
        raise TypeRuleError(f"attribute family must be one of {', '.join(FAMILIES)}, not {attrs['family']!r}")
    dtype = same_dtype("orthogonal_polynomial", types)
    if dtype not in ("f32", "f64"):
        raise DtypeError(f'"{attrs["family"]}" not implemented for {dtype} {listed("orthogonal_polynomial", types)}')
    return tensor_type(dtype, broadcast("orthogonal_polynomial", types))


orthogonal_polynomial = define(
    OpDef("orthogonal_polynomial", ("x", "n"), _orthogonal, ("family",), promotion="float", elementwise=True, cost=50.0)
)
