"""The order of ops."""

from __future__ import annotations

from heapq import heappop, heappush

from tpc.ir.plan import plan_memory
from tpc.ir.program import Op, Program, Value
from tpc.ir.storage import assign
from tpc.ir.uses import users


def schedule(program: Program) -> Program:
    """Puts ops in an order that needs less memory; keeps the given order where none is found.

    Before: ``%0 = exp %x``, ``%1 = exp %y``, ``%2 = sum %0``, ``%3 = sum %1``: both exponentials are alive at once. After: each is
    summed as soon as it is there. Parameters are updated when nobody reads their old content any more.
    """
    order = _greedy(program)
    if order == list(program.ops):
        return program
    ordered = Program(program.name, program.inputs, program.outputs, order, program.writes)
    donated = [i for i in program.writes if i is not None]
    return ordered if plan_memory(ordered, donated).peak_bytes < plan_memory(program, donated).peak_bytes else program


def _greedy(program: Program) -> list[Op]:
    """Of the ops that are ready always the one that grows what is alive least (shrinks it most), the earliest of equals."""
    state = _Alive(program)
    position = {op: n for n, op in enumerate(program.ops)}
    readers = users(program)
    waiting = {op: len({v for v in op.operands if v.op is not None}) for op in program.ops}
    heap: list[tuple[tuple[int, bool], int]] = []
    done: set[Op] = set()
    order: list[Op] = []
    for op in program.ops:
        if waiting[op] == 0:
            heappush(heap, (state.growth(op), position[op]))
    while heap:
        growth, number = heappop(heap)
        op = program.ops[number]
        if op in done or growth != state.growth(op):
            continue
        done.add(op)
        order.append(op)
        for other in state.run(op):
            if waiting[other] == 0 and other not in done:
                heappush(heap, (state.growth(other), position[other]))
        for result in op.results:
            for reader in readers[result]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heappush(heap, (state.growth(reader), position[reader]))
    return order


class _Alive:
    """Which values are still to be read, and what running an op would do to the bytes alive."""

    def __init__(self, program: Program) -> None:
        self.root = assign(program).root
        self.left: dict[Value, set[Op]] = {}
        """For every value that memory is held for, and every input that is written, the ops that will still read it or a view of it."""
        self.written: dict[Value, Value] = {}
        """The input whose new content a value is: it takes the memory of the old content when nobody reads that any more."""
        for value, number in zip(program.outputs, program.writes, strict=True):
            if number is not None and value.op is not None and self.root[value] is value and value.type == program.inputs[number].type:
                self.written[value] = program.inputs[number]
        self.writer = {old: new.op for new, old in self.written.items() if new.op is not None}
        kept = {self.root[v] for v in program.outputs}
        for op in program.ops:
            for value in op.operands:
                root = self.root[value]
                if root in self.writer or (root.op is not None and root.op.operands and root not in kept):
                    self.left.setdefault(root, set()).add(op)

    def growth(self, op: Op) -> tuple[int, bool]:
        """Bytes of what the op makes less bytes of what nobody reads after it; then whether it writes something that others still read."""
        made, early = 0, False
        for value in op.results if op.operands else ():
            if self.root[value] is value:
                held = value not in self.written or not self.left.get(self.written[value], set()) <= {op}
                made += value.type.nbytes if held else 0
                early = early or (held and value in self.written)
        gone = [root for root in self._read(op) if root.op is not None and self.left[root] == {op}]
        return made - sum(root.type.nbytes for root in gone), early

    def run(self, op: Op) -> list[Op]:
        """Takes note that an op has run; the ops whose growth changes by it: the last readers of what it read, or who overwrites it."""
        changed: list[Op] = []
        for root in self._read(op):
            self.left[root].discard(op)
            writer = self.writer.get(root)
            if writer is not None and self.left[root] <= {writer}:
                changed.append(writer)
            elif len(self.left[root]) == 1:
                changed.extend(self.left[root])
        return changed

    def _read(self, op: Op) -> set[Value]:
        return {root for v in op.operands if (root := self.root[v]) in self.left}
