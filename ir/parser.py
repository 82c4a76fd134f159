"""Reads the text format into programs. Nothing is executed: text can only name operators, never code.

Every fault is a `ParseError` that points at its place:

    swish.tir:3:16: error: %g is not defined
      %1 = mul %0, %g : f32[3]
                   ^
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tpc.ir.assembly import Assembly, Fault, Part
from tpc.ir.atoms import MAX_NESTING, Misread, read_attrs, read_loc, read_scopes, read_types
from tpc.ir.errors import ParseError
from tpc.ir.grammar import GRAMMAR, WORDS
from tpc.ir.names import is_identifier
from tpc.ir.printer import VERSION
from tpc.ir.program import Module, Program
from tpc.ir.source import parse_error, shortened
from tpc.ir.types import TensorType

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

_T = TypeVar("_T")

MAX_CHARACTERS = 64 * 2**20
"""Longer text is refused before it is read."""

_value_names = re.compile(r"%([\w.]+)").findall


def parse(text: str, filename: str = "<text>") -> Module:
    """The programs of a text; `ParseError` says where it is wrong."""
    if len(text) > MAX_CHARACTERS:
        raise ParseError(f"{filename}: error: {len(text)} characters of text; more than {MAX_CHARACTERS} are refused")
    from lark.exceptions import UnexpectedInput

    with _LOCK:
        lark, reader = _lark()
        reader.begin(text, filename)
        try:
            lark.parse(text)
            return Module(reader.programs.values())
        except UnexpectedInput as error:
            raise _unexpected(error, text, filename) from None
        finally:
            reader.begin("", "")


def parse_program(text: str, filename: str = "<text>") -> Program:
    """The only program of a text."""
    programs = parse(text, filename).programs
    if len(programs) != 1:
        raise ParseError(f"{filename}: error: expected one program, found {len(programs)}")
    return next(iter(programs.values()))


@dataclass(slots=True)
class _Open:
    """A program or body whose closing brace has not come yet, and the tokens of its head, for errors."""

    assembly: Assembly
    name: Token
    outputs: Sequence[tuple[TensorType, Token | None]] | None


class _Reader:
    """What lark calls for each rule, with the list of its children, in the order of the text.

    The first rule of a program or body (`head`, `body_head`) opens an `Assembly`, every op goes into the
    innermost open one, and the rule around them closes it.
    """

    def begin(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename
        self.programs: dict[str, Program] = {}
        self.opened: list[_Open] = []

    def start(self, children: list[None]) -> None:
        """Nothing to do: the programs are in `programs`."""

    def version(self, children: list[Token]) -> None:
        if int(children[0]) != VERSION:
            self.wrong(children[0], 0, f"this text has version {int(children[0])}; this tpc reads version {VERSION}")

    def inputs(self, children: list[Any]) -> list[Any]:
        return children

    outputs = inputs

    def input(self, children: list[Token]) -> tuple[Token, TensorType]:
        return children[0], self.read(read_types, children[1])[0]

    def output(self, children: list[Token]) -> tuple[TensorType, Token | None]:
        return self.read(read_types, children[0])[0], children[1]

    def head(self, children: list[Any]) -> None:
        name, inputs, outputs = children
        if self.read(read_scopes, name)[0] in self.programs:
            self.wrong(name, 0, f"program {name} is defined twice")
        self.enter(name, self.read(read_scopes, name)[0], inputs, outputs or [])

    def body_head(self, children: list[Any]) -> None:
        keyword, name, inputs = children
        if len(self.opened) > MAX_NESTING:
            self.wrong(keyword, 0, f"nested too deep: bodies may be nested {MAX_NESTING} deep")
        self.enter(name or keyword, self.read(read_scopes, name)[0] if name else "body", inputs, None)

    def enter(self, at: Token, name: str, inputs: list[tuple[Token, TensorType]] | None, outputs: Any) -> None:
        assembly = Assembly(name)
        for token, type in inputs or []:
            key = token[1:]
            with self.faults({"input": token}):
                assembly.input(key, type, key if is_identifier(key) else None)
        self.opened.append(_Open(assembly, at, outputs))

    def program(self, children: list[Any]) -> None:
        program = self.close(children[-1])
        self.programs[program.name] = program

    def body(self, children: list[Any]) -> Program:
        return self.close(children[-1])

    def close(self, returned: Token | None) -> Program:
        opened = self.opened.pop()
        outputs = opened.outputs
        types = None if outputs is None else [type for type, _ in outputs]
        into = None if outputs is None else [None if token is None else token[1:] for _, token in outputs]
        tokens = {"output": returned or opened.name} | {
            f"into {i}": token for i, (_, token) in enumerate(outputs or []) if token is not None
        }
        with self.faults(tokens):
            return opened.assembly.finish(_value_names(returned) if returned else [], types, into)

    def op(self, children: list[Any]) -> None:
        results, name, operands, attrs, types, scopes, loc, *bodies = children
        tokens = {"result": results, "op": name, "operand": operands, "attr": attrs, "type": types}
        with self.faults(tokens):
            self.opened[-1].assembly.op(
                str(name),
                _value_names(results),
                _value_names(operands) if operands is not None else (),
                self.read(read_attrs, attrs) if attrs is not None else {},
                self.read(read_types, types),
                self.read(read_scopes, scopes) if scopes is not None else (),
                self.read(read_loc, loc) if loc is not None else None,
                tuple(bodies),
            )

    def read(self, reader: Callable[[str], _T], token: Token) -> _T:
        """What a reader of `atoms` makes of the token."""
        try:
            return reader(str(token))
        except Misread as error:
            self.wrong(token, error.offset, str(error))

    @contextmanager
    def faults(self, tokens: Mapping[str, Token]) -> Iterator[None]:
        """Points faults inside at the token of the part that they name."""
        try:
            yield
        except Fault as fault:
            kind, which = fault.part
            token = tokens.get(f"{kind} {which}") or tokens[kind]
            self.wrong(token, _offset(token, fault.part), str(fault))

    def wrong(self, token: Token, offset: int, message: str) -> NoReturn:
        raise parse_error(self.text, self.filename, (token.start_pos or 0) + offset, message) from None


def _offset(token: str, part: Part) -> int:
    """Where in a coarse token the part stands."""
    kind, which = part
    if kind == "attr":
        found = re.search(rf"\b{re.escape(str(which))}\s*=", token)
        return found.start() if found else 0
    starts = [found.start() for found in re.finditer("%", token)]
    return starts[which] if isinstance(which, int) and which < len(starts) else 0


def _unexpected(error: UnexpectedInput, text: str, filename: str) -> ParseError:
    token: Token | None = getattr(error, "token", None)
    expected: Collection[str] = getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    if token is None:
        position = error.pos_in_stream or 0
        found = repr(text[position : position + 1])
    elif token.type == "$END":
        position, found = len(text.rstrip()), "the end of the text"
    else:
        position, found = token.start_pos or 0, repr(shortened(str(token)))
    words = list(dict.fromkeys([word for name, word in WORDS.items() if name in expected]))
    listed = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return parse_error(text, filename, position, f"expected {listed or 'something else'}, not {found}")


_LOCK = Lock()
"""lark binds the reader's methods when it is made, so all parses share one reader, one at a time."""


@lru_cache(maxsize=1)
def _lark() -> tuple[Lark, _Reader]:
    from lark import Lark

    reader = _Reader()
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", transformer=reader), reader
