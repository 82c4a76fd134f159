"""Reads the coarse tokens of the text format: types, attributes, scopes, locations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache

from tpc.ir.attrs import why_not_int
from tpc.ir.names import SCOPE, STRING, unquoted
from tpc.ir.opdef import AttrValue
from tpc.ir.program import Loc
from tpc.ir.signature import why_not_type
from tpc.ir.types import NUMPY_DTYPES, TensorType, tensor_type

MAX_NESTING = 16
"""How deep attribute tuples, and bodies of ops, may be nested."""

_TYPE = re.compile(r"\s*(\w+)\s*\[([^\]]*)\]\s*,?")
_SIZE = re.compile(r"\s*([0-9]{1,20})\s*$")
_SCOPES = re.compile(f"@({SCOPE}|{STRING})")
_LOC = re.compile(rf"loc\(({STRING}):(-?\d{{1,18}})(?: in ({STRING}))?\)$")
_ATTR_TOKEN = re.compile(rf"\s*(?:({STRING})|([A-Za-z_]\w*)|(-?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|inf\b))|(.|$))")
_WORDS: dict[str, AttrValue] = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


class Misread(Exception):
    """What is wrong with a token, and at which of its characters."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@lru_cache(maxsize=1 << 12)
def read_types(text: str) -> tuple[TensorType, ...]:
    """``f32[3], i64[]``"""
    return tuple(_type(match) for match in _TYPE.finditer(text))


def _type(match: re.Match[str]) -> TensorType:
    dtype, shape = match.groups()
    if dtype not in NUMPY_DTYPES:
        near = difflib.get_close_matches(dtype, NUMPY_DTYPES, 1, 0.5)
        raise Misread(match.start(1), f"unknown element type {dtype!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    sizes = []
    for size in shape.split(",") if shape.strip() else []:
        digits = _SIZE.match(size)
        if digits is None:
            shown = size.strip() if len(size) < 40 else f"{size.strip()[:30]}..."
            raise Misread(match.start(2), f"{shown!r} is no size of an axis")
        sizes.append(int(digits[1]))
    result = tensor_type(dtype, tuple(sizes))
    if (why := why_not_type(result)) is not None:
        raise Misread(match.start(1), why)
    return result


def read_scopes(text: str) -> tuple[str, ...]:
    """``@Swish#0, @"any text"``"""
    return tuple(_string(match[1], match.start(1)) for match in _SCOPES.finditer(text))


@lru_cache(maxsize=1 << 12)
def read_loc(text: str) -> Loc:
    """``loc("swish.py":12 in "backward")``"""
    match = _LOC.match(text)
    if match is None:
        raise Misread(0, 'a location reads loc("file":line) or loc("file":line in "function")')
    file, line, function = match.groups()
    return Loc(_string(file, match.start(1)), int(line), _string(function, match.start(3)) if function else "")


def read_attrs(text: str) -> Mapping[str, AttrValue]:
    """``{dim=1, stable=true}``; the result must not be changed."""
    return _cached_attrs(text) if len(text) < 200 else _Attrs(text).read()


def _string(text: str, offset: int) -> str:
    if not text.startswith('"'):
        return text
    try:
        return unquoted(text)
    except (ValueError, OverflowError) as error:
        raise Misread(offset, str(error)) from None


class _Attrs:
    """Recursive descent over ``{name=value, ...}``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = 1
        self.next()

    def next(self) -> None:
        match = _ATTR_TOKEN.match(self.text, self.end)
        assert match is not None  # the last alternative takes anything
        self.string, self.word, self.number, self.sign = match.groups()
        self.start, self.end = match.start(match.lastindex or 0), match.end()

    def expect(self, sign: str) -> None:
        if self.sign != sign:
            raise self.wrong(f"expected {sign!r}")
        self.next()

    def wrong(self, message: str) -> Misread:
        return Misread(self.start, message)

    def read(self) -> dict[str, AttrValue]:
        attrs: dict[str, AttrValue] = {}
        while self.sign != "}":
            name = self.word
            if not name:
                raise self.wrong("expected the name of an attribute")
            if name in attrs:
                raise self.wrong(f"attribute {name!r} is given twice")
            self.next()
            self.expect("=")
            attrs[name] = self.value(0)
            if self.sign != "}":
                self.expect(",")
        return attrs

    def value(self, depth: int) -> AttrValue:
        if depth > MAX_NESTING:
            raise self.wrong(f"nested too deep: tuples may be nested {MAX_NESTING} deep")
        if self.sign == "[":
            return self.tuple(depth)
        result: AttrValue
        if self.string is not None:
            result = _string(self.string, self.start)
        elif self.number is not None:
            result = self.read_number(self.number)
        elif self.word == "complex":
            return self.complex()
        elif self.word in _WORDS:
            result = _WORDS[self.word]
        else:
            raise self.wrong("expected a value: a number, a string, true, false, none or [...]")
        self.next()
        return result

    def tuple(self, depth: int) -> AttrValue:
        self.next()
        items = []
        while self.sign != "]":
            items.append(self.value(depth + 1))
            if self.sign != "]":
                self.expect(",")
        self.next()
        return tuple(items)

    def complex(self) -> AttrValue:
        self.next()
        self.expect("(")
        real = self.part()
        self.expect(",")
        imaginary = self.part()
        self.expect(")")
        return complex(real, imaginary)

    def part(self) -> float:
        if self.number is None and self.word not in ("inf", "nan"):
            raise self.wrong("expected a number")
        result = float(self.number or self.word)
        self.next()
        return result

    def read_number(self, number: str) -> int | float:
        if not number.lstrip("-").isdecimal():
            return float(number)
        why = why_not_int(int(number)) if len(number) < 40 else f"an integer of {len(number)} digits does not fit into 64 bits"
        if why is not None:
            raise self.wrong(why)
        return int(number)


_cached_attrs = lru_cache(maxsize=1 << 12)(lambda text: _Attrs(text).read())
