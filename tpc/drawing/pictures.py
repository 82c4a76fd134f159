"""A scene as boxes and edges: one box for each Function application and backward node, and as few others as readable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from tpc.drawing.scene import COLUMNS, Column, Scene, Step
from tpc.ir.program import Op, Value
from tpc.report import place_text, size_text

Kind: TypeAlias = Literal["function", "backward", "again", "op", "input", "output", "saved"]

MAX_SINGLE = 120
"""With more boxes than this, ops of one line and values with the same neighbours share a box."""
MAX_BOXES = 300
"""With more than this, nested applications are drawn as one, and in the end all applications of a Function are one box."""


class Level(NamedTuple):
    """How much is drawn as one box."""

    depth: int | None
    """Nested Function applications deeper than this belong to the box around them; 0 draws one box for all applications of a Function."""
    lines: bool
    """Ops without a scope that come from one line are one box, and so are inputs, outputs and saved values with the same neighbours."""


@dataclass(slots=True, eq=False)
class Box:
    kind: Kind
    title: str
    column: Column = ""
    group: int | None = None
    steps: list[Step] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decision: str = ""
    """Of a saved value."""
    late: bool = False
    """An input that arrives for backward."""


@dataclass(slots=True, eq=False)
class Edge:
    """Values that go from `tail` to `head`. `reversed` edges are laid out upwards."""

    tail: Box
    head: Box
    values: list[Value]
    saved: bool = False
    reversed: bool = False


@dataclass(slots=True)
class Picture:
    scene: Scene
    boxes: list[Box]
    edges: list[Edge]


def picture(scene: Scene, collapse: int | None = None) -> Picture:
    """The picture of a scene: `collapse` is the depth of nested applications that get boxes of their own, None as deep as readable."""
    levels = list(_levels(scene, collapse))
    for level in levels:
        made = _Builder(scene, level).build()
        if len(made.boxes) <= (MAX_BOXES if level.lines else MAX_SINGLE) or level is levels[-1]:
            break
    return made


def _levels(scene: Scene, collapse: int | None) -> Iterator[Level]:
    if collapse is not None:
        yield Level(collapse, collapse == 0)
        yield Level(collapse, True)
        return
    yield Level(None, False)
    yield Level(None, True)
    deepest = max((scope.count("/") + 1 for step in scene.steps for scope in step.op.scopes), default=1)
    for depth in range(deepest - 1, -1, -1):
        yield Level(depth, True)


class _Builder:
    def __init__(self, scene: Scene, level: Level) -> None:
        self.scene = scene
        self.level = level
        self.boxes: dict[Hashable, Box] = {}
        self.edges: dict[tuple[Box, Box], Edge] = {}
        self.home: dict[Value, Box] = {}
        """The box that defines a value; numbers have none."""
        self.names = {entry.value: entry.name for entry in scene.entries}

    def build(self) -> Picture:
        scene = self.scene
        columns = self._columns_of_readers()
        for entry in scene.entries:
            seen = columns.get(entry.value, set())
            box = Box("input", shortened(entry.name), values=[entry.value], late=entry.late or seen == {"backward"})
            if len(seen) == 1:
                box.column = next(iter(seen))
            self.boxes["input", entry.value] = self.home[entry.value] = box
        shown = {e.value for e in scene.exits}
        for number, step in enumerate(scene.steps):
            if step.is_number and not step.op.scopes and step.op.result not in shown:
                continue
            box = self._box(number, step)
            box.steps.append(step)
            self.home.update(dict.fromkeys(step.op.results, box))
        for step in scene.steps:
            for value in dict.fromkeys(step.operands):
                self._reads(step, value)
        for number, leaving in enumerate(scene.exits):
            self._leaves(number, leaving.value, leaving.name)
        for box in self.boxes.values():
            self._describe(box)
        boxes = list(self.boxes.values())
        edges = list(self.edges.values())
        return _merged(scene, boxes, edges) if self.level.lines else Picture(scene, boxes, edges)

    def _columns_of_readers(self) -> dict[Value, set[Column]]:
        found: dict[Value, set[Column]] = {}
        for step in self.scene.steps:
            for value in step.operands:
                found.setdefault(value, set()).add(step.column)
        return found

    # --- boxes ---

    def _box(self, number: int, step: Step) -> Box:
        op, level = step.op, self.level
        key: tuple[Hashable, ...] = ("op", number)
        group = step.group
        kind: Kind = "op"
        title = op.name
        if op.scopes:
            kind = "backward" if step.is_backward else "function"
            if step.column not in ("", "forward") and not _names_backward(op.scopes[0]):
                kind = "again"
            depth = 1 if level.depth == 0 else level.depth
            paths = tuple(dict.fromkeys(["/".join(scope.split("/")[:depth]) for scope in op.scopes]))
            title = paths[0].rpartition("/")[2]
            key = ("scope", step.column, group, paths)
            if level.depth == 0:
                title, group = title.partition("#")[0], None
                key = ("name", step.column, title)
        elif level.lines and op.loc is not None:
            group = group if level.depth != 0 else None
            key, title = ("line", step.column, group, op.loc[:2]), place_text(op.loc)
        box = self.boxes.get(key)
        if box is None:
            box = self.boxes[key] = Box(kind, title, step.column, group)
        return box

    def _describe(self, box: Box) -> None:
        """The lines under the title of boxes that stand for ops."""
        if not box.steps:
            return
        ops = [step.op for step in box.steps]
        if box.kind == "op" and len(ops) == 1 and box.title == ops[0].name:
            box.notes = [place_text(ops[0].loc)] if ops[0].loc is not None else []
            return
        applied = {scope.rpartition("/")[2] for op in ops for scope in op.scopes[:1]}
        box.notes = [_content(ops)]
        if box.kind == "again":
            readers = [s.rpartition("/")[2] for op in ops for s in op.scopes if _names_backward(s)]
            box.notes.insert(0, f"computed again for {readers[0]}" if readers else "computed again")
        if len(applied) > 1:
            box.notes.insert(0, f"{len(applied)} applications")
        paths = [scope.rpartition("/") for op in ops for scope in op.scopes]
        if outer := [path for path, _, name in paths if path and name == box.title]:
            box.notes.append(f"in {outer[0]}")
        if (lines := lines_text(ops)) and box.title not in lines:
            box.notes.append(lines)

    # --- edges ---

    def _reads(self, step: Step, value: Value) -> None:
        reader, maker = self.home.get(step.op.results[0]), self.home.get(value)
        if reader is None or maker is None or reader is maker:
            return
        crosses = maker.kind != "input" and _order(maker.column) < _order(reader.column) and maker.column == "forward"
        if crosses:
            saved = self._saved(value, maker)
            self._edge(saved, reader, value, saved=True, reverse=True)
        elif maker.kind == "input":
            again = reader.column == "backward" and not maker.late
            self._edge(maker, reader, value, saved=again, reverse=maker.late or reader.column == "after backward")
            if again:
                maker.decision = "input"
        else:
            self._edge(maker, reader, value, reverse=reader.column not in ("", "forward"))

    def _saved(self, value: Value, maker: Box) -> Box:
        box = self.boxes.get(("saved", value))
        if box is None:
            decision, _ = self.scene.decisions.get(value, ("kept", ""))
            box = self.boxes["saved", value] = Box("saved", str(value.type), values=[value], decision=decision)
            self._edge(maker, box, value, saved=True)
        return box

    def _leaves(self, number: int, value: Value, name: str) -> None:
        maker = self.home.get(value)
        column = maker.column if maker is not None and maker.kind != "input" else ""
        box = self.boxes["output", number] = Box("output", name, column, values=[value])
        if maker is not None:
            self._edge(maker, box, value, reverse=column not in ("", "forward"))

    def _edge(self, tail: Box, head: Box, value: Value, saved: bool = False, reverse: bool = False) -> None:
        edge = self.edges.get((tail, head))
        if edge is None:
            edge = self.edges[tail, head] = Edge(tail, head, [], saved, reverse)
        if value not in edge.values:
            edge.values.append(value)


def shortened(name: str, longest: int = 32) -> str:
    """The end of a long name is what tells it from others."""
    return name if len(name) <= longest else f"%...{name[4 - longest :]}"


def _order(column: Column) -> int:
    return COLUMNS.index(column) if column else -1


def _names_backward(scope: str) -> bool:
    return scope.rpartition("/")[2].rpartition("#")[0].rstrip("0123456789").endswith("Backward")


def _content(ops: list[Op]) -> str:
    """``3 ops: mul, add``"""
    names = list(dict.fromkeys([op.name for op in ops]))
    text = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return names[0] if len(ops) == 1 else f"{len(ops)} ops: {text}"


def lines_text(ops: Iterable[Op]) -> str:
    """``swish.py:9-11``"""
    locs = [op.loc for op in ops if op.loc is not None]
    if not locs:
        return ""
    lines = [loc.line for loc in locs if loc.file == locs[0].file]
    first = place_text(locs[0]._replace(line=min(lines)))
    return first if min(lines) == max(lines) else f"{first}-{max(lines)}"


# --- inputs, outputs and saved values that look alike --------------------------------------------


def _merged(scene: Scene, boxes: list[Box], edges: list[Edge]) -> Picture:
    """Boxes of values with the same neighbours become one."""
    near: dict[Box, list[tuple[Box, bool]]] = {box: [] for box in boxes}
    for edge in edges:
        near[edge.tail].append((edge.head, True))
        near[edge.head].append((edge.tail, False))
    first: dict[Hashable, Box] = {}
    twin: dict[Box, Box] = {}
    for box in boxes:
        if box.kind in ("input", "output", "saved") and near[box]:
            # Parameters that one Function reads are alike even where an update tells them apart.
            reads = [n for n in near[box] if n[0].column != "after backward"] if box.kind == "input" else []
            twin[box] = first.setdefault((box.kind, box.decision, box.late, box.column, frozenset(reads or near[box])), box)
    for box, kept in twin.items():
        if kept is not box:
            kept.values += box.values
    for kept in set(twin.values()):
        if (count := len(kept.values)) > 1:
            total = size_text(sum(v.type.nbytes for v in kept.values))
            noun = {"input": "inputs", "output": "outputs", "saved": "values"}[kept.kind]
            kept.title = f"{count} {noun}, {total}"
    joined: dict[tuple[Box, Box], Edge] = {}
    for edge in edges:
        ends = twin.get(edge.tail, edge.tail), twin.get(edge.head, edge.head)
        known = joined.setdefault(ends, Edge(*ends, [], edge.saved, edge.reversed))
        known.values += [v for v in edge.values if v not in known.values]
    return Picture(scene, [box for box in boxes if twin.get(box, box) is box], list(joined.values()))
