"""Elementwise ops on single numbers, in LLVM IR. Loops around them are LLVM's to turn into vectors.

No flag that would let LLVM change a value is ever set: what is computed is what NumPy computes, but for the last bits of
the functions in `math`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from llvmlite import ir

from tpc.runtime.native.intrinsics import intrinsic
from tpc.runtime.native.math import functions

Emit: TypeAlias = Callable[[ir.IRBuilder, str, Sequence[ir.Value]], ir.Value]
"""Computes with operands of the named dtype."""

REGISTERS: dict[str, ir.Type] = {
    "f32": ir.FloatType(), "f64": ir.DoubleType(), "bool": ir.IntType(1),
    **{f"{sign}{bits}": ir.IntType(bits) for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""What a number is while it is computed with; in memory a bool is a byte."""

FLOATS = ("f32", "f64")


def stored(dtype: str) -> ir.Type:
    """The type of a number in memory."""
    return ir.IntType(8) if dtype == "bool" else REGISTERS[dtype]


def constant(dtype: str, value: Any) -> ir.Constant:
    """A number as an immediate operand."""
    return ir.Constant(REGISTERS[dtype], float(value) if dtype in FLOATS else int(value))


def _kind(dtype: str) -> str:
    return "bool" if dtype == "bool" else dtype[0]


_RULES: dict[tuple[str, str], Emit] = {}


def _rule(kinds: str, *names: str) -> Callable[[Emit], Emit]:
    def enter(emit: Emit) -> Emit:
        for name in names:
            for kind in kinds.split():
                _RULES[name, kind] = emit
        return emit

    return enter


def _instruction(kinds: str, name: str, method: str) -> None:
    _rule(kinds, name)(lambda b, dtype, v: getattr(b, method)(*v))


for _kinds, _table in {
    "f": {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "neg": "fneg"},
    "i u": {"add": "add", "sub": "sub", "mul": "mul", "neg": "neg", "bitwise_and": "and_", "bitwise_or": "or_",
            "bitwise_xor": "xor", "bitwise_not": "not_"},
    "bool": {"add": "or_", "mul": "and_", "bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor", "bitwise_not": "not_",
             "logical_and": "and_", "logical_or": "or_", "logical_xor": "xor", "logical_not": "not_",
             "maximum": "or_", "minimum": "and_", "ne": "xor"},
}.items():  # fmt: skip
    for _name, _method in _table.items():
        _instruction(_kinds, _name, _method)


@_rule("bool", "eq")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.not_(b.xor(*v))


def _comparison(name: str, sign: str) -> None:
    _rule("f", name)(lambda b, dtype, v: (b.fcmp_unordered if name == "ne" else b.fcmp_ordered)(sign, *v))
    _rule("i", name)(lambda b, dtype, v: b.icmp_signed(sign, *v))
    _rule("u", name)(lambda b, dtype, v: b.icmp_unsigned(sign, *v))
    if name not in ("eq", "ne"):
        _rule("bool", name)(lambda b, dtype, v: b.icmp_unsigned(sign, *v))


for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    _comparison(_name, _sign)


def _is_nan(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return b.fcmp_unordered("uno", x, x)


@_rule("f", "maximum", "clamp_min")
def _maximum(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.select(b.or_(b.fcmp_ordered(">=", *v), _is_nan(b, v[0])), *v)


@_rule("f", "minimum", "clamp_max")
def _minimum(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.select(b.or_(b.fcmp_ordered("<=", *v), _is_nan(b, v[0])), *v)


def _extremum(name: str, other: str, sign: str) -> None:
    _rule("i", name, other)(lambda b, dtype, v: b.select(b.icmp_signed(sign, *v), *v))
    _rule("u", name, other)(lambda b, dtype, v: b.select(b.icmp_unsigned(sign, *v), *v))


_extremum("maximum", "clamp_min", ">=")
_extremum("minimum", "clamp_max", "<=")


@_rule("f i u", "clamp")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    x, low, high = v
    return apply(b, "minimum", dtype, (apply(b, "maximum", dtype, (x, low)), high))


@_rule("f i u", "relu")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return apply(b, "maximum", dtype, (v[0], constant(dtype, 0)))


@_rule("f i u bool", "square")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return apply(b, "mul", dtype, (v[0], v[0]))


@_rule("f", "abs")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return intrinsic(b, "llvm.fabs", v)


@_rule("i", "abs")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.select(b.icmp_signed("<", v[0], constant(dtype, 0)), b.neg(v[0]), v[0])


@_rule("f", "sqrt")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return intrinsic(b, "llvm.sqrt", v)


@_rule("f", "reciprocal")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.fdiv(constant(dtype, 1), v[0])


@_rule("f", "rsqrt")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.fdiv(constant(dtype, 1), intrinsic(b, "llvm.sqrt", v))


def _rounding(name: str, function: str) -> None:
    _rule("f", name)(lambda b, dtype, v: intrinsic(b, function, v))


for _name in ("floor", "ceil", "trunc"):
    _rounding(_name, f"llvm.{_name}")
_rounding("round", "llvm.rint")


@_rule("i u bool", "floor", "ceil", "trunc", "round")
@_rule("f i u bool", "copy", "conj")
@_rule("u bool", "abs")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return v[0]


@_rule("f i", "sign")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    zero = constant(dtype, 0)
    above, below = (apply(b, name, dtype, (v[0], zero)) for name in ("gt", "lt"))
    return b.select(above, constant(dtype, 1), b.select(below, constant(dtype, -1), zero))


@_rule("f", "isnan")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return _is_nan(b, v[0])


@_rule("f", "isinf")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.fcmp_ordered("==", intrinsic(b, "llvm.fabs", v), constant(dtype, float("inf")))


@_rule("f", "isfinite")
def _(b: ir.IRBuilder, dtype: str, v: Sequence[ir.Value]) -> ir.Value:
    return b.fcmp_ordered("<", intrinsic(b, "llvm.fabs", v), constant(dtype, float("inf")))


def _logical(name: str) -> None:
    _rule("f i u", name)(lambda b, dtype, v: apply(b, name, "bool", [convert(b, x, dtype, "bool") for x in v]))


for _name in ("logical_and", "logical_or", "logical_xor", "logical_not"):
    _logical(_name)


def supports(name: str, dtype: str) -> bool:
    """Whether an op can be computed on operands of this dtype; `cast` and `where` are asked about elsewhere."""
    if dtype not in REGISTERS:
        return False
    return (name, _kind(dtype)) in _RULES or (dtype in FLOATS and functions.has_function(name, dtype))


def apply(b: ir.IRBuilder, name: str, dtype: str, operands: Sequence[ir.Value]) -> ir.Value:
    """The op on operands of one dtype. Comparisons and the like give a bit."""
    rule = _RULES.get((name, _kind(dtype)))
    if rule is not None:
        return rule(b, dtype, operands)
    return functions.emit(b, name, operands, dtype)


def converts(source: str, target: str) -> bool:
    """Whether `convert` knows both dtypes. What is out of range for small integers differs between processors, so NumPy is asked."""
    if source not in REGISTERS or target not in REGISTERS:
        return False
    return source not in FLOATS or target in ("f32", "f64", "bool", "i32", "i64")


def convert(b: ir.IRBuilder, value: ir.Value, source: str, target: str) -> ir.Value:
    """A number of one dtype in another, as NumPy casts."""
    type = REGISTERS[target]
    if source == target:
        return value
    if target == "bool":
        zero = constant(source, 0)
        return b.fcmp_unordered("!=", value, zero) if source in FLOATS else b.icmp_signed("!=", value, zero)
    if source in FLOATS:
        if target in FLOATS:
            return b.fpext(value, type) if target == "f64" else b.fptrunc(value, type)
        return b.fptosi(value, type)
    if target in FLOATS:
        return b.sitofp(value, type) if source[0] == "i" else b.uitofp(value, type)
    have, want = REGISTERS[source].width, type.width
    if have == want:
        return value
    if have > want:
        return b.trunc(value, type)
    return b.sext(value, type) if source[0] == "i" else b.zext(value, type)
