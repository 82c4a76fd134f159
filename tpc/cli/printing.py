"""Programs and pictures on their way out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tpc.cli.stop import failed, usage
from tpc.cli.streams import emit, paint_for
from tpc.drawing.rendering import RenderError, render
from tpc.ir.json_form import to_json
from tpc.ir.names import plain
from tpc.ir.printer import print_module
from tpc.ir.program import Module, Program

SUFFIXES = {"tir": "text", "txt": "text", "json": "json", "dot": "dot", "gv": "dot", "svg": "svg", "png": "png", "pdf": "pdf"}
"""What the suffix of an output file says about its format."""


def format_for(command: str, asked: str | None, path: str | None, allowed: Sequence[str]) -> str:
    """``--format``, else what the output file is called, else the first of `allowed`."""
    if asked is not None:
        return asked
    if path is None or path == "-":
        return allowed[0]
    format = SUFFIXES.get(Path(path).suffix.lower().removeprefix("."), allowed[0])
    if format not in allowed:
        raise usage(command, f"cannot write {path}: tpc {command} writes {', '.join(allowed)}")
    return format


def emit_module(command: str, module: Module, format: str, path: str | None, color: str) -> None:
    """Writes programs as text or JSON."""
    if format == "json":
        emit(command, json.dumps(to_json(module), allow_nan=False), path)
        return
    colour = paint_for(color, to_file=path not in (None, "-")) is not plain
    emit(command, print_module(module, colour=colour), path)


def emit_picture(command: str, text: str, format: str, path: str | None, timeout: float) -> None:
    """Renders DOT text; where that is impossible, the DOT text is left beside the output and the command ends with 1."""
    if format == "dot":
        emit(command, text, path)
        return
    if path is None and format != "svg" and sys.stdout.isatty():
        raise usage(command, f"{format} is not for terminals: give -o FILE, or -o - to write it anyway")
    try:
        picture = render(text, format, timeout)
    except RenderError as error:
        if path is None or path == "-":
            raise failed(command, f"nothing was drawn: {error}. With --format dot you get the DOT text") from None
        beside = str(Path(path).with_suffix(".dot"))
        emit(command, text, beside)
        raise failed(command, f"{path} was not drawn: {error}. The DOT text is in {beside}") from None
    emit(command, picture, path)


class Watch:
    """Prints programs to stderr, after the pass that was asked for or after each that changes something."""

    def __init__(self, which: str) -> None:
        self.which = which
        self.last: dict[str, str] = {}

    def __call__(self, name: str, program: Program) -> None:
        changed = self.last.get(program.name) != print_module(Module([program]))
        if name == self.which or (self.which == "all" and changed):
            self.show(name, program)
        elif self.which == "all" and name != "input":
            print(f"// after {name}: @{program.name} is unchanged\n", file=sys.stderr)

    def show(self, name: str, program: Program) -> None:
        text = self.last[program.name] = print_module(Module([program]))
        where = "before all passes" if name == "input" else f"after {name}"
        print(f"// {where}: @{program.name}\n{text}", file=sys.stderr)
