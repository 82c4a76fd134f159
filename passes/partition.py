"""Memory between the phases of a training step."""

from __future__ import annotations

import re

from tpc.ir.builder import Rewriter
from tpc.ir.program import Op, Program, Value
from tpc.passes.saved import Choice, Demand, choose

REVERSE_SCOPE = re.compile(r"(?:^|/)[^/]*Backward\d*#")
"""A path component that names a backward node: ``SwishBackward#0``, ``MulBackward0#3``."""


def partition(program: Program, memory_budget: float = 1.0) -> Program:
    """Decides which values of the forward phase live until the reverse phase, and computes the others again there.

    Before: ``%0 = exp %x`` is read forward and, after everything else, in ``SwishBackward#0``. After, at a low budget: that
    op reads a second ``exp %x`` just before it. What is computed again has the same bits: the same op on the same operands. See
    `saved` for how the choice is made. A program that has only one phase is left alone.
    """
    again = {c.value for c in plan_saved(program, memory_budget) if c.decision == "recomputed"}
    # A view is no memory of its own, and constants are there anyway.
    again -= {v for v in again if _seen(v) not in again or (v.op is not None and not v.op.operands)}
    if not again:
        return program
    late = reverse_phase(program)
    rewriter = Rewriter(program)
    second: dict[Value, Value] = {}
    for op in program.ops:
        operands = rewriter.operands(op)
        if op in late:
            operands = [_again(rewriter, v, again, second, op) if v in again else new for v, new in zip(op.operands, operands, strict=True)]
        rewriter.copy(op, operands)
    return rewriter.finish()


def plan_saved(program: Program, memory_budget: float = 1.0) -> list[Choice]:
    """How reverse gets each value of the forward phase that it needs."""
    late = reverse_phase(program)
    read = dict.fromkeys(v for op in program.ops if op in late for v in op.operands if v.op not in late)
    # Outputs of the forward phase stay alive to the end of the step: reading them again later costs no memory.
    free = frozenset(program.inputs) | {v for v in program.outputs if v.op is not None and v.op not in late}
    return choose(Demand(tuple(read), free, shared_views=True), memory_budget)


def reverse_phase(program: Program) -> set[Op]:
    """The ops of backward nodes, whatever depends on one, and what only such dependents read: the updates of an optimiser."""
    backward = {op for op in program.ops if any(map(REVERSE_SCOPE.search, op.scopes))}
    late = set(backward)
    for op in program.ops:
        if any(v.op in late for v in op.operands):
            late.add(op)
    needed = {v.op for v in program.outputs} | {v.op for op in backward for v in op.operands}
    for op in reversed(program.ops):
        if op not in late and op not in needed:
            late.add(op)
        elif op not in late:
            needed.update(v.op for v in op.operands)
    return late


def _seen(value: Value) -> Value:
    """What a view shows, through all steps."""
    while value.op is not None and value.op.defn.view:
        value = value.op.operands[0]
    return value


def _again(rewriter: Rewriter, value: Value, again: set[Value], second: dict[Value, Value], reader: Op) -> Value:
    """The value computed a second time, for `reader` and those after it."""
    todo = [value]
    while todo:
        op = todo[-1].op
        assert op is not None
        missing = [v for v in op.operands if v in again and v not in second]
        if op.results[0] not in second and not missing:
            operands = [second[v] if v in again else rewriter.get(v) for v in op.operands]
            scopes = tuple(dict.fromkeys((*op.scopes, *reader.scopes)))
            made = rewriter.append(Op(op.defn, operands, op.attrs, op.types, scopes, op.loc, op.bodies))
            second.update(zip(op.results, made.results, strict=True))
        if op.results[0] in second:
            todo.pop()
        else:
            todo.extend(missing)
    return second[value]
