"""A joint program taken apart into forward and reverse."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tpc.ir.builder import Builder
from tpc.ir.program import Op, Program, Value
from tpc.passes.report import Saved, describe
from tpc.passes.saved import Choice, Demand, choose


@dataclass(frozen=True, slots=True)
class Split:
    """Two programs that together compute what the joint one did.

    `forward` takes the inputs `forward_inputs` of the joint program, in order, and returns the first outputs, then what is saved.
    `reverse` takes, for each of `reverse_inputs`, that output of `forward` (``("forward", n)``) or that input of the joint program
    (``("input", n)``: an input that lives anyway, or a cotangent), and returns the remaining outputs.
    """

    forward: Program
    reverse: Program
    forward_inputs: tuple[int, ...]
    reverse_inputs: tuple[tuple[str, int], ...]
    saved: tuple[Saved, ...]


def split(joint: Program, num_forward_outputs: int, cotangent_inputs: Collection[int], memory_budget: float = 1.0) -> Split:
    """Splits a program whose outputs are those of forward, then gradients that also depend on cotangents.

    Before: ``@f (%x, %dy) -> (y, dx)``. After: ``@f.forward (%x) -> (y, saved)`` and ``@f.reverse (%x, saved, %dy) -> (dx)``. Which values
    are saved, read from inputs or outputs that live anyway, or computed again in reverse is decided in `saved`.
    """
    count = len(joint.outputs)
    if not 0 <= num_forward_outputs <= count:
        raise ValueError(f"num_forward_outputs must be between 0 and {count}, not {num_forward_outputs}")
    if wrong := sorted(i for i in cotangent_inputs if not 0 <= i < len(joint.inputs)):
        raise ValueError(f"cotangent_inputs names input {wrong[0]} of a program that has {len(joint.inputs)}")
    given = {joint.inputs[i] for i in cotangent_inputs}
    late = _dependents(joint, given)
    primal, gradients = joint.outputs[:num_forward_outputs], joint.outputs[num_forward_outputs:]
    if any(v in given or v.op in late for v in primal):
        raise ValueError(f"@{joint.name}: an output of forward depends on a cotangent")
    read = [v for op in joint.ops if op in late for v in op.operands]
    read += gradients
    wanted = tuple(dict.fromkeys(v for v in read if v.op not in late and v not in given))
    # What forward overwrites is no longer there for reverse.
    written = {joint.inputs[w] for w in joint.writes[:num_forward_outputs] if w is not None}
    free = frozenset(v for v in (*joint.inputs, *primal) if v not in given and v not in written)
    choices = choose(Demand(wanted, free), memory_budget)
    return _Splitter(joint, num_forward_outputs, late, given, choices).run()


def _dependents(program: Program, given: Collection[Value]) -> set[Op]:
    late: set[Op] = set()
    for op in program.ops:
        if any(v in given or v.op in late for v in op.operands):
            late.add(op)
    return late


class _Splitter:
    def __init__(self, joint: Program, count: int, late: set[Op], given: set[Value], choices: list[Choice]) -> None:
        self.joint = joint
        self.count = count
        self.late = late
        self.given = given
        self.choices = choices
        self.again = {c.value for c in choices if c.decision == "recomputed"}

    def run(self) -> Split:
        joint, primal = self.joint, self.joint.outputs[: self.count]
        kept = [c.value for c in self.choices if c.decision == "kept"]
        outputs = [*primal, *kept]
        forward = Builder(f"{joint.name}.forward")
        forward_inputs = tuple(i for i, v in enumerate(joint.inputs) if v not in self.given)
        values = {joint.inputs[i]: forward.input(joint.inputs[i].type, joint.inputs[i].name) for i in forward_inputs}
        for op in joint.ops:
            if op not in self.late:
                _copy(forward, op, values)
        renumbered = {i: n for n, i in enumerate(forward_inputs)}
        writes = [renumbered.get(w) if w is not None else None for w in joint.writes[: self.count]] + [None] * len(kept)
        reverse, reverse_inputs = self._reverse({v: n for n, v in reversed(list(enumerate(outputs)))})
        return Split(
            forward.finish([values[v] for v in outputs], writes),
            reverse,
            forward_inputs,
            reverse_inputs,
            describe(self.choices, joint, self.late),
        )

    def _reverse(self, position: dict[Value, int]) -> tuple[Program, tuple[tuple[str, int], ...]]:
        """The reverse program. Saved values come first, then inputs that live anyway, then cotangents."""
        joint = self.joint
        saved = [c.value for c in self.choices if c.decision in ("kept", "output")]
        alive = {c.value for c in self.choices if c.decision == "input"}
        inputs = [i for i, v in enumerate(joint.inputs) if v in alive] + [i for i, v in enumerate(joint.inputs) if v in self.given]
        builder = Builder(f"{joint.name}.reverse")
        values = {v: builder.input(v.type, f"saved{i}") for i, v in enumerate(saved)}
        values.update((joint.inputs[i], builder.input(joint.inputs[i].type, joint.inputs[i].name)) for i in inputs)
        needed = {v.op for v in self.again}
        for op in joint.ops:
            if op in self.late or op in needed:
                _copy(builder, op, values)
        program = builder.finish([values[v] for v in joint.outputs[self.count :]])
        origins = [*(("forward", position[v]) for v in saved), *(("input", i) for i in inputs)]
        return program, tuple(origins)


def _copy(builder: Builder, op: Op, values: dict[Value, Value]) -> None:
    copy = builder.append(Op(op.defn, [values[v] for v in op.operands], op.attrs, op.types, op.scopes, op.loc, op.bodies))
    for old, new in zip(op.results, copy.results, strict=True):
        values.setdefault(old, new)
