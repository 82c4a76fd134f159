"""What the passes decided, as data for people and tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tpc.ir.plan import plan_memory
from tpc.ir.program import Loc, Op, Program, Value
from tpc.ir.types import TensorType
from tpc.ir.uses import users
from tpc.passes.partition import REVERSE_SCOPE, plan_saved, reverse_phase
from tpc.passes.saved import Choice, Decision


@dataclass(frozen=True, slots=True)
class Reader:
    """An op of the reverse phase that reads a saved value."""

    op: str
    scopes: tuple[str, ...]
    loc: Loc | None


@dataclass(frozen=True, slots=True)
class Saved:
    """A value that reverse needs: what it is, where it comes from, who reads it, and how reverse gets it."""

    type: TensorType
    decision: Decision
    reason: str
    made_by: str
    """Name of the op, or of the input."""
    scopes: tuple[str, ...]
    loc: Loc | None
    readers: tuple[Reader, ...]
    """Empty for what is only read to compute other values again."""

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    @property
    def held_bytes(self) -> int:
        """What keeping it costs: nothing unless it is kept."""
        return self.nbytes if self.decision == "kept" else 0


@dataclass(frozen=True, slots=True)
class Memory:
    """Planned bytes of one run, besides its inputs: before and after a pipeline."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Fused:
    """A fused group: its ops, the backward nodes they came from, the bytes that no longer exist as whole arrays."""

    ops: tuple[str, ...]
    scopes: tuple[str, ...]
    inner_bytes: int


def saved_tensors(program: Program, memory_budget: float = 1.0) -> tuple[Saved, ...]:
    """What lives from forward to reverse in a training step, as `partition` decides it. What updates alone read is not for backward."""
    described = describe(plan_saved(program, memory_budget), program, reverse_phase(program))
    return tuple(s for s in described if not s.readers or any(REVERSE_SCOPE.search(scope) for r in s.readers for scope in r.scopes))


def describe(choices: Iterable[Choice], program: Program, late: Collection[Op]) -> tuple[Saved, ...]:
    """Choices with their makers and their readers among the ops of `late`."""
    readers = users(program)
    return tuple(
        Saved(
            type=choice.value.type,
            decision=choice.decision,
            reason=choice.reason,
            made_by=_maker(choice.value, program),
            scopes=choice.value.op.scopes if choice.value.op is not None else (),
            loc=choice.value.op.loc if choice.value.op is not None else None,
            readers=tuple(Reader(op.name, op.scopes, op.loc) for op in readers[choice.value] if op in late),
        )
        for choice in choices
    )


def _maker(value: Value, program: Program) -> str:
    return value.op.name if value.op is not None else value.name or f"input {program.inputs.index(value)}"


def memory(before: Program, after: Program, donated: Collection[int] = ()) -> Memory:
    """Planned peaks of a program before and after its passes."""
    return Memory(plan_memory(before, donated).peak_bytes, plan_memory(after, donated).peak_bytes)


def fusions(program: Program) -> tuple[Fused, ...]:
    """The fused groups of a program."""
    found = []
    for op in program.ops:
        if op.body is not None:
            outputs = set(op.body.outputs)
            inner = sum(v.type.nbytes for o in op.body.ops for v in o.results if v not in outputs and o.operands)
            found.append(Fused(tuple(o.name for o in op.body.ops), op.scopes, inner))
    return tuple(found)
