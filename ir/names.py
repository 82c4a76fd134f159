"""How values, programs and strings are written in text: valid, unique, and readable back."""

from __future__ import annotations

import re
from collections.abc import Callable

from tpc.ir.program import Program, Value

IDENTIFIER = r"[^\W\d][\w.]*"
"""Name of an input or a program; results are numbers."""

SCOPE = r"(?:[\w.#<>-]|/(?!/))+"
"""A scope (or program name) that needs no quotes; ``//`` begins a comment."""

STRING = r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"'

is_identifier = re.compile(IDENTIFIER).fullmatch
_is_bare = re.compile(SCOPE).fullmatch
_escape = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_UNESCAPES = {written[1]: char for char, written in _ESCAPES.items()}


def value_names(program: Program) -> dict[Value, str]:
    """Name of every value, without the ``%``: the user's names for inputs, made valid and unique, and numbers for results."""
    names: dict[Value, str] = {}
    taken: dict[str, int] = {}
    for position, value in enumerate(program.inputs):
        name = wanted = _valid(value.name or "") or f"arg{position}"
        while name in taken:
            taken[wanted] += 1
            name = f"{wanted}_{taken[wanted]}"
        taken[name] = 0
        names[value] = name
    results = (result for op in program.ops for result in op.results)
    names.update((result, str(number)) for number, result in enumerate(results))
    return names


def at_name(name: str) -> str:
    """``@step.reverse`` or ``@"any text"``: how programs and scopes are written."""
    return f"@{name}" if _is_bare(name) else f"@{quoted(name)}"


def quoted(text: str) -> str:
    """The text as a string on one line; `unquoted` gives it back exactly."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def unquoted(written: str) -> str:
    """The text that `quoted` wrote; `ValueError` for an escape that it never writes."""
    return _escape.sub(_unescaped, written[1:-1]) if "\\" in written else written[1:-1]


def _valid(name: str) -> str:
    if is_identifier(name):
        return name
    name = re.sub(r"[^\w.]+", "_", name).strip("_.")
    return name if is_identifier(name) else f"_{name}" if name else ""


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape not in _UNESCAPES:
        raise ValueError(f"\\{escape} is no escape in a string")
    return _UNESCAPES[escape]


Paint = Callable[[str, str], str]
"""`paint(kind, text)` gives the text as it appears in the output."""

_COLOURS = {"op": "1", "type": "36", "value": "33", "scope": "35", "loc": "2", "keyword": "34", "attr": "32"}


def plain(kind: str, text: str) -> str:
    """A `Paint` that leaves text alone."""
    return text


def ansi(kind: str, text: str) -> str:
    """A `Paint` for terminals."""
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m"
