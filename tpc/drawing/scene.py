"""What there is to draw: the ops of one program, or of a forward and a reverse program, with fused groups opened up.

Ops stand in columns. In a pair, forward and reverse are one column each. In a single program, an op belongs to backward if its scope
names a backward node or it depends on one that does; what depends on backward and leads to no further backward node (the update of a
training step) comes after it, with whatever only serves it. A fused group stands where its first op belongs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tpc.ir.names import value_names
from tpc.ir.program import Module, Op, Program, Value
from tpc.passes.partition import REVERSE_SCOPE, plan_saved

Column: TypeAlias = Literal["forward", "backward", "after backward", ""]
"""Empty where there is no backward."""
COLUMNS: tuple[Column, ...] = ("forward", "backward", "after backward")


@dataclass(frozen=True, slots=True)
class Handover:
    """How a forward program and its reverse program belong together."""

    origins: tuple[tuple[str, int], ...]
    """For each input of reverse ``("forward", output)`` or ``("input", number)``; what is past its inputs comes from outside."""
    results: int
    """How many outputs of forward the caller gets; the others are there for reverse."""


@dataclass(slots=True, eq=False)
class Step:
    """One op outside of fusions; `operands` are values that steps and inputs define."""

    op: Op
    operands: tuple[Value, ...]
    group: int | None
    column: Column = ""

    @property
    def is_backward(self) -> bool:
        """Whether the op belongs to a backward node, wherever it runs."""
        return any(map(REVERSE_SCOPE.search, self.op.scopes))

    @property
    def is_number(self) -> bool:
        """A single number written into the program: too small to draw."""
        return not self.op.operands and len(self.op.results) == 1 and self.op.result.type.numel == 1 and not self.op.defn.random


@dataclass(frozen=True, slots=True)
class Entry:
    """An input of a program. `late` inputs arrive for backward: gradients from outside."""

    value: Value
    name: str
    late: bool = False


@dataclass(frozen=True, slots=True)
class Exit:
    """An output of a program: the new content of input `into` where there is one."""

    value: Value
    name: str
    into: Value | None = None


@dataclass(slots=True)
class Scene:
    """All that one picture shows, before anything is collapsed."""

    name: str
    steps: list[Step] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    """Number of ops of each fused group."""
    decisions: dict[Value, tuple[str, str]] = field(default_factory=dict)
    """For values that go from forward to backward: the decision about it, and why. Values not here are kept."""

    @property
    def has_backward(self) -> bool:
        return any(step.column != "" for step in self.steps)


def scenes(
    module: Module, handover: Handover | None = None, memory_budget: float = 1.0, labels: Mapping[int, str] | None = None
) -> list[Scene]:
    """A scene for every program of the module; ``f.forward`` and ``f.reverse`` share one.

    `handover` is about the only pair of the module; without it, what reverse takes is matched by type and name. `labels` are names for
    outputs of the scene, by number.
    """
    found = []
    for name, program in module.programs.items():
        reverse = module.programs.get(f"{name.removesuffix('.forward')}.reverse") if name.endswith(".forward") else None
        if reverse is not None:
            found.append(_pair(program, reverse, handover))
        elif not (name.endswith(".reverse") and f"{name.removesuffix('.reverse')}.forward" in module.programs):
            found.append(_single(program, memory_budget))
    for scene in found:
        scene.exits = [Exit(e.value, (labels or {}).get(n, e.name), e.into) for n, e in enumerate(scene.exits)]
    return found


class _Reader:
    """Reads programs into a scene."""

    def __init__(self, name: str) -> None:
        self.scene = Scene(name)
        self.alias: dict[Value, Value] = {}

    def value(self, value: Value) -> Value:
        while value in self.alias:
            value = self.alias[value]
        return value

    def steps(self, ops: Sequence[Op], group: int | None = None) -> Iterator[Step]:
        for op in ops:
            if op.body is None:
                yield Step(op, tuple([self.value(v) for v in op.operands]), group)
                continue
            number = group
            if number is None:
                number = len(self.scene.groups)
                self.scene.groups.append(_size(op.body))
            self.alias.update(zip(op.body.inputs, op.operands, strict=True))
            yield from self.steps(op.body.ops, number)
            self.alias.update(zip(op.results, op.body.outputs, strict=True))


def _size(body: Program) -> int:
    return sum(_size(op.body) if op.body is not None else 1 for op in body.ops if op.operands)


def _single(program: Program, memory_budget: float) -> Scene:
    reader = _Reader(program.name)
    scene, names = reader.scene, value_names(program)
    scene.steps = list(reader.steps(program.ops))
    scene.entries = [Entry(v, f"%{names[v]}") for v in program.inputs]
    scene.exits = _exits(reader, program)
    _place(scene)
    if scene.has_backward and not scene.groups:
        scene.decisions = {choice.value: (choice.decision, choice.reason) for choice in plan_saved(program, memory_budget)}
    return scene


def _exits(reader: _Reader, program: Program) -> list[Exit]:
    names = value_names(program)
    exits = []
    for number, (value, target) in enumerate(zip(program.outputs, program.writes, strict=True)):
        into = None if target is None else program.inputs[target]
        exits.append(Exit(reader.value(value), f"output {number}" if into is None else f"new %{names[into]}", into))
    return exits


def _place(scene: Scene) -> None:
    """Gives the steps of a single program their columns, where it has a backward."""
    late: set[Value] = set()
    backward: list[bool] = []
    for step in scene.steps:
        backward.append(step.is_backward or not late.isdisjoint(step.operands))
        if backward[-1]:
            late.update(step.op.results)
    if not any(step.is_backward for step in scene.steps):
        return
    leads_back: set[Value] = set()
    for step, is_late in zip(reversed(scene.steps), reversed(backward), strict=True):
        leads = step.is_backward or not leads_back.isdisjoint(step.op.results)
        if leads:
            leads_back.update(step.operands)
        step.column = "forward" if not is_late else "backward" if leads else "after backward"
    _move_preparations(scene)
    first: dict[int, Column] = {}
    for step in scene.steps:
        if step.group is not None and step.operands:  # constants belong nowhere
            first[step.group] = min(first.get(step.group, step.column), step.column, key=COLUMNS.index)
    for step in scene.steps:
        if step.group is not None:
            step.column = first.get(step.group, step.column)


def _move_preparations(scene: Scene) -> None:
    """Moves what only prepares an update (a step count, a decayed average) after backward, where the update is."""
    model = {e.value for e in scene.exits if e.into is None}
    """Values that the results or gradients of the function depend on."""
    for step in reversed(scene.steps):
        if step.column != "after backward" and (step.op.scopes or step.column == "backward" or not model.isdisjoint(step.op.results)):
            model.update(step.operands)
            model.update(step.op.results)
    given = {e.value for e in scene.entries} | {s.op.result for s in scene.steps if s.is_number}
    apart = [s for s in scene.steps if s.column == "forward" and model.isdisjoint(s.op.results)]
    mixed: set[Value] = set()
    for step in reversed(apart):
        # Running statistics read what the model computes: they stay with it.
        if any(v in model and v not in given for v in step.operands) or not mixed.isdisjoint(step.op.results):
            mixed.update(step.operands)
        else:
            step.column = "after backward"


def _pair(forward: Program, reverse: Program, handover: Handover | None) -> Scene:
    reader = _Reader(forward.name.removesuffix(".forward"))
    scene, names = reader.scene, value_names(reverse)
    scene.entries = [Entry(v, f"%{name}") for v, name in value_names(forward).items() if v.op is None]
    scene.steps = list(reader.steps(forward.ops))
    for step in scene.steps:
        step.column = "forward"
    handed = _matched(forward, reverse) if handover is None else [_source(forward, kind, number) for kind, number in handover.origins]
    for value, source in zip(reverse.inputs, handed, strict=True):
        if source is None:
            scene.entries.append(Entry(value, f"%{names[value]}", late=True))
        else:
            reader.alias[value] = reader.value(source)
    late = list(reader.steps(reverse.ops))
    for step in late:
        step.column = "backward"
    scene.steps += late
    taken = {v for v in handed if v is not None and v.op is not None}
    results = _results(forward, taken) if handover is None else handover.results
    scene.exits = _exits(reader, forward)[:results]
    given = [reader.value(v) for v in forward.outputs[:results] if v in taken]
    scene.decisions = dict.fromkeys(given, ("output", "an output lives anyway"))
    scene.exits += [Exit(e.value, f"gradient {n}", e.into) for n, e in enumerate(_exits(reader, reverse))]
    return scene


def _results(forward: Program, taken: set[Value]) -> int:
    """How many outputs of forward the caller gets: all but the last ones that reverse takes."""
    count = len(forward.outputs)
    while count > 1 and forward.outputs[count - 1] in taken and forward.writes[count - 1] is None:
        count -= 1
    return count


def _matched(forward: Program, reverse: Program) -> list[Value | None]:
    """For each input of reverse the value of forward that it seems to be; None for what comes from outside."""
    by_name = {v.name: v for v in forward.inputs if v.name and not _is_numbered(v.name)}
    found: list[Value | None] = [_same_type(by_name.get(v.name or ""), v) for v in reverse.inputs]
    nameless = [i for i, v in enumerate(reverse.inputs) if found[i] is None and _is_numbered(v.name or "")]
    outputs = list(forward.outputs)
    # What is kept comes last in forward and first in reverse, in the same order.
    for i in reversed(nameless):
        while outputs and outputs[-1].type != reverse.inputs[i].type:
            outputs.pop()
        found[i] = outputs.pop() if outputs else None
    return found


_is_numbered = re.compile(r"((arg|saved)\d+)?").fullmatch
"""Names of saved values, and those the text form gives to inputs without one."""


def _same_type(value: Value | None, other: Value) -> Value | None:
    return value if value is not None and value.type == other.type else None


def _source(forward: Program, kind: str, number: int) -> Value | None:
    if kind == "forward":
        return forward.outputs[number]
    return forward.inputs[number] if number < len(forward.inputs) else None
