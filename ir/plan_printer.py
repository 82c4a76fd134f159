"""Plans as text, to be read by people: every step with its memory, and what dies there.

plan @f: arena 24 bytes, outputs 24 bytes, peak 48 bytes
  %x: f32[2,3]                input 0   24 bytes
  %0 = exp %x : f32[2,3]      arena 0   24 bytes  // last use of %x
  %1 = mul %0, %0 : f32[2,3]  output 0  24 bytes  // last use of %0
  return %1
"""

from __future__ import annotations

from collections.abc import Mapping

from tpc.ir.names import at_name, value_names
from tpc.ir.plan import Plan
from tpc.ir.printer import print_op
from tpc.ir.program import Op, Value
from tpc.ir.uses import last_uses

Row = tuple[str, str, str, str]


def print_plan(plan: Plan) -> str:
    """One line per input and per op: what it is, where its results live, how large they are, what happens to memory."""
    program, names = plan.program, value_names(plan.program)
    dying: dict[Op, list[Value]] = {}
    for value, op in last_uses(program).items():
        if op is not None:
            dying.setdefault(op, []).append(value)
    rows = [_input_row(plan, value, position, names) for position, value in enumerate(program.inputs)]
    rows += [_op_row(plan, op, dying.get(op, []), names) for op in program.ops]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = ["  ".join([cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)]).rstrip() for row in rows]
    sizes = f"arena {plan.arena_bytes} bytes, outputs {plan.output_bytes} bytes, peak {plan.peak_bytes} bytes"
    returned = ", ".join([f"%{names[v]}" for v in program.outputs])
    copied = ", ".join([f"%{names[program.outputs[j]]}" for j in plan.copied])
    end = f"return {returned}" + (f"  // copied: {copied}" if copied else "")
    return "\n".join([f"plan {at_name(program.name)}: {sizes}", *[f"  {line}" for line in (*lines, end)]])


def _input_row(plan: Plan, value: Value, position: int, names: Mapping[Value, str]) -> Row:
    donated = "// donated" if position in plan.donated else ""
    return f"%{names[value]}: {value.type}", str(plan.places[value]), f"{value.type.nbytes} bytes", donated


def _op_row(plan: Plan, op: Op, dying: list[Value], names: Mapping[Value, str]) -> Row:
    owned = [v for v in op.results if v not in plan.views]
    notes = [f"view of %{names[op.operands[0]]}"] if len(owned) < len(op.results) else []
    taken = [v for v in dict.fromkeys(op.operands) if any(plan.places[v] == plan.places[r] for r in owned)]
    if taken and not all(plan.places[r].kind == "constant" for r in owned):
        notes.append(f"in the memory of {_listed(taken, names)}")
    if last := [v for v in dying if v.op is not op]:
        notes.append(f"last use of {_listed(last, names)}")
    if unread := [v for v in dying if v.op is op]:
        notes.append(f"nobody reads {_listed(unread, names)}")
    places = ", ".join(dict.fromkeys([str(plan.places[r]) for r in op.results]))
    size = f"{sum(r.type.nbytes for r in owned)} bytes" if owned else ""
    return print_op(op, names, longest=40), places, size, f"// {'; '.join(notes)}" if notes else ""


def _listed(values: list[Value], names: Mapping[Value, str]) -> str:
    return ", ".join([f"%{names[v]}" for v in values])
