"""Linear algebra."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, broadcast, listed, same_dtype
from tpc.ir.types import TensorType, tensor_type


def _matmul(types: Types, attrs: Attrs) -> TensorType:
    a, b = types
    dtype = same_dtype("matmul", types)
    if a.rank < 2 or b.rank < 2:
        raise TypeRuleError(f"both arguments to matmul need to be at least 2D {listed('matmul', types)}")
    if a.shape[-1] != b.shape[-2]:
        raise TypeRuleError(
            f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, a.shape))} and {'x'.join(map(str, b.shape))}) "
            f"{listed('matmul', types)}"
        )
    batch = broadcast("matmul", (tensor_type(dtype, a.shape[:-2]), tensor_type(dtype, b.shape[:-2])))
    return tensor_type(dtype, (*batch, a.shape[-2], b.shape[-1]))


def _matmul_flops(types: Types, attrs: Attrs) -> float:
    return 2.0 * _matmul(types, attrs).numel * types[0].shape[-1]


matmul = define(OpDef("matmul", ("a", "b"), _matmul, flops=_matmul_flops))
