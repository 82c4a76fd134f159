"""Discrete Fourier transforms along one axis: complex to complex, real to half a spectrum, half a spectrum to real.

`norm` says by what a sum of n terms is divided: nothing ("none"), the square root of n ("sqrt") or n ("n").
"""

from __future__ import annotations

import math

from tpc.ir.errors import DtypeError, TypeRuleError
from tpc.ir.opdef import Infer, OpDef, define
from tpc.ir.ops.rules import Attrs, Types, axis, boolean, integer, listed, require
from tpc.ir.types import MAX_ELEMENTS, TensorType, complex_dtype, real_dtype, tensor_type

NORMS = ("none", "sqrt", "n")


def _axis(op: str, types: Types, attrs: Attrs, kinds: str, what: str) -> int:
    """The axis that is transformed; refuses other dtypes, scalars, empty axes and unknown norms."""
    (type,) = types
    require(op, types, kinds, what)
    if type.dtype == "f16":
        raise DtypeError(f"Unsupported dtype Half {listed(op, types)}")
    if not type.rank:
        raise TypeRuleError(f"a scalar has no axis to transform {listed(op, types)}")
    if attrs["norm"] not in NORMS:
        raise TypeRuleError(f"attribute norm must be one of {', '.join(NORMS)}, not {attrs['norm']!r}")
    dim = axis(op, attrs, type.rank)
    if type.shape[dim] == 0:
        raise TypeRuleError(f"Invalid number of data points (0) specified {listed(op, types)}")
    return dim


def _resized(type: TensorType, dim: int, size: int, dtype: str) -> TensorType:
    return tensor_type(dtype, (*type.shape[:dim], size, *type.shape[dim + 1 :]))


def _c2c(types: Types, attrs: Attrs) -> TensorType:
    _axis("fft_c2c", types, attrs, "c", "complex dtypes")
    boolean(attrs, "inverse")
    return types[0]


def _r2c(types: Types, attrs: Attrs) -> TensorType:
    dim = _axis("fft_r2c", types, attrs, "f", "floating dtypes")
    return _resized(types[0], dim, types[0].shape[dim] // 2 + 1, complex_dtype(types[0].dtype))


def _c2r(types: Types, attrs: Attrs) -> TensorType:
    dim, size = _axis("fft_c2r", types, attrs, "c", "complex dtypes"), integer(attrs, "size")
    if not 0 < size <= MAX_ELEMENTS:
        raise TypeRuleError(f"Invalid number of data points ({size}) specified {listed('fft_c2r', types)}")
    if types[0].shape[dim] != size // 2 + 1:
        raise TypeRuleError(f"the spectrum of {size} real numbers has {size // 2 + 1} elements, not {types[0].shape[dim]} (fft_c2r)")
    return _resized(types[0], dim, size, real_dtype(types[0].dtype))


def _transform(name: str, infer: Infer, *attrs: str) -> OpDef:
    def flops(types: Types, attrs: Attrs) -> float:
        """5 n log2(n) for each transform of n complex numbers, half of it for real ones."""
        (type,) = types
        n = type.shape[attrs["dim"]]  # type: ignore[index]
        return (5.0 if name == "fft_c2c" else 2.5) * type.numel * max(math.log2(max(n, 1)), 1.0)

    return define(OpDef(name, ("x",), infer, ("dim", *attrs, "norm"), flops=flops))


c2c = _transform("fft_c2c", _c2c, "inverse")
r2c = _transform("fft_r2c", _r2c)
c2r = _transform("fft_c2r", _c2r, "size")
