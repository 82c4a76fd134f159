"""Drawings of programs: forward beside backward, what is kept between them, and what was fused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tpc.drawing.dot import dot_text
from tpc.drawing.labels import output_labels
from tpc.drawing.pictures import picture
from tpc.drawing.rendering import FORMATS, TIMEOUT, RenderError, render
from tpc.drawing.scene import Handover, Scene, scenes
from tpc.files import write_file
from tpc.ir.program import Module, Program

if TYPE_CHECKING:
    from tpc.trace import Traced

DOT_SUFFIXES = ("dot", "gv")


def draw(
    what: Traced | Module | Program,
    path: str | Path | None = None,
    *,
    stage: str = "optimized",
    collapse: int | None = None,
    timeout: float = TIMEOUT,
) -> str:
    """Draws programs, forward beside backward, and returns the DOT text.

    With a `path`, writes the picture too: its suffix says how (.svg, .png, .pdf ... need a Graphviz, .dot does not). `stage` is that of a
    traced function. `collapse` is how deeply nested Function applications get boxes of their own: 1 for the outermost only, 0 for one box
    for all applications of a Function, None for as many as are readable. Where rendering is impossible or takes longer than `timeout`
    seconds, `RenderError` says why, and the DOT text is beside `path`.
    """
    if collapse is not None and collapse < 0:
        raise ValueError(f"collapse must be None, 0 or more, not {collapse}")
    format = None if path is None else format_of(path)
    text = dot_of(what, stage, collapse)
    if path is None or format is None:
        return text
    if format in DOT_SUFFIXES:
        write_file(path, text)
        return text
    try:
        write_file(path, render(text, format, timeout))
    except RenderError as error:
        beside = Path(path).with_suffix(".dot")
        write_file(beside, text)
        raise RenderError(f"{path} was not drawn: {error}. The DOT text is in {beside}") from None
    return text


def svg(what: Traced | Module | Program, timeout: float = 10.0) -> str | None:
    """The picture as SVG; None where it cannot be rendered."""
    try:
        return render(dot_of(what), "svg", timeout).decode()
    except RenderError:
        return None


def format_of(path: str | Path) -> str:
    """The format that a path asks for; `ValueError` for a suffix that means nothing."""
    format = Path(path).suffix.lower().removeprefix(".")
    if format not in (*DOT_SUFFIXES, *FORMATS):
        raise ValueError(f"{str(path)!r} must end in {', '.join('.' + f for f in FORMATS)} or .dot")
    return format


def dot_of(what: Traced | Module | Program, stage: str = "optimized", collapse: int | None = None) -> str:
    """The DOT text alone."""
    if isinstance(what, Program):
        what = Module([what])
    if isinstance(what, Module):
        title = " ".join([f"@{name}" for name in what.programs])
        found = scenes(what)
    else:
        title, found = f"@{what.name} ({stage})", _scenes_of(what, stage)
    return dot_text(title if len(title) <= 100 else f"{title[:97]}...", [picture(scene, collapse) for scene in found])


def _scenes_of(traced: Traced, stage: str) -> list[Scene]:
    module = traced.stage("optimized" if stage == "plan" else stage)
    assert isinstance(module, Module)
    handover = Handover(traced.body.halves.reverse_inputs, len(traced.body.outputs)) if len(module.programs) == 2 else None
    labels = {} if stage == "reverse" else output_labels(traced.body)
    return scenes(module, handover, traced.memory_budget, labels)
