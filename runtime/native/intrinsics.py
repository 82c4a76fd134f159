"""LLVM's intrinsics, declared when they are first called in a module."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir


def intrinsic(builder: ir.IRBuilder, name: str, operands: Sequence[ir.Value]) -> ir.Value:
    """A call of an intrinsic whose operands and result have one type, such as ``llvm.sqrt``: a number or a vector of them."""
    type = operands[0].type
    full = f"{name}.{_suffix(type)}"
    function = builder.module.globals.get(full)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(type, [type] * len(operands)), full)
    return builder.call(function, operands)


def _suffix(type: ir.Type) -> str:
    if isinstance(type, ir.VectorType):
        return f"v{type.count}{_suffix(type.element)}"
    return {"float": "f32", "double": "f64"}.get(str(type), str(type))
