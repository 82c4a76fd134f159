"""Pictures as DOT text.

Edges of backward are written from reader to maker with ``dir=back``: layout then puts a backward node beside its Function instead of
far below, and takes seconds where it would take minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from tpc.drawing.pictures import Box, Edge, Picture
from tpc.drawing.scene import COLUMNS
from tpc.drawing.style import BOXES, COLUMN_FILL, FAINT, FONT, FUSED, GAP, INK, LEGEND, LINE, SAVED_EDGE
from tpc.ir.printer import print_op
from tpc.ir.program import Value
from tpc.report import place_text, size_text

MAX_TOOLTIP = 25
"""Lines of the text that SVG shows over a box."""
MAX_LABEL = 3
"""Types named on an edge."""


def dot_text(title: str, pictures: Sequence[Picture]) -> str:
    """The DOT text of one graph that holds all pictures."""
    drawn = [_Drawn(p, f"p{i}_" if len(pictures) > 1 else "") for i, p in enumerate(pictures)]
    used = {key for d in drawn for key in d.looks()}
    lines = [f"digraph {_quoted(title)} {{", *_defaults(_heading(title, pictures, used))]
    for number, one in enumerate(drawn):
        if len(drawn) == 1:
            lines += one.lines()
        else:
            label = f"label=<<b>@{escape(one.picture.scene.name)}</b>>, labeljust=l, color={_quoted(GAP)}, style=rounded"
            lines += [f"  subgraph cluster_program{number} {{", f"    graph [{label}]", *[f"  {line}" for line in one.lines()], "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _defaults(heading: str) -> list[str]:
    font = f"fontname={FONT}, fontcolor={_quoted(INK)}"
    return [
        f"  graph [label=<{heading}>, labelloc=t, labeljust=l, {font}, fontsize=11, bgcolor=white, pad=0.3, newrank=true,"
        " nodesep=0.22, ranksep=0.42, dpi=96]",
        f'  node [{font}, fontsize=11, shape=box, margin="0.11,0.06", height=0.3, width=0.5]',
        f"  edge [fontname={FONT}, fontsize=8.5, fontcolor={_quoted(FAINT)}, color={_quoted(LINE)}, arrowsize=0.65]",
    ]


def _heading(title: str, pictures: Sequence[Picture], used: set[str]) -> str:
    facts = []
    steps = [step for p in pictures for step in p.scene.steps]
    facts.append(f"{len(steps)} ops")
    if groups := sum(len(p.scene.groups) for p in pictures):
        facts.append(f"{groups} fused group{'s' * (groups > 1)}")
    kept = [v for p in pictures for box in p.boxes if box.kind == "saved" and box.decision == "kept" for v in box.values]
    if kept:
        facts.append(f"{len(kept)} value{'s' * (len(kept) > 1)} kept for backward, {size_text(sum(v.type.nbytes for v in kept))}")
    cells = [_sample(key, meaning) for key, meaning in LEGEND if key in used]
    legend = "".join([f"<tr>{''.join(cells[i : i + 5])}</tr>" for i in range(0, len(cells), 5)])
    head = f'<tr><td colspan="5" align="left"><font point-size="15"><b>{escape(title)}</b></font></td></tr>'
    counts = f'<tr><td colspan="5" align="left"><font color="{FAINT}">{escape(", ".join(facts))}</font></td></tr>'
    return f'<table border="0" cellborder="0" cellspacing="5" cellpadding="3">{head}{counts}{legend}</table>'


def _sample(key: str, meaning: str) -> str:
    look = FUSED if key == "fused" else BOXES[key]
    style = ",".join([s for s in look.style.split(",") if s in ("rounded", "dashed")])
    styled = f' style="{style}"' if style else ""
    border = 2 if look.width > 1.5 else 1
    content = f'<font point-size="9">{escape(meaning)}</font>'
    return f'<td border="{border}" color="{look.border}" bgcolor="{look.fill}"{styled}>{content}</td>'


class _Drawn:
    """One picture with the identifiers of its boxes."""

    def __init__(self, picture: Picture, prefix: str) -> None:
        self.picture = picture
        self.ids = {box: f"{prefix}{box.kind[0]}{number}" for number, box in enumerate(picture.boxes)}
        self.prefix = prefix
        self.names = _names(picture)
        self.readers: dict[Box, list[Box]] = {}
        for edge in picture.edges:
            if edge.saved and edge.tail.kind in ("saved", "input"):
                self.readers.setdefault(edge.tail, []).append(edge.head)

    def looks(self) -> Iterator[str]:
        for box in self.picture.boxes:
            yield _look(box)
            if box.group is not None:
                yield "fused"

    def lines(self) -> Iterator[str]:
        inside = [box for box in self.picture.boxes if box.column]
        for box in self.picture.boxes:
            if not box.column and box.group is None:
                yield f"  {self._node(box)}"
        yield from self._groups([box for box in self.picture.boxes if not box.column], "  ")
        for number, column in enumerate(COLUMNS):
            members = [box for box in inside if box.column == column]
            if not members:
                continue
            yield f"  subgraph cluster_{self.prefix}column{number} {{"
            label = f'<<font point-size="12" color="{FAINT}"><b>{column}</b></font>>'
            look = f'style="rounded,filled", color={_quoted(GAP)}, fillcolor={_quoted(COLUMN_FILL)}'
            yield f"    graph [label={label}, labeljust=l, {look}, margin=12]"
            for box in members:
                if box.group is None:
                    yield f"    {self._node(box)}"
            yield from self._groups(members, "    ")
            yield "  }"
        for edge in self.picture.edges:
            yield f"  {self._edge(edge)}"

    def _groups(self, boxes: Iterable[Box], indent: str) -> Iterator[str]:
        groups: dict[int, list[Box]] = {}
        for box in boxes:
            if box.group is not None:
                groups.setdefault(box.group, []).append(box)
        for group, members in groups.items():
            yield f"{indent}subgraph cluster_{self.prefix}fused{group} {{"
            label = f'<<font point-size="9" color="{FUSED.border}">fused: {self.picture.scene.groups[group]} ops</font>>'
            look = f"style={_quoted(FUSED.style)}, color={_quoted(FUSED.border)}, fillcolor={_quoted(FUSED.fill)}"
            yield f"{indent}  graph [label={label}, labeljust=l, {look}, margin=8]"
            for box in members:
                yield f"{indent}  {self._node(box)}"
            yield f"{indent}}}"

    # --- nodes ---

    def _node(self, box: Box) -> str:
        look = BOXES[_look(box)]
        attrs = [
            f"label=<{self._label(box)}>",
            f"shape={look.shape}",
            f"style={_quoted(look.style)}",
            f"fillcolor={_quoted(look.fill)}",
            f"color={_quoted(look.border)}",
            f"penwidth={look.width}",
            f"tooltip={_quoted(self._tooltip(box))}",
        ]
        return f"{self.ids[box]} [{', '.join(attrs)}]"

    def _label(self, box: Box) -> str:
        title = escape(box.title)
        if box.kind in ("function", "backward", "again"):
            name, mark, number = title.partition("#")
            title = f"<b>{name}</b>" + (f'<font color="{FAINT}">{mark}{number}</font>' if mark else "")
        elif box.kind == "op":
            title = f'<font point-size="10">{title}</font>'
        elif box.kind == "saved" and len(box.values) == 1:
            title = f"<b>{title}</b>, {size_text(box.values[0].type.nbytes)}"
        notes = [*box.notes, *self._notes(box)]
        return "<br/>".join([title, *[f'<font point-size="8.5" color="{FAINT}">{escape(note)}</font>' for note in notes]])

    def _notes(self, box: Box) -> list[str]:
        """What boxes of values say under their title."""
        if not box.values:
            return []
        (value, *others) = box.values
        notes = [] if others or box.kind == "saved" else [f"{value.type}, {size_text(value.type.nbytes)}"]
        if box.kind == "input" and box.decision == "input":
            notes.append(f"read by backward: {self._span(box)}")
        if box.kind == "saved":
            made = "" if others or value.op is None else ", ".join([part for part in (value.op.name, place_text(value.op.loc)) if part])
            notes.append(f"{_DECISIONS[box.decision]}{': ' if made else ''}{made}")
            notes.append(f"read by {self._span(box)}")
        return notes

    def _span(self, box: Box) -> str:
        """First and last reader."""
        readers = list(dict.fromkeys([reader.title for reader in self._in_order(self.readers.get(box, []))]))
        return readers[0] if len(readers) == 1 else f"{readers[0]} to {readers[-1]}" if readers else "nobody"

    def _in_order(self, boxes: Iterable[Box]) -> list[Box]:
        place = {id(step): number for number, step in enumerate(self.picture.scene.steps)}
        return sorted(boxes, key=lambda box: min([place[id(step)] for step in box.steps], default=0))

    def _tooltip(self, box: Box) -> str:
        lines = [print_op(step.op, self.names, longest=60) for step in box.steps] or [self._value(v) for v in box.values]
        if box.kind == "saved":
            _, reason = self.picture.scene.decisions.get(box.values[0], ("", ""))
            lines += [reason] if reason else []
        more = len(lines) - MAX_TOOLTIP
        return "\n".join([*lines[:MAX_TOOLTIP], *([f"and {more} more"] if more > 0 else [])])

    def _value(self, value: Value) -> str:
        return f"%{self.names.get(value, '?')}: {value.type}, {value.type.nbytes} bytes"

    # --- edges ---

    def _edge(self, edge: Edge) -> str:
        tail, head = self.ids[edge.tail], self.ids[edge.head]
        size = sum(v.type.nbytes for v in edge.values)
        attrs = [f"tooltip={_quoted('; '.join(map(self._value, edge.values[:MAX_TOOLTIP])))}", f"penwidth={_width(size):.1f}"]
        if edge.tail.kind in _OPS and edge.head.kind in _OPS:
            attrs.append(f"label={_edge_label(edge.values)}")
        if edge.saved:
            attrs += [f"color={_quoted(SAVED_EDGE)}", "style=dashed"]
        if edge.tail.kind == "saved" or edge.head.kind == "saved":
            attrs.append("weight=3")
        if edge.reversed:
            tail, head = head, tail
            attrs.append("dir=back")
        return f"{tail} -> {head} [{', '.join(attrs)}]"


_OPS = ("function", "backward", "again", "op")
_DECISIONS = {"kept": "kept", "recomputed": "not kept, computed again", "output": "not kept, an output", "input": "read from an input"}


def _look(box: Box) -> str:
    if box.kind != "saved":
        return box.kind
    return "output value" if box.decision in ("output", "input") else box.decision


def _edge_label(values: Sequence[Value]) -> str:
    """Types and bytes, a little to the right of the edge."""
    types = Counter([str(v.type) for v in values])
    lines = [text if count == 1 else f"{count} x {text}" for text, count in list(types.items())[:MAX_LABEL]]
    lines += ["..."] if len(types) > MAX_LABEL else []
    lines.append(size_text(sum(v.type.nbytes for v in values)))
    return '"' + "".join([f"  {line}\\l" for line in lines]) + '"'


def _width(size: int) -> float:
    """Wider lines for more bytes: one step for each factor of 64."""
    return min(2.8, 0.7 + 0.35 * (max(size, 1).bit_length() // 6))


def _names(picture: Picture) -> dict[Value, str]:
    """Names for the values of a scene, unique within it; inputs keep theirs."""
    names = {entry.value: entry.name.removeprefix("%") for entry in picture.scene.entries}
    results = (result for step in picture.scene.steps for result in step.op.results)
    names.update((result, str(number)) for number, result in enumerate(results))
    for step in picture.scene.steps:
        for inner, outer in zip(step.op.operands, step.operands, strict=True):
            names.setdefault(inner, names.get(outer, "?"))
    return names


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
