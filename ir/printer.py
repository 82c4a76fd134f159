"""Programs as text; `tpc.ir.parser` reads it back exactly, up to the names of values.

Results are numbered in order; scopes and locations stand in columns of their own:

    tpc 1

    program @step.reverse (%x: f32[64,784], %h: f32[64,256]) -> (f32[64,256], f32[784,256] into %x) {
      %0 = sigmoid %h : f32[64,256]                               @SwishBackward#0  loc("swish.py":12 in "backward")
      %1, %2 = sort %x {dim=1, descending=false} : f32[64,784], i64[64,784]
      ...
      return %9, %0
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tpc.ir.names import Paint, ansi, at_name, plain, quoted, value_names
from tpc.ir.opdef import AttrValue
from tpc.ir.program import Loc, Module, Op, Program, Value

VERSION = 1
"""Version of the text and JSON formats; a reader refuses others."""

MAX_COLUMN = 88
"""Lines longer than this do not push the columns of scopes and locations to the right."""


def print_module(module: Module, locs: bool = True, colour: bool = False) -> str:
    """The version line and every program, with a line feed at the end."""
    programs = [print_program(program, locs, colour) for program in module.programs.values()]
    return "\n\n".join([f"tpc {VERSION}", *programs]) + "\n"


def print_program(program: Program, locs: bool = True, colour: bool = False) -> str:
    """One program, without a line feed at the end; `locs=False` leaves out locations, `colour` is for terminals."""
    paint = ansi if colour else plain
    names = value_names(program)
    outputs = []
    for value, target in zip(program.outputs, program.writes, strict=True):
        into = f" {paint('keyword', 'into')} {_value(program.inputs[target], names, paint)}" if target is not None else ""
        outputs.append(paint("type", str(value.type)) + into)
    head = f"{paint('keyword', 'program')} {at_name(program.name)} ({_inputs(program, names, paint)}) -> ({', '.join(outputs)}) {{"
    return "\n".join([head, *_block(program, names, "  ", locs, paint), "}"])


def print_op(op: Op, names: Mapping[Value, str], paint: Paint = plain, longest: int | None = None) -> str:
    """``%2 = mul %0, %1 : f32[3]``, without scopes, location and body; `longest` cuts the attributes to be read by people only."""
    results = ", ".join([_value(v, names, paint) for v in op.results])
    operands = " " + ", ".join([_value(v, names, paint) for v in op.operands]) if op.operands else ""
    types = paint("type", ", ".join([str(v.type) for v in op.results]))
    return f"{results} = {paint('op', op.defn.name)}{operands}{_attrs(op, paint, longest)} : {types}"


def print_attr(value: AttrValue) -> str:
    """An attribute value; floats by `repr`, so exactly."""
    if isinstance(value, tuple):
        return f"[{','.join(map(print_attr, value))}]"
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"complex({value.real!r},{value.imag!r})"
    return repr(value)


def print_loc(loc: Loc) -> str:
    function = f" in {quoted(loc.function)}" if loc.function else ""
    return f"loc({quoted(loc.file)}:{loc.line}{function})"


@dataclass(frozen=True, slots=True)
class _Line:
    """One op; `width` is how wide `left` is on screen."""

    left: str
    width: int
    scopes: str
    loc: str
    body: tuple[str, ...]


def _block(program: Program, names: Mapping[Value, str], indent: str, locs: bool, paint: Paint) -> Iterator[str]:
    """The lines between the braces."""
    lines = [_line(op, names, indent, locs, paint) for op in program.ops]
    scope_column = _column(len(indent) + line.width for line in lines if line.scopes or line.loc)
    loc_column = _column(scope_column + len(line.scopes) for line in lines if line.loc)
    for line in lines:
        text, width = indent + line.left, len(indent) + line.width
        if line.scopes:
            text += " " * max(2, scope_column - width) + paint("scope", line.scopes)
            width = max(width + 2, scope_column) + len(line.scopes)
        if line.loc:
            text += " " * max(2, (loc_column or scope_column) - width) + paint("loc", line.loc)
        yield text
        yield from line.body
    yield f"{indent}{paint('keyword', 'return')} {', '.join([_value(v, names, paint) for v in program.outputs])}".rstrip()


def _line(op: Op, names: Mapping[Value, str], indent: str, locs: bool, paint: Paint) -> _Line:
    left = print_op(op, names, paint)
    width = len(left) if paint is plain else len(print_op(op, names))
    body = tuple(line for inner in op.bodies for line in _body(inner, indent + "  ", locs, paint))
    scopes = ", ".join([at_name(scope) for scope in op.scopes])
    return _Line(left, width, scopes, print_loc(op.loc) if locs and op.loc is not None else "", body)


def _body(body: Program, indent: str, locs: bool, paint: Paint) -> Iterator[str]:
    names = value_names(body)
    yield f"{indent}{paint('keyword', 'body')} {at_name(body.name)} ({_inputs(body, names, paint)}) {{"
    yield from _block(body, names, indent + "  ", locs, paint)
    yield f"{indent}}}"


def _column(widths: Iterable[int]) -> int:
    """Where a column begins: a multiple of 4, so that small changes of one line leave the others alone."""
    widest = max((width for width in widths if width <= MAX_COLUMN), default=0)
    return (widest + 2 + 3) // 4 * 4 if widest else 0


def _inputs(program: Program, names: Mapping[Value, str], paint: Paint) -> str:
    return ", ".join([f"{_value(v, names, paint)}: {paint('type', str(v.type))}" for v in program.inputs])


def _value(value: Value, names: Mapping[Value, str], paint: Paint) -> str:
    return paint("value", f"%{names.get(value, '?')}")


def _attrs(op: Op, paint: Paint, longest: int | None) -> str:
    if not op.attrs:
        return ""
    order = dict.fromkeys([name for name in op.defn.attrs if name in op.attrs]) | dict.fromkeys(op.attrs)
    written = ", ".join([f"{name}={print_attr(op.attrs[name])}" for name in order])
    if longest is not None and len(written) > longest:
        written = f"{written[:longest]}..."
    return " {" + paint("attr", written) + "}"
