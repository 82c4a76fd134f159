"""Common subexpressions."""

from __future__ import annotations

from collections.abc import Hashable

from tpc.ir.builder import Rewriter
from tpc.ir.program import Op, Program


def cse(program: Program) -> Program:
    """Computes each expression once; the first occurrence keeps its location and scopes.

    Before: ``%0 = sin %x``, ``%1 = sin %x``, ``%2 = mul %0, %1``. After: ``%0 = sin %x``, ``%1 = mul %0, %0``. Drawing from the
    same generator state gives the same numbers, so random ops are no exception.
    """
    rewriter = Rewriter(program)
    seen: dict[Hashable, Op] = {}
    for op in program.ops:
        key = rewriter.key(op)
        if (first := seen.get(key)) is None:
            seen[key] = rewriter.copy(op)
        else:
            for old, new in zip(op.results, first.results, strict=True):
                rewriter.forward(old, new)
    return rewriter.finish()
