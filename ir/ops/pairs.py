"""Complex numbers as pairs of real ones, and back."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, broadcast, listed, require, same_dtype
from tpc.ir.types import TensorType, complex_dtype, real_dtype, tensor_type


def _complex(types: Types, attrs: Attrs) -> TensorType:
    require("complex", types, "f", "floating dtypes")
    return tensor_type(complex_dtype(same_dtype("complex", types)), broadcast("complex", types))


def _as_real(types: Types, attrs: Attrs) -> TensorType:
    require("view_as_real", types, "c", "complex dtypes")
    return tensor_type(real_dtype(types[0].dtype), (*types[0].shape, 2))


def _as_complex(types: Types, attrs: Attrs) -> TensorType:
    (type,) = types
    if type.dtype not in ("f32", "f64") or type.shape[-1:] != (2,):
        raise TypeRuleError(f"view_as_complex takes f32 or f64 with a last dimension of size 2 {listed('view_as_complex', types)}")
    return tensor_type(complex_dtype(type.dtype), type.shape[:-1])


complex_ = define(OpDef("complex", ("real", "imag"), _complex, promotion="same", elementwise=True))
# Views for the user, whose tensors read and write through them; copies in a program, where elements have one dtype.
as_real = define(OpDef("view_as_real", ("x",), _as_real))
as_complex = define(OpDef("view_as_complex", ("x",), _as_complex))
