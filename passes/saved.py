"""What to keep from the forward to the reverse phase: a minimum cut of bytes held against work done again.

Note: the cut. Every value v that reverse could need has two nodes, R (it can be computed) and D (it is there for reverse):

    source -> R(v)   work to compute v again; unlimited for inputs, random ops and host code, which are never repeated
    R(v) -> D(v)     weight * bytes of v; nothing for inputs, which live anyway
    D(u) -> R(w)     unlimited, for each operand u of the op of w
    D(v) -> sink     unlimited, where reverse reads v

Cutting R -> D keeps v, cutting source -> R computes it again from operands that must then be there. `weight` is how
many bytes of streamed work one byte held is worth: 1 at a budget of 1.0, where saving and reading back costs about as much as
a streamed addition; high enough to outweigh all work at 0.0; found by bisection between the two.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tpc.ir.opdef import OpDef
from tpc.ir.program import Op, Value

Decision: TypeAlias = Literal["kept", "recomputed", "input", "output"]

FLOP_COST = 0.05
"""What one floating point operation inside a product costs, in streamed additions."""
SCALE = 16
"""Capacities are whole numbers, so that cuts are exact and repeat: this many to a byte."""
MOST_STEPS = 12
"""Cuts that the bisection for a budget may take."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How reverse gets a value that it needs, directly or to compute another, and why that way."""

    value: Value
    decision: Decision
    reason: str


@dataclass(frozen=True, slots=True)
class Demand:
    """The problem: `wanted` are the values that reverse reads, in order; `free` live through it anyway.

    Inside one program a view holds the memory of what it sees, so it is never kept on its own (`shared_views`); a program that
    is split hands over a copy of what the view shows.
    """

    wanted: tuple[Value, ...]
    free: frozenset[Value]
    shared_views: bool = False

    def cone(self) -> list[Value]:
        """The values that may have to be there: those wanted, and operands of what may be computed again. In a fixed order."""
        seen = dict.fromkeys(self.wanted)
        stack = list(reversed(self.wanted))
        while stack:
            value = stack.pop()
            if value in self.free or why_not_repeated(value) is not None:
                continue
            assert value.op is not None
            for operand in value.op.operands:
                if operand not in seen:
                    seen[operand] = None
                    stack.append(operand)
        return list(seen)


def why_not_repeated(value: Value) -> str | None:
    """Why a value cannot be computed again; None if it can."""
    op = value.op
    if op is None:
        return "it is an input"
    if op.defn.random:
        return "it is random"
    if not op.defn.foldable and op.operands:
        return f"{op.name} is not repeated"
    return None


def is_view(value: Value) -> bool:
    return value.op is not None and value.op.defn.view


def work(op: Op) -> float:
    """What an op costs, in bytes of streamed additions."""
    if not op.operands:
        return 0.0
    if op.bodies:
        return sum(work(inner) for body in op.bodies for inner in body.ops)
    defn: OpDef = op.defn
    if defn.flops is not None:
        return FLOP_COST * defn.flops([v.type for v in op.operands], op.attrs) * op.results[0].type.itemsize
    size = max(v.type.nbytes for v in ((*op.operands, *op.results) if defn.reduction else op.results))
    return defn.cost * size


def choose(demand: Demand, memory_budget: float = 1.0) -> list[Choice]:
    """The best way to have every wanted value: choices for these and all that they are computed again from, in a fixed order.

    Keeps at most `memory_budget` times the bytes that are kept at 1.0, or the least possible if that is more.
    """
    check_budget(memory_budget)
    cone = demand.cone()
    if not cone:
        return []
    kept = obvious(demand)
    if kept is None:
        kept = cut(demand, cone, 1.0)
    if memory_budget < 1.0:
        kept = _within(demand, cone, kept, memory_budget)
    return _choices(demand, kept)


def check_budget(memory_budget: float) -> None:
    """`ValueError` for what is no budget."""
    if isinstance(memory_budget, bool) or not isinstance(memory_budget, int | float) or not 0.0 <= memory_budget <= 1.0:
        raise ValueError(f"memory_budget must be a number between 0.0 and 1.0, not {memory_budget!r}")


def _within(demand: Demand, cone: Sequence[Value], most: frozenset[Value], memory_budget: float) -> frozenset[Value]:
    heaviest = 2.0 + sum(work(v.op) for v in cone if v.op is not None)
    limit = memory_budget * _bytes(demand, most)
    best = cut(demand, cone, heaviest)
    if memory_budget == 0.0 or _bytes(demand, best) > limit:
        return best
    low, high = 0.0, math.log(heaviest)
    for _ in range(MOST_STEPS):
        if high - low < 0.05 or _bytes(demand, best) == limit:
            break
        middle = (low + high) / 2
        kept = cut(demand, cone, math.exp(middle))
        if _bytes(demand, kept) <= limit:
            best, high = kept, middle
        else:
            low = middle
    return best


def _bytes(demand: Demand, kept: Iterable[Value]) -> int:
    return sum(v.type.nbytes for v in kept if v not in demand.free)


def obvious(demand: Demand) -> frozenset[Value] | None:
    """What to keep at full budget, where that can be seen without a cut; None where it cannot.

    Where computing any wanted value again costs at least what holding it does, all of them are kept. (The cut would say the same,
    but networkx takes longer to import than most programs to compile.)
    """
    kept, seen, stack = set(), set(demand.free), list(demand.wanted)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if why_not_repeated(value) is not None:
            kept.add(value)
            continue
        op = value.op
        assert op is not None
        if is_view(value) and (demand.shared_views or op.operands[0] in demand.free):
            stack.append(op.operands[0])
        elif op.operands and work(op) < value.type.nbytes:
            return None
        elif op.operands:
            kept.add(value)
    return frozenset(kept)


def cut(demand: Demand, cone: Sequence[Value], weight: float) -> frozenset[Value]:
    """The values that are there for reverse without being computed again, free ones among them."""
    from networkx import DiGraph, minimum_cut
    from networkx.algorithms.flow import boykov_kolmogorov

    graph = DiGraph()
    number = {v: n for n, v in enumerate(cone)}
    source, sink = 2 * len(cone), 2 * len(cone) + 1
    graph.add_nodes_from(range(2 * len(cone) + 2))
    wanted = set(demand.wanted)
    for value, n in number.items():
        if not (demand.shared_views and is_view(value)) or value in demand.free:
            graph.add_edge(2 * n, 2 * n + 1, capacity=0 if value in demand.free else round(SCALE * weight * value.type.nbytes))
        else:
            graph.add_edge(2 * n, 2 * n + 1)
        if value in wanted:
            graph.add_edge(2 * n + 1, sink)
        if value in demand.free or why_not_repeated(value) is not None:
            graph.add_edge(source, 2 * n)
            continue
        assert value.op is not None
        graph.add_edge(source, 2 * n, capacity=round(SCALE * work(value.op)) + (1 if value.op.operands else 0))
        for operand in value.op.operands:
            graph.add_edge(2 * number[operand] + 1, 2 * n)
    _, (reachable, _) = minimum_cut(graph, source, sink, flow_func=boykov_kolmogorov)
    return frozenset(v for v, n in number.items() if 2 * n in reachable and 2 * n + 1 not in reachable)


def _choices(demand: Demand, kept: Collection[Value]) -> list[Choice]:
    """Walks down from what reverse reads to what is kept."""
    choices: dict[Value, Choice] = {}
    stack = list(reversed(demand.wanted))
    while stack:
        value = stack.pop()
        if value in choices:
            continue
        if value in demand.free:
            decision: Decision = "input" if value.op is None else "output"
            choices[value] = Choice(value, decision, "an input lives anyway" if value.op is None else "an output lives anyway")
            continue
        if value in kept:
            why = why_not_repeated(value)
            again = "computing it again costs more than holding it, or needs more bytes"
            choices[value] = Choice(value, "kept", f"{why}, so it cannot be computed again" if why else again)
            continue
        assert value.op is not None
        free = is_view(value) or not value.op.operands
        cheap = "costs nothing" if free else f"costs less than holding {value.type.nbytes} bytes"
        choices[value] = Choice(value, "recomputed", f"{value.op.name} {cheap}")
        stack.extend(v for v in reversed(value.op.operands) if v not in choices)
    return list(choices.values())
