"""Every rule that a program must keep, stated once.

Runs after every pass in tests, and in production under `TPC_VERIFY=1`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpc.ir.atoms import MAX_NESTING
from tpc.ir.attrs import why_not_attr
from tpc.ir.errors import TypeRuleError, VerifyError
from tpc.ir.names import at_name, value_names
from tpc.ir.printer import print_op
from tpc.ir.program import Loc, Module, Op, Program, Value
from tpc.ir.signature import listed, result_types, why_not_attr_names, why_not_operand_count, why_not_type


def verify(program: Program | Module) -> None:
    """Passes over a valid program or module; `VerifyError` names the program, the op, its line, and what is wrong."""
    if isinstance(program, Module):
        for name, member in program.programs.items():
            if name != member.name:
                raise VerifyError(f"{at_name(member.name)} is in its module under the name {at_name(name)}")
            verify(member)
        return
    for why, op in _faults(program, 0):
        where = ""
        if op is not None:
            line = f" at {op.loc}" if isinstance(op.loc, Loc) else ""
            where = f" in `{print_op(op, value_names(program), longest=60)}`{line}"
        raise VerifyError(f"{at_name(program.name)}{where}: {why}")


def why_not_valid(program: Program) -> str | None:
    """The `VerifyError` of a program as text; None if it is valid."""
    try:
        verify(program)
    except VerifyError as error:
        return str(error)
    return None


def _faults(program: Program, depth: int) -> Iterator[tuple[str, Op | None]]:
    """What is wrong, and with which op; in the order of the program."""
    defined: set[Value] = set()
    for position, value in enumerate(program.inputs):
        if value.op is not None:
            yield f"input {position} is the result of {value.op.name}", None
        if value in defined:
            yield f"input {position} is there twice", None
        if (why := why_not_type(value.type)) is not None:
            yield f"input {position}: {why}", None
        defined.add(value)
    for op in program.ops:
        for why in _op_faults(op, defined, depth):
            yield why, op
        if not defined.isdisjoint(op.results):
            yield "the op is there twice", op
        defined.update(op.results)
    for why in _output_faults(program, defined):
        yield why, None


def _op_faults(op: Op, defined: set[Value], depth: int) -> Iterator[str]:
    for position, value in enumerate(op.operands):
        if value not in defined:
            yield f"operand {position} ({value!r}) is not defined before it is read"
    for position, result in enumerate(op.results):
        if result.op is not op or result.index != position:
            yield f"result {position} does not belong to the op"
    why = why_not_operand_count(op.defn, len(op.operands)) or why_not_attr_names(op.defn, op.attrs)
    if why is not None:
        yield why
    for name, attr in op.attrs.items():
        if (why := why_not_attr(attr)) is not None:
            yield f"attribute {name!r}: {why}"
    if not isinstance(op.scopes, tuple) or not all(isinstance(scope, str) for scope in op.scopes):
        yield f"scopes are a tuple of strings, not {op.scopes!r}"
    if op.loc is not None and not isinstance(op.loc, Loc):
        yield f"the location is a Loc or None, not {op.loc!r}"
    for body in op.bodies:
        yield from _body_faults(body, depth + 1)
    try:
        inferred = result_types(op.defn, [v.type for v in op.operands], op.attrs, op.bodies)
    except TypeRuleError as error:
        yield str(error)
    else:
        if inferred != op.types:
            yield f"its type rule gives ({listed(inferred)}), its results are ({listed(op.types)})"


def _body_faults(body: Program, depth: int) -> Iterator[str]:
    if depth > MAX_NESTING:
        yield f"bodies are nested more than {MAX_NESTING} deep"
        return
    if any(target is not None for target in body.writes):
        yield "a body writes into nothing: only whole programs have `writes`"
    for why, op in _faults(body, depth):
        where = f", `{print_op(op, value_names(body), longest=60)}`" if op is not None else ""
        yield f"its body {at_name(body.name)}{where}: {why}"


def _output_faults(program: Program, defined: set[Value]) -> Iterator[str]:
    for position, value in enumerate(program.outputs):
        if value not in defined:
            yield f"output {position} ({value!r}) is not defined"
    if len(program.writes) != len(program.outputs):
        yield f"writes has {len(program.writes)} entries for {len(program.outputs)} outputs"
        return
    for position, (value, target) in enumerate(zip(program.outputs, program.writes, strict=True)):
        if target is None:
            continue
        if type(target) is not int or not 0 <= target < len(program.inputs):
            yield f"output {position} is written into input {target!r}, which does not exist"
        elif program.inputs[target].type != value.type:
            yield f"output {position} is {value.type} and cannot be written into input {target}, which is {program.inputs[target].type}"
        elif target in program.writes[:position]:
            yield f"two outputs are written into input {target}"
