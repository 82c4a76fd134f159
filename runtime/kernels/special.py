"""Special functions: the formulas of the modules beside this one, in double precision, rounded once to the operand's dtype."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels import bessel_functions as bessel
from tpc.runtime.kernels import gamma_functions as gamma
from tpc.runtime.kernels import incomplete_gamma, normal_functions
from tpc.runtime.kernels.chebyshev import Formula, Vector, chosen, constant
from tpc.runtime.kernels.orthogonal import value
from tpc.runtime.kernels.registry import Run, kernel, ufunc

for _name, _ufunc in {
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "exp2": np.exp2, "log2": np.log2, "log10": np.log10,
}.items():  # fmt: skip
    ufunc(_name, _ufunc)

PIECE = 8192
"""Elements that are worked on at a time, so that intermediate values stay in the cache."""


def _entr(x: Vector) -> Vector:
    """-x log(x), 0 in 0, -inf below"""
    return chosen((x,), (x > 0, lambda x: -x * np.log(x)), (x == 0, constant(0.0)), (x < 0, constant(-np.inf)))


def _logit(x: Vector) -> Vector:
    """log(x / (1 - x)), by the distance from 1/2 near there"""
    middle = (x > 0.25) & (x < 0.75)
    return chosen((x,), (middle, lambda x: 2 * np.arctanh(2 * x - 1)), (~middle, lambda x: np.log(x) - np.log1p(-x)))


def _times(logarithm: Formula) -> Formula:
    """x log(y), 0 where x is 0 and y is a number"""
    return lambda x, y: chosen((x, y), ((x == 0) & ~np.isnan(y), constant(0.0)), (x == x, lambda x, y: x * logarithm(y)))


FORMULAS: dict[str, Formula] = {
    "erfc": normal_functions.erfc,
    "erfcx": normal_functions.erfcx,
    "erfinv": normal_functions.erfinv,
    "ndtr": normal_functions.ndtr,
    "ndtri": normal_functions.ndtri,
    "log_ndtr": normal_functions.log_ndtr,
    "entr": _entr,
    "logit": _logit,
    "xlogy": _times(np.log),
    "xlog1py": _times(np.log1p),
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "zeta": gamma.zeta,
    "gammainc": incomplete_gamma.gammainc,
    "gammaincc": incomplete_gamma.gammaincc,
    "i0": bessel.i0,
    "i0e": bessel.i0e,
    "i1": bessel.i1,
    "i1e": bessel.i1e,
    "modified_bessel_i0": bessel.i0,
    "modified_bessel_i1": bessel.i1,
    "airy_ai": bessel.airy_ai,
    "spherical_bessel_j0": bessel.spherical_bessel_j0,
    "bessel_j0": partial(bessel.bessel_j, 0),
    "bessel_j1": partial(bessel.bessel_j, 1),
    "bessel_y0": partial(bessel.bessel_y, 0),
    "bessel_y1": partial(bessel.bessel_y, 1),
    "modified_bessel_k0": partial(bessel.bessel_k, 0, False),
    "modified_bessel_k1": partial(bessel.bessel_k, 1, False),
    "scaled_modified_bessel_k0": partial(bessel.bessel_k, 0, True),
    "scaled_modified_bessel_k1": partial(bessel.bessel_k, 1, True),
}


def _run(formula: Formula, op: Op) -> Run:
    """A formula on vectors, as a kernel on arrays that broadcast."""
    dtype = op.results[0].type.numpy_dtype

    def run(*operands: Any) -> Any:
        arrays, out = (operands[:-1], operands[-1]) if len(operands) > len(op.operands) else (operands, None)
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        flat = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
        result = np.empty(flat[0].shape, dtype)
        for start in range(0, result.size, PIECE):
            part = slice(start, start + PIECE)
            result[part] = formula(*[a[part].astype(np.float64) for a in flat])
        if out is None:
            return result.reshape(shape)
        np.copyto(out, result.reshape(shape))
        return out

    def call(*operands: Any, out: Any = None) -> Any:
        return run(*operands) if out is None else run(*operands, out)

    return call


kernel(*FORMULAS)(lambda op: _run(FORMULAS[op.name], op))
kernel("polygamma")(lambda op: _run(partial(gamma.polygamma, cast(int, op.attrs["n"])), op))
kernel("orthogonal_polynomial")(lambda op: _run(partial(value, str(op.attrs["family"])), op))
