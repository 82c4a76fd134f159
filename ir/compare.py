"""Whether two programs are the same, whatever their values are called."""

from __future__ import annotations

from tpc.ir.attrs import attr_key
from tpc.ir.names import value_names
from tpc.ir.printer import print_attr, print_op
from tpc.ir.program import Module, Op, Program, Value
from tpc.ir.signature import listed


def same_program(a: Program, b: Program, origin: bool = False) -> str | None:
    """The first difference between two programs; None if they are the same op for op.

    Names of programs and values do not count. With `origin`, the scopes and locations of ops do.
    """
    if (types := [listed(v.type for v in p.inputs) for p in (a, b)]) and types[0] != types[1]:
        return f"inputs: ({types[0]}) and ({types[1]})"
    twins: dict[Value, Value] = dict(zip(a.inputs, b.inputs, strict=True))
    for number, (op, twin) in enumerate(zip(a.ops, b.ops, strict=False)):
        why = _difference(op, twin, twins, origin)
        if why is not None:
            first, second = (print_op(o, value_names(p), longest=60) for o, p in ((op, a), (twin, b)))
            return f"op {number}: {why}: `{first}` and `{second}`"
        twins.update(zip(op.results, twin.results, strict=True))
    if len(a.ops) != len(b.ops):
        return f"{len(a.ops)} and {len(b.ops)} ops"
    if len(a.outputs) != len(b.outputs):
        return f"{len(a.outputs)} and {len(b.outputs)} outputs"
    for number, (value, other) in enumerate(zip(a.outputs, b.outputs, strict=True)):
        if twins[value] is not other:
            return f"output {number}: %{value_names(a)[value]} and %{value_names(b)[other]}"
    if a.writes != b.writes:
        return f"outputs are written into inputs {a.writes} and {b.writes}"
    return None


def same_module(a: Module, b: Module, origin: bool = False) -> str | None:
    """The first difference between two modules; their programs must have the same names in the same order."""
    if list(a.programs) != list(b.programs):
        return f"programs {', '.join(a.programs)} and {', '.join(b.programs)}"
    for name, program in a.programs.items():
        if (why := same_program(program, b[name], origin)) is not None:
            return f"@{name}: {why}"
    return None


def _difference(a: Op, b: Op, twins: dict[Value, Value], origin: bool) -> str | None:
    if a.name != b.name:
        return "other operators"
    if len(a.operands) != len(b.operands) or any(twins[v] is not w for v, w in zip(a.operands, b.operands, strict=True)):
        return "other operands"
    if a.types != b.types:
        return "other types"
    for name in a.attrs.keys() | b.attrs.keys():
        values = [op.attrs.get(name) for op in (a, b)]
        if attr_key(values[0]) != attr_key(values[1]):
            return f"{name} is {print_attr(values[0])} and {print_attr(values[1])}"
    if origin and (a.scopes, a.loc) != (b.scopes, b.loc):
        return f"from {a.scopes} {a.loc} and {b.scopes} {b.loc}"
    if len(a.bodies) != len(b.bodies):
        return "other bodies" if a.bodies and b.bodies else "only one has a body"
    why = next((why for x, y in zip(a.bodies, b.bodies, strict=True) if (why := same_program(x, y, origin)) is not None), None)
    return None if why is None else f"bodies differ ({why})"
