"""Which op an error came from, in words."""

from __future__ import annotations

from tpc.ir.names import value_names
from tpc.ir.program import Op, Program


def op_note(op: Op, program: Program) -> str:
    """``in %7 = mul f32[3], f32[3] at swish.py:12``; ops inside a fusion have no number of their own."""
    names = value_names(program)
    results = ", ".join(f"%{names[v]}" for v in op.results if v in names)
    types = ", ".join(str(v.type) for v in op.operands)
    where = f" at {op.loc}" if op.loc is not None else ""
    return f"in {results + ' = ' if results else ''}{op.name}{' ' + types if types else ''}{where}"
