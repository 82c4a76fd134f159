"""Constant folding and algebra."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tpc.ir.builder import Builder, Rewriter
from tpc.ir.program import Op, Program, Value
from tpc.ir.uses import users
from tpc.passes.identities import IDENTITIES, Context

Evaluate: TypeAlias = Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]]
"""Runs a program: `runtime.interpreter.interpret`."""

MOST_FOLDED = 256
"""Results with more elements are computed when the program runs: text and memory hold the recipe, not the array."""
MOST_ROUNDS = 32


def simplify(program: Program, evaluate: Evaluate | None = None) -> Program:
    """Computes constant parts and applies identities that change no bit of any result.

    Before: ``%0 = constant {value=1.0, dtype="f32"}``, ``%1 = mul %x, %0``, ``%2 = neg %1``, ``%3 = neg %2``. After: ``%x`` is read
    instead of ``%3``. Never ``x * 0 -> 0`` or ``x - x -> 0``: these are wrong for NaN and infinity. The identities are in
    `identities`; constants are folded with `evaluate`, not at all without it.
    """
    for _ in range(MOST_ROUNDS):
        simpler = _round(program, evaluate)
        if simpler.ops == program.ops and simpler.outputs == program.outputs:
            return program
        program = simpler
    return program


def _round(program: Program, evaluate: Evaluate | None) -> Program:
    rewriter = Rewriter(program)
    readers = users(program)
    for value in program.outputs:
        if value.op is not None:
            readers[value].append(value.op)
    for op in program.ops:
        candidate = _candidate(rewriter, op)
        ordered = not all(reader.defn.elementwise for result in op.results for reader in readers[result])
        context = Context(rewriter, [len(readers[v]) for v in op.operands], ordered)
        with rewriter.at(op):
            simpler = _simpler(context, candidate, evaluate)
        if simpler is None:
            rewriter.copy(op, candidate.operands)
        else:
            rewriter.forward(op.result, simpler)
    return rewriter.finish()


def _candidate(rewriter: Rewriter, op: Op) -> Op:
    """The op on what became of its operands; the op itself if they are the same."""
    operands = rewriter.operands(op)
    if all(new is old for new, old in zip(operands, op.operands, strict=True)):
        return op
    return Op(op.defn, operands, op.attrs, op.types, op.scopes, op.loc, op.bodies)


def _simpler(context: Context, op: Op, evaluate: Evaluate | None) -> Value | None:
    """A value that equals the op's result; None if the op is as simple as it gets."""
    if len(op.results) != 1 or not op.operands or op.bodies:
        return None
    for identity in IDENTITIES.get(op.name, ()):
        value = identity(context, op)
        if value is not None and value.type == op.result.type and not (context.ordered and _may_have_gaps(value, op)):
            return value
    if evaluate is not None and (value := _folded(context.builder, op, evaluate)) is not None:
        return value
    return _without_broadcasts(context, op) if op.defn.elementwise else None


def _may_have_gaps(value: Value, op: Op) -> bool:
    """Whether a view stands in for an array that is row-major: what reads it might then add in another order."""
    if value.op is None or not value.op.defn.view:
        return False
    seen = value.op.operands[0].op
    return not op.defn.view or (seen is not None and seen.defn.view)


def _is_constant(value: Value) -> bool:
    return value.op is not None and not value.op.operands and not value.op.defn.random


def _folded(builder: Builder, op: Op, evaluate: Evaluate) -> Value | None:
    """The result as a constant, if all operands are constants and it is small. An op that would fail is left to fail at run time."""
    if op.defn.random or not op.defn.foldable or op.defn.view or not all(map(_is_constant, op.operands)):
        return None
    if max(v.type.numel for v in (op.result, *op.operands)) > MOST_FOLDED:
        return None
    alone = Builder("constant")
    inner = {v: alone.append(_copied(v.op, ())).results[v.index] for v in dict.fromkeys(op.operands) if v.op is not None}
    result = alone.append(_copied(op, [inner[v] for v in op.operands])).result
    try:
        (array,) = evaluate(alone.finish([result]), ())
    except Exception:  # whatever it raises, it raises at run time with the user's line
        return None
    return _as_constant(builder, array, op.result)


def _copied(op: Op, operands: Sequence[Value]) -> Op:
    return Op(op.defn, operands, op.attrs, op.types, op.scopes, op.loc)


def _as_constant(builder: Builder, array: np.ndarray, result: Value) -> Value:
    dtype, shape = result.type
    array = np.ascontiguousarray(array).reshape(shape)
    if array.size and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        number = builder.constant(array.reshape(-1)[0].item(), dtype)
        return number if shape == () else builder.emit1("broadcast_to", number, shape=shape)
    data = base64.b64encode(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()).decode("ascii")
    return builder.emit1("literal", data=data, dtype=dtype, shape=shape)


def _without_broadcasts(context: Context, op: Op) -> Value | None:
    """Elementwise ops broadcast by themselves: they read what was broadcast. Where no operand gives the shape, the result is broadcast."""
    narrow = [v.op.operands[0] if v.op is not None and v.op.name == "broadcast_to" else v for v in op.operands]
    if all(new is old for new, old in zip(narrow, op.operands, strict=True)):
        return None
    result = context.again(op, *narrow)
    if result.type == op.result.type:
        return result
    if context.ordered:
        return None
    return context.builder.emit1("broadcast_to", result, shape=op.result.type.shape)
