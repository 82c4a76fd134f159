"""Errors as users should see them: their own frames, without ours; and a way to report what is our fault."""

from __future__ import annotations

import platform
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

import tpc

_HOUSE = Path(tpc.__file__).parent
_ROOMS = tuple(f"{path}/" for room in ("", "ir", "passes", "runtime") for path in (_HOUSE / room, (_HOUSE / room).resolve()))
_PASSES = tuple(f"{path}/" for path in (_HOUSE / "passes", (_HOUSE / "passes").resolve()))
_DELIBERATE = (RuntimeError, TypeError, ValueError, IndexError)
"""What tpc raises on purpose, `NotImplementedError` and all `TpcError` included; anything else without user code is a fault of tpc."""


def version() -> str:
    try:
        number = metadata.version("tpc")
    except metadata.PackageNotFoundError:
        number = "(not installed)"
    return f"tpc {number}, Python {platform.python_version()}, NumPy {np.__version__}"


def is_internal(error: BaseException) -> bool:
    """Whether an error that came out of tracing is a fault of tpc rather than of the traced program."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [name for name in files if name.startswith(_ROOMS)]
    if ours and ours[-1].startswith(_PASSES):
        return True
    if any(_is_shown(name) for name in files) or isinstance(error, SyntaxError):
        return False
    return not isinstance(error, _DELIBERATE)


def user_traceback(error: BaseException) -> str:
    """The traceback without frames of tpc and of Python's import system."""
    found = traceback.TracebackException.from_exception(error)
    for one in _chain(found, set()):
        one.stack = traceback.StackSummary.from_list([frame for frame in one.stack if _is_shown(frame.filename)])
    if found.stack or found.__cause__ or found.__context__:
        return "".join(found.format()).rstrip()
    return "".join(found.format_exception_only()).rstrip()


def internal_report(error: BaseException, words: Sequence[str]) -> str:
    """The whole traceback, and how to make a report of it."""
    return "\n".join(
        [
            "".join(traceback.format_exception(error)).rstrip(),
            "",
            "tpc: internal error: this is a fault of tpc, not of your program. A report needs the traceback above and",
            f"  the command:  tpc {shlex.join(words)}",
            f"  the versions: {version()}, {sys.platform}",
            "  a reproducer: run it again with TPC_DUMP=dump TPC_VERIFY=1 and add the folder dump; TPC_SKIP=NAME leaves out a pass",
        ]
    )


def _is_shown(filename: str) -> bool:
    return not filename.startswith((*_ROOMS, "<frozen importlib"))


def _chain(one: traceback.TracebackException | None, seen: set[int]) -> Iterator[traceback.TracebackException]:
    if one is None or id(one) in seen:
        return
    seen.add(id(one))
    yield one
    for other in (one.__cause__, one.__context__, *(one.exceptions or ())):
        yield from _chain(other, seen)
