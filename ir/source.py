"""Faults in source text, shown at their place."""

from __future__ import annotations

from tpc.ir.errors import ParseError

_WIDEST = 120
"""Longer source lines are shown around the fault only."""


def parse_error(text: str, filename: str, position: int, message: str) -> ParseError:
    """``file:line:column: error: message``, the source line and a caret below the character at `position`."""
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    line, column = text.count("\n", 0, position) + 1, position - begin
    first = max(begin, min(position - _WIDEST // 2, end - _WIDEST))
    shown = text[first : min(end, first + _WIDEST)]
    shown = "".join([char if char.isprintable() or char == "\t" else "?" for char in shown])
    left, right = "..." * (first > begin), "..." * (first + _WIDEST < end)
    under = "".join(["\t" if char == "\t" else " " for char in left + shown[: position - first]])
    return ParseError(f"{filename}:{line}:{column + 1}: error: {shortened(message, 500)}\n{left}{shown}{right}\n{under}^")


def shortened(text: str, longest: int = 40) -> str:
    """The text, or its beginning and three dots."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
