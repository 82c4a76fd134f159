"""Programs as JSON, for machines; the same checks as for text.

Values are numbers: the inputs first, then the results in order. Attributes are JSON values where JSON keeps them apart:
floats and complex numbers are wrapped, because readers of JSON turn 1.0 into 1 and have no nan.

    {"tpc": 1, "programs": [{"name": "f", "inputs": [{"name": "x", "type": "f32[3]"}],
      "ops": [{"op": "mul", "operands": [0, 0], "types": ["f32[3]"], "scopes": ["Square#0"], "loc": ["a.py", 3, "f"]}],
      "outputs": [1], "writes": [null]}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from tpc.ir.assembly import Assembly, Fault
from tpc.ir.atoms import MAX_NESTING, Misread, read_types
from tpc.ir.errors import ParseError
from tpc.ir.opdef import AttrValue
from tpc.ir.parser import MAX_CHARACTERS
from tpc.ir.printer import VERSION
from tpc.ir.program import Loc, Module, Op, Program, Value
from tpc.ir.source import parse_error, shortened
from tpc.ir.types import TensorType

_None = type(None)


def dumps(module: Module, indent: int | None = None) -> str:
    """The module as JSON text."""
    return json.dumps(to_json(module), indent=indent, allow_nan=False)


def loads(text: str, filename: str = "<json>") -> Module:
    """The module of a JSON text; `ParseError` says where it is wrong."""
    if len(text) > MAX_CHARACTERS:
        raise ParseError(f"{filename}: error: {len(text)} characters of text; more than {MAX_CHARACTERS} are refused")
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise parse_error(text, filename, error.pos, error.msg) from None
    except ValueError as error:
        raise ParseError(f"{filename}: error: {error}") from None
    except RecursionError:
        raise ParseError(f"{filename}: error: nested too deep") from None
    return from_json(data, filename)


def to_json(module: Module) -> dict[str, Any]:
    """The module as dicts, lists, strings, numbers, booleans and None."""
    return {"tpc": VERSION, "programs": [_program(program) for program in module.programs.values()]}


def from_json(data: Mapping[str, Any] | str, filename: str = "<json>") -> Module:
    """The module that `to_json` gave, as data or as JSON text; `ParseError` names the path to what is wrong."""
    if isinstance(data, str):
        return loads(data, filename)
    reader = _Reader(filename)
    version = reader.field(data, "tpc", int, "")
    if version != VERSION:
        reader.wrong("tpc", f"this file has version {version}; this tpc reads version {VERSION}")
    programs: dict[str, Program] = {}
    for i, item in enumerate(reader.field(data, "programs", list, "")):
        program = reader.program(item, f"programs[{i}]", 0)
        if program.name in programs:
            reader.wrong(f"programs[{i}].name", f"program {program.name!r} is defined twice")
        programs[program.name] = program
    return Module(programs.values())


def _program(program: Program) -> dict[str, Any]:
    numbers = {value: number for number, value in enumerate(program.inputs)}
    ops = []
    for op in program.ops:
        ops.append(_op(op, numbers))
        for result in op.results:
            numbers[result] = len(numbers)
    inputs = [({"name": v.name} if v.name else {}) | {"type": str(v.type)} for v in program.inputs]
    outputs = [numbers[v] for v in program.outputs]
    return {"name": program.name, "inputs": inputs, "ops": ops, "outputs": outputs, "writes": list(program.writes)}


def _op(op: Op, numbers: Mapping[Value, int]) -> dict[str, Any]:
    form: dict[str, Any] = {"op": op.name, "operands": [numbers[v] for v in op.operands], "types": [str(t) for t in op.types]}
    if op.attrs:
        form["attrs"] = {name: _attr(value) for name, value in op.attrs.items()}
    if op.scopes:
        form["scopes"] = list(op.scopes)
    if op.loc is not None:
        form["loc"] = list(op.loc)
    if op.bodies:
        form["bodies"] = [_program(body) for body in op.bodies]
    return form


def _attr(value: AttrValue) -> Any:
    if isinstance(value, tuple):
        return [_attr(item) for item in value]
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Reader:
    """Reads one document; `path` says where in it, for errors."""

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def wrong(self, path: str, message: str) -> NoReturn:
        raise ParseError(f"{self.filename}: error: {path or 'top level'}: {shortened(message, 500)}")

    def field(self, data: Any, name: str, kind: type | tuple[type, ...], path: str, default: Any = ...) -> Any:
        """`data[name]`, of class `kind`."""
        if not isinstance(data, Mapping):
            self.wrong(path, f"expected an object, not {type(data).__name__}")
        value = data.get(name, default)
        if value is ...:
            self.wrong(path, f"{name!r} is missing")
        if value is not default:
            self.check(value, kind, f"{path}.{name}".lstrip("."))
        return value

    def check(self, value: Any, kind: type | tuple[type, ...], path: str) -> None:
        if not isinstance(value, kind) or isinstance(value, bool):
            expected = " or ".join([k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,))])
            self.wrong(path, f"expected {expected}, not {type(value).__name__}")

    def items(self, data: Any, name: str, kind: type | tuple[type, ...], path: str, default: Any = ...) -> list[Any]:
        """`data[name]`, a list of items of class `kind`."""
        values: list[Any] = self.field(data, name, list, path, default)
        for i, value in enumerate(values):
            self.check(value, kind, f"{path}.{name}[{i}]")
        return values

    def types(self, written: Iterable[str], path: str) -> list[TensorType]:
        found: list[TensorType] = []
        for text in written:
            try:
                types = read_types(text)
            except Misread as error:
                self.wrong(path, str(error))
            if len(types) != 1 or str(types[0]) != text:
                self.wrong(path, f"{shortened(text)!r} is no type")
            found.extend(types)
        return found

    def program(self, data: Any, path: str, depth: int) -> Program:
        if depth > MAX_NESTING:
            self.wrong(path, f"nested too deep: bodies may be nested {MAX_NESTING} deep")
        assembly = Assembly(self.field(data, "name", str, path), "value ")
        for i, item in enumerate(self.field(data, "inputs", list, path)):
            at = f"{path}.inputs[{i}]"
            (type,) = self.types([self.field(item, "type", str, at)], at)
            assembly.input(i, type, self.field(item, "name", (str, _None), at, None))
        for i, item in enumerate(self.field(data, "ops", list, path)):
            self.op(item, assembly, f"{path}.ops[{i}]", depth)
        outputs = self.items(data, "outputs", int, path)
        writes = self.items(data, "writes", (int, _None), path, [None] * len(outputs))
        if len(writes) != len(outputs):
            self.wrong(f"{path}.writes", f"{len(writes)} entries for {len(outputs)} outputs")
        if depth and any(target is not None for target in writes):
            self.wrong(f"{path}.writes", "a body writes into nothing")
        try:
            return assembly.finish(outputs, None, writes)
        except Fault as fault:
            self.wrong(f"{path}.{'writes' if fault.part[0] == 'into' else 'outputs'}", str(fault))

    def op(self, data: Any, assembly: Assembly, path: str, depth: int) -> None:
        types = self.types(self.items(data, "types", str, path), f"{path}.types")
        attrs = self.field(data, "attrs", Mapping, path, {})
        bodies = self.items(data, "bodies", Mapping, path, [])
        first = len(assembly.values)
        try:
            assembly.op(
                self.field(data, "op", str, path),
                range(first, first + len(types)),
                self.items(data, "operands", int, path),
                {str(name): self.attr(value, f"{path}.attrs.{name}", 0) for name, value in attrs.items()},
                types,
                tuple(self.items(data, "scopes", str, path, [])),
                self.loc(self.field(data, "loc", list, path, None), f"{path}.loc"),
                tuple([self.program(body, f"{path}.bodies[{n}]", depth + 1) for n, body in enumerate(bodies)]),
            )
        except Fault as fault:
            self.wrong(path, str(fault))

    def loc(self, data: Any, path: str) -> Loc | None:
        if data is None:
            return None
        if len(data) != 3:
            self.wrong(path, "expected [file, line, function]")
        for value, kind in zip(data, (str, int, str), strict=True):
            self.check(value, kind, path)
        return Loc(*data)

    def attr(self, data: Any, path: str, depth: int) -> AttrValue:
        if depth > MAX_NESTING:
            self.wrong(path, f"nested too deep: tuples may be nested {MAX_NESTING} deep")
        if isinstance(data, list):
            return tuple([self.attr(item, path, depth + 1) for item in data])
        if isinstance(data, float):
            self.wrong(path, 'a float is written {"float": "1.0"}, because readers of JSON take 1.0 for 1')
        if not isinstance(data, Mapping):
            return data  # type: ignore[no-any-return]  # the assembly checks it
        try:
            ((kind, value),) = data.items()
            if kind == "float":
                return float(value)
            if kind == "complex":
                real, imaginary = value
                return complex(float(real), float(imaginary))
        except (TypeError, ValueError, OverflowError):
            pass
        self.wrong(path, 'expected {"float": "1.0"} or {"complex": ["1.0", "0.0"]}')
