"""Identities that IEEE 754 grants: both sides have the same bits for every operand, infinities, NaN and -0.0 included.

A rule looks at an op and gives a value that equals its result, or None. `IDENTITIES` lists the rules of each operator. What is
not here is not exact: ``x + 0.0`` turns -0.0 into 0.0, ``x * 0`` and ``x - x`` are NaN for infinities, sums may not be regrouped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from tpc.ir.builder import Builder
from tpc.ir.opdef import AttrValue
from tpc.ir.program import Op, Value
from tpc.ir.signature import result_types
from tpc.ir.types import category


class Context(NamedTuple):
    """What a rule may use: a builder for new ops, and how many ops read each operand."""

    builder: Builder
    readers: Sequence[int]
    ordered: bool
    """Whether a reader of the result depends on the order of its elements in memory, as sums and products do in their last bits."""

    def again(self, op: Op, *operands: Value, **changed: AttrValue) -> Value:
        """The result of the same op on other operands, some attributes changed."""
        attrs = {**op.attrs, **changed}
        types = result_types(op.defn, [v.type for v in operands], attrs)
        return self.builder.append(Op(op.defn, operands, attrs, types, op.scopes, op.loc)).result


Rule: TypeAlias = Callable[[Context, Op], Value | None]


def number(value: Value) -> complex | None:
    """The number that a 0-d constant holds."""
    if value.op is None or value.op.name != "constant":
        return None
    return cast(complex, value.op.attrs["value"])


def is_number(value: Value, wanted: float) -> bool:
    """Whether a value is this real constant; 0.0 and -0.0 are told apart."""
    found = number(value)
    if found is None or isinstance(found, complex):
        return False
    return found == wanted and math.copysign(1.0, float(found)) == math.copysign(1.0, wanted)


def made_by(value: Value, name: str) -> Op | None:
    """The op that made a value, if it is called so."""
    return value.op if value.op is not None and value.op.name == name else None


# ----- numbers that change nothing


def neutral(on: str, floating: float | None, integer: float | None, bool_: float | None = None) -> Rule:
    """``op(x, c) -> x``, for a constant that depends on the kind of number. Not for complex: inf * (1+0j) is not inf."""
    wanted = {0: bool_, 1: integer, 2: floating, 3: None}

    def rule(context: Context, op: Op) -> Value | None:
        x, c = op.operands
        constant = wanted[category(op.result.type.dtype)]
        if constant is None:
            return None
        if is_number(c, constant):
            return x
        return c if on == "either" and is_number(x, constant) else None

    return rule


def equal_operands(context: Context, op: Op) -> Value | None:
    """``op(x, x) -> x``"""
    return op.operands[0] if op.operands[0] is op.operands[-1] else None


# ----- signs


def inverse(context: Context, op: Op) -> Value | None:
    """``op(op(x)) -> x``"""
    inner = made_by(op.operands[0], op.name)
    return inner.operands[0] if inner is not None else None


def idempotent(context: Context, op: Op) -> Value | None:
    """``op(op(x)) -> op(x)``"""
    return op.operands[0] if made_by(op.operands[0], op.name) is not None else None


def ignores_sign(context: Context, op: Op) -> Value | None:
    """``op(-x) -> op(x)``; not for unsigned integers, whose negative is another number and no less positive"""
    inner = made_by(op.operands[0], "neg")
    return context.again(op, inner.operands[0]) if inner is not None and op.result.type.dtype[0] != "u" else None


def add_negated(context: Context, op: Op) -> Value | None:
    """``x + (-y) -> x - y``, ``(-x) + y -> y - x``"""
    x, y = op.operands
    if (negated := made_by(y, "neg")) is not None:
        return context.builder.emit1("sub", x, negated.operands[0])
    if (negated := made_by(x, "neg")) is not None:
        return context.builder.emit1("sub", y, negated.operands[0])
    return None


def subtract_negated(context: Context, op: Op) -> Value | None:
    """``x - (-y) -> x + y``, ``-0.0 - x -> -x``"""
    x, y = op.operands
    if (negated := made_by(y, "neg")) is not None:
        return context.builder.emit1("add", x, negated.operands[0])
    zero = {1: 0, 2: -0.0}.get(category(op.result.type.dtype))
    return context.builder.emit1("neg", y) if zero is not None and is_number(x, zero) else None


def both_negated(context: Context, op: Op) -> Value | None:
    """``(-x) * (-y) -> x * y``"""
    x, y = (made_by(v, "neg") for v in op.operands)
    return context.builder.emit1(op.defn, x.operands[0], y.operands[0]) if x is not None and y is not None else None


def times_minus_one(context: Context, op: Op) -> Value | None:
    """``x * -1 -> -x``"""
    if category(op.result.type.dtype) not in (1, 2):
        return None
    for x, c in (op.operands, reversed(op.operands)):
        if is_number(c, -1.0):
            return context.builder.emit1("neg", x)
    return None


def divide_by_power_of_two(context: Context, op: Op) -> Value | None:
    """``x / 2**n -> x * 2**-n``: the exact quotient is rounded either way."""
    x, c = op.operands
    by = number(c)
    if not isinstance(by, float) or by == 0 or not math.isfinite(by) or abs(math.frexp(by)[0]) != 0.5:
        return None
    limits = np.finfo(op.result.type.numpy_dtype)
    if not float(limits.tiny) <= abs(1.0 / by) <= float(limits.max) or by == 1.0:
        return None
    return context.builder.emit1("mul", x, context.builder.constant(1.0 / by, c.type.dtype))


# ----- choices and copies


def same_operand(context: Context, op: Op) -> Value | None:
    """The op changes nothing: a copy, a cast or reshape to what it is, a slice of everything."""
    return op.operands[0] if op.operands[0].type == op.result.type else None


def choose_known(context: Context, op: Op) -> Value | None:
    """``where(c, x, x) -> x``, ``where(true, x, y) -> x``"""
    condition, x, y = op.operands
    if x is y:
        return x
    known = number(condition)
    return None if known is None else x if known else y


def single(context: Context, op: Op) -> Value | None:
    """``cat(x) -> x``"""
    return op.operands[0] if len(op.operands) == 1 else None


# ----- dtypes

_BITS = {"f16": 11, "f32": 24, "f64": 53}


def is_lossless(source: str, target: str) -> bool:
    """Whether every number of one element type is a number of the other."""
    if target[0] == "c":
        return is_lossless(source, {"c64": "f32", "c128": "f64"}[target]) if source[0] != "c" else target == "c128"
    if source == target or source == "bool":
        return True
    if source[0] in "ui" and target[0] == "f":
        return int(source[1:]) - (source[0] == "i") <= _BITS[target]
    return bool(source[0] != "c" and target != "bool" and np.can_cast(_numpy(source), _numpy(target), "safe"))


def _numpy(dtype: str) -> np.dtype:
    return np.dtype({"u": "u", "i": "i", "f": "f"}[dtype[0]] + str(int(dtype[1:]) // 8))


def cast_of_cast(context: Context, op: Op) -> Value | None:
    """``cast(cast(x)) -> cast(x)`` where the inner one loses nothing. Not float to integer: out of range, each width does as it likes."""
    inner = made_by(op.operands[0], "cast")
    if inner is None:
        return None
    x, target = inner.operands[0], op.result.type.dtype
    if not is_lossless(x.type.dtype, inner.result.type.dtype):
        return None
    if x.type.dtype == target:
        return x
    if x.type.dtype[0] in "fc" and target[0] not in "fc":
        return None
    return context.builder.emit1("cast", x, dtype=target) if not (x.type.dtype[0] == "c" and target[0] != "c") else None


# ----- shapes


def reshape_of_reshape(context: Context, op: Op) -> Value | None:
    """``reshape(reshape(x)) -> reshape(x)``"""
    inner = made_by(op.operands[0], "reshape")
    return context.builder.emit1("reshape", inner.operands[0], shape=op.result.type.shape) if inner is not None else None


def reshape_of_reduction(context: Context, op: Op) -> Value | None:
    """``reshape(sum(x))`` that puts the reduced axes back ``-> sum(x, keepdim)``, if nobody else reads the sum."""
    inner = op.operands[0].op
    if inner is None or not inner.defn.reduction or context.readers[0] != 1 or inner.attrs.get("keepdim") is not False:
        return None
    dims = inner.attrs.get("dims", inner.attrs.get("dim"))
    dims = dims if isinstance(dims, tuple) else (dims,)
    kept = tuple(1 if axis in dims else size for axis, size in enumerate(inner.operands[0].type.shape))
    if None in dims or kept != op.result.type.shape:
        return None
    return context.again(inner, *inner.operands, keepdim=True)


def permute_of_permute(context: Context, op: Op) -> Value | None:
    """``permute(permute(x)) -> permute(x)``, ``permute(x) -> x`` where nothing moves"""
    dims = cast("tuple[int, ...]", op.attrs["dims"])
    if dims == tuple(range(len(dims))):
        return op.operands[0]
    inner = made_by(op.operands[0], "permute")
    if inner is None:
        return None
    first = cast("tuple[int, ...]", inner.attrs["dims"])
    return context.builder.emit1("permute", inner.operands[0], dims=tuple(first[d] for d in dims))


def broadcast_of_broadcast(context: Context, op: Op) -> Value | None:
    """``broadcast_to(broadcast_to(x)) -> broadcast_to(x)``"""
    inner = made_by(op.operands[0], "broadcast_to")
    return context.builder.emit1("broadcast_to", inner.operands[0], shape=op.result.type.shape) if inner is not None else None


def slice_of_slice(context: Context, op: Op) -> Value | None:
    """``slice(slice(x)) -> slice(x)``"""
    inner = made_by(op.operands[0], "slice")
    if inner is None or op.result.type.numel == 0:
        return None
    (start1, _, step1), (start2, _, step2) = (
        [cast("tuple[int, ...]", o.attrs[name]) for name in ("starts", "limits", "steps")] for o in (inner, op)
    )
    last = [s + (size - 1) * step for s, size, step in zip(start2, op.result.type.shape, step2, strict=True)]
    return context.builder.emit1(
        "slice",
        inner.operands[0],
        starts=tuple(a + b * s for a, b, s in zip(start1, start2, step1, strict=True)),
        limits=tuple(a + b * s + 1 for a, b, s in zip(start1, last, step1, strict=True)),
        steps=tuple(a * b for a, b in zip(step1, step2, strict=True)),
    )


def moves_nothing(context: Context, op: Op) -> Value | None:
    """``flip(x) -> x`` where every flipped axis has one element."""
    shape = op.result.type.shape
    return op.operands[0] if all(shape[d] == 1 for d in cast("tuple[int, ...]", op.attrs["dims"])) else None


IDENTITIES: dict[str, tuple[Rule, ...]] = {
    "add": (neutral("either", floating=-0.0, integer=0, bool_=False), add_negated),
    "sub": (neutral("right", floating=0.0, integer=0), subtract_negated),
    "mul": (neutral("either", floating=1.0, integer=1, bool_=True), both_negated, times_minus_one),
    "div": (neutral("right", floating=1.0, integer=None), both_negated, divide_by_power_of_two),
    "pow": (neutral("right", floating=1.0, integer=1),),
    "floor_divide": (neutral("right", floating=None, integer=1),),
    "bitwise_and": (neutral("either", None, -1, True), equal_operands),
    "bitwise_or": (neutral("either", None, 0, False), equal_operands),
    "bitwise_xor": (neutral("either", None, 0, False),),
    "left_shift": (neutral("right", None, 0),),
    "right_shift": (neutral("right", None, 0),),
    "logical_and": (neutral("either", None, None, True), equal_operands),
    "logical_or": (neutral("either", None, None, False), equal_operands),
    "logical_xor": (neutral("either", None, None, False),),
    "maximum": (equal_operands,),
    "minimum": (equal_operands,),
    "where": (choose_known,),
    "neg": (inverse,),
    "conj": (inverse,),
    "bitwise_not": (inverse,),
    "logical_not": (inverse,),
    "abs": (idempotent, ignores_sign),
    "square": (ignores_sign,),
    "relu": (idempotent,),
    "sign": (idempotent,),
    "floor": (idempotent,),
    "ceil": (idempotent,),
    "round": (idempotent,),
    "trunc": (idempotent,),
    "copy": (same_operand,),
    "cast": (same_operand, cast_of_cast),
    "reshape": (same_operand, reshape_of_reshape, reshape_of_reduction),
    "permute": (permute_of_permute,),
    "broadcast_to": (same_operand, broadcast_of_broadcast),
    "slice": (same_operand, slice_of_slice),
    "pad": (same_operand,),
    "flip": (moves_nothing,),
    "cat": (single,),
}
"""The rules of each operator, tried in order. A rule whose value has another type than the result does not apply."""
