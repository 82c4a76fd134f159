"""What a program is: values, ops, programs, modules. Immutable; passes build new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.types import TensorType


class Loc(NamedTuple):
    """A line of the user's program. Never part of equality between ops."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Value:
    """One result of an op, or an input of a program (`op` is None). Compared by identity."""

    __slots__ = ("index", "name", "op", "type")

    def __init__(self, op: Op | None, index: int, type: TensorType, name: str | None = None) -> None:
        self.op = op
        self.index = index
        self.type = type
        self.name = name
        """The user's name of a program input; results have none."""

    def __repr__(self) -> str:
        where = "input" if self.op is None else self.op.name
        return f"<Value {self.name or ''} {self.type} of {where}>"


class Op:
    """One operation: reads `operands`, defines `results`.

    `scopes` are the Function applications that the op belongs to, outermost first within a path
    (``"Outer#0/InnerBackward#1"``); a fused op keeps those of all it was made of. `bodies` are small programs that
    the op runs: that of a `fusion`, the branches of a `cond`.
    """

    __slots__ = ("attrs", "bodies", "defn", "loc", "operands", "results", "scopes")

    def __init__(
        self,
        defn: OpDef,
        operands: Sequence[Value],
        attrs: Mapping[str, AttrValue],
        types: Iterable[TensorType],
        scopes: tuple[str, ...] = (),
        loc: Loc | None = None,
        bodies: tuple[Program, ...] = (),
    ) -> None:
        self.defn = defn
        self.operands = tuple(operands)
        self.attrs = attrs
        self.scopes = scopes
        self.loc = loc
        self.bodies = bodies
        self.results = tuple(Value(self, i, t) for i, t in enumerate(types))

    @property
    def name(self) -> str:
        return self.defn.name

    @property
    def body(self) -> Program | None:
        """The body of a fusion, whose ops are as good as ops of the program itself; None for every other op."""
        return self.bodies[0] if self.defn.fused and self.bodies else None

    @property
    def result(self) -> Value:
        """The only result of a one-result op."""
        (result,) = self.results
        return result

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(r.type for r in self.results)

    def __repr__(self) -> str:
        return f"<Op {self.name} -> {', '.join(map(str, self.types))}>"


class Program:
    """A function of arrays: inputs, ops in execution order, outputs.

    Only ops that the outputs need are kept, in the order given, so dead code is never there.
    `writes[j] == i` says that output j is the new content of input i (a parameter that a training step
    updates): whoever runs the program stores it back, and the planner may write it in place.
    """

    __slots__ = ("inputs", "name", "ops", "outputs", "writes")

    def __init__(
        self,
        name: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        ops: Sequence[Op],
        writes: Sequence[int | None] | None = None,
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.ops = _reached(ops, self.outputs)
        self.writes = tuple(writes) if writes is not None else (None,) * len(self.outputs)

    def __str__(self) -> str:
        from tpc.ir.printer import print_program

        return print_program(self)

    def __repr__(self) -> str:
        return f"<Program @{self.name}: {len(self.inputs)} inputs, {len(self.ops)} ops, {len(self.outputs)} outputs>"


class Module:
    """Programs by name, in order: what `tpc.trace` and `parse` give."""

    __slots__ = ("programs",)

    def __init__(self, programs: Iterable[Program]) -> None:
        self.programs: Mapping[str, Program] = {p.name: p for p in programs}

    def __getitem__(self, name: str) -> Program:
        return self.programs[name]

    def __str__(self) -> str:
        from tpc.ir.printer import print_module

        return print_module(self)


def _reached(ops: Sequence[Op], outputs: Iterable[Value]) -> tuple[Op, ...]:
    needed = {v.op for v in outputs}
    kept = []
    for op in reversed(ops):
        if op in needed:
            kept.append(op)
            needed.update(v.op for v in op.operands)
    return tuple(reversed(kept))
