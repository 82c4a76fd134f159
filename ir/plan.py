"""A program with a place in memory for every value: what `passes.lifetime` makes and the runtime executes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tpc.ir.layout import Strides
from tpc.ir.packing import pack
from tpc.ir.program import Op, Program, Value
from tpc.ir.storage import assign, shared_operands


@dataclass(frozen=True, slots=True)
class Place:
    """Where the memory of a value is. A view has the place of what it sees.

    ``arena``: at byte `index` of the run's arena. ``input``, ``output``: the array of that number. ``constant``: computed
    once, when the plan is made ready to run.
    """

    kind: Literal["arena", "constant", "input", "output"]
    index: int

    def __str__(self) -> str:
        return "constant" if self.kind == "constant" else f"{self.kind} {self.index}"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A program in its final order, and where its values live."""

    program: Program
    places: Mapping[Value, Place]
    views: frozenset[Value]
    """Values that are views of their operand; the other results of view ops could not be and are computed."""
    strides: Mapping[Value, Strides]
    """Strides of every value, in elements; inputs are taken to be row-major."""
    overwritten: Mapping[Op, tuple[tuple[int, int], ...]]
    """Pairs (result, operand) of fusions that share memory: the body has to write one over the other."""
    copied: tuple[int, ...]
    """Outputs that are copied into their array at the end; the others are computed there, or in the input they write."""
    donated: frozenset[int]
    """Inputs that may be overwritten by the output that is their new content."""
    arena_bytes: int
    output_bytes: int
    """Bytes of the arrays that one run gives to the caller; outputs left in a donated input do not count."""

    @property
    def peak_bytes(self) -> int:
        """Memory of one run besides its inputs and the scratch blocks of large fusions."""
        return self.arena_bytes + self.output_bytes


def plan_memory(program: Program, donated: Collection[int] = (), writes: Sequence[int | None] | None = None) -> Plan:
    """The plan of a program as it stands; `writes` stands in for that of the program (bodies of fusions have none)."""
    storages = assign(program, donated, writes)
    offsets, arena_bytes = pack([s for s in storages.all if s.home == "temporary"])
    places = {
        value: Place("arena", offsets[storage]) if storage.home == "temporary" else Place(storage.home, storage.index)
        for value, storage in storages.of.items()
    }
    copied = storages.copied()
    fresh = {j for j, v in enumerate(program.outputs) if j in copied or storages.of[v].home != "input"}
    return Plan(
        program=program,
        places=places,
        views=frozenset(v for v in storages.of if storages.root[v] is not v),
        strides=storages.strides,
        overwritten={op: shared_operands(op, storages) for op in program.ops if op.body is not None},
        copied=copied,
        donated=frozenset(storages.written.values()),
        arena_bytes=arena_bytes,
        output_bytes=sum(program.outputs[j].type.nbytes for j in fresh),
    )


def plan_body(op: Op, body: Program, pairs: Sequence[tuple[int, int]]) -> Plan:
    """The plan of a fusion's body (as it is, or with the types of one block) that writes results over operands."""
    over = dict(pairs)
    return plan_memory(body, frozenset(over.values()), [over.get(j) for j in range(len(op.results))])
