"""Reading and writing: files, ``-``, colours."""

from __future__ import annotations

import os
import sys
from io import BytesIO
from pathlib import Path

import numpy as np

from tpc.cli.stop import Stop, usage
from tpc.files import write_file
from tpc.ir.errors import ParseError
from tpc.ir.json_form import loads
from tpc.ir.names import Paint, ansi, plain
from tpc.ir.parser import MAX_CHARACTERS, parse
from tpc.ir.program import Module, Program


def read_module(command: str, path: str, wrong: int) -> Module:
    """The programs of a file of IR text or JSON, ``-`` for stdin; where it is malformed, the command ends with exit code `wrong`."""
    name = "<stdin>" if path == "-" else path
    try:
        text = _text(path)
    except UnicodeDecodeError as error:
        raise Stop(wrong, f"{name}: error: not IR text: {error}") from None
    except OSError as error:
        raise usage(command, f"cannot read {name}: {error.strerror or error}") from None
    try:
        return loads(text, name) if text.lstrip().startswith("{") else parse(text, name)
    except ParseError as error:
        raise Stop(wrong, str(error)) from None


def _text(path: str) -> str:
    # One character more than is allowed is enough for the reader to refuse it.
    if path == "-":
        return sys.stdin.read(MAX_CHARACTERS + 1)
    with open(path, encoding="utf-8") as file:
        return file.read(MAX_CHARACTERS + 1)


def program_of(command: str, module: Module, name: str | None, path: str) -> Program:
    """The program of that name, or the only one."""
    listed = ", ".join([f"@{n}" for n in module.programs]) or "no program"
    if name is None:
        if len(module.programs) == 1:
            return next(iter(module.programs.values()))
        raise usage(command, f"{path} has {listed}; choose one with --program")
    if name.removeprefix("@") not in module.programs:
        raise usage(command, f"{path} has no program @{name.removeprefix('@')}; it has {listed}")
    return module[name.removeprefix("@")]


def read_array(command: str, path: str) -> np.ndarray | dict[str, np.ndarray]:
    """The array of a .npy file, or the arrays of a .npz file by name."""
    try:
        source = BytesIO(sys.stdin.buffer.read()) if path == "-" else path
        loaded = np.load(source, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _native(loaded)
        with loaded:
            return {name: _native(loaded[name]) for name in loaded.files}
    except OSError as error:
        raise usage(command, f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # zipfile, struct, tokenize ... whatever a damaged file makes NumPy raise
        why = next(iter(str(error).splitlines()), type(error).__name__)
        why = "it holds something else" if "pickle" in why else why
        raise usage(command, f"{path} is no .npy or .npz file of plain arrays: {why}") from None


def _native(array: np.ndarray) -> np.ndarray:
    """The array in this machine's byte order, row-major."""
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=None)


def emit(command: str, content: str | bytes, path: str | None) -> None:
    """Writes a result to a file, all of it or nothing, or to stdout."""
    try:
        if path is None or path == "-":
            _print(content)
            return
        write_file(path, content if isinstance(content, bytes) or content.endswith("\n") else content + "\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "to stdout" if path is None or path == "-" else path
        raise usage(command, f"cannot write {where}: {error.strerror or error}") from None


def _print(content: str | bytes) -> None:
    if isinstance(content, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(content if content.endswith("\n") or not content else content + "\n")
    sys.stdout.flush()


def check_writable(command: str, path: str | None) -> None:
    """Ends the command before it works for long if the result could not be written."""
    if path is None or path == "-":
        return
    folder = Path(path).parent
    if Path(path).is_dir() or not folder.is_dir():
        raise usage(command, f"cannot write {path}: {'it is a folder' if Path(path).is_dir() else f'there is no folder {folder}'}")


def paint_for(choice: str, to_file: bool = False) -> Paint:
    """How text on stdout is coloured: ``--color`` decides; ``auto`` means a terminal, unless NO_COLOR is set."""
    if choice == "auto":
        terminal = not to_file and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        return ansi if terminal and not os.environ.get("NO_COLOR") else plain
    return ansi if choice == "always" else plain
