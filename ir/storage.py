"""Which values of a program share memory: views with what they see, results with operands they overwrite.

Note: overwriting. A result may take over the memory of an operand when nobody reads that operand afterwards, and the
operator computes each element from the same element (elementwise), or starts from a copy of it (`OpDef.into`), or is a
fusion whose body, planned by these same rules, would do so. Memory of an input is only ever taken for the output that
is that input's new content (`Program.writes`), only where the caller donated it, and only when no op from there on can
fail: a failed call must leave its inputs as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from tpc.ir.layout import Strides, contiguous, is_contiguous, view_strides
from tpc.ir.program import Op, Program, Value

Home: TypeAlias = Literal["temporary", "constant", "input", "output"]


class Storage:
    """One piece of memory: the values that live in it one after the other, each with its views.

    It is in use from op number `start` to op number `end`; outputs keep theirs until `end == len(program.ops)`.
    """

    __slots__ = ("end", "home", "index", "nbytes", "start", "values")

    def __init__(self, value: Value, home: Home, index: int, start: int, end: int) -> None:
        self.values = [value]
        self.home: Home = home
        self.index = index
        """Number of the input or output that it belongs to, else -1."""
        self.nbytes = value.type.nbytes
        self.start = start
        self.end = end


class Storages:
    """The storages of a program and what lives where."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.all: list[Storage] = []
        self.of: dict[Value, Storage] = {}
        self.root: dict[Value, Value] = {}
        """What a value is a view of, through all steps; itself if it is no view."""
        self.strides: dict[Value, Strides] = {}
        self.last: dict[Value, int] = {}
        """For every root the last op that reads it or a view of it; `len(ops)` for outputs, its own op if nobody reads it."""
        self.written: dict[int, int] = {}
        """Outputs that may be left in the memory of a donated input, and that input."""

    def is_whole(self, value: Value) -> bool:
        """Whether a value is all of its root, in row-major order: the root itself or a reshape of it."""
        root = self.root[value]
        return value is root or (value.type.nbytes == root.type.nbytes and is_contiguous(value.type.shape, self.strides[value]))

    def copied(self) -> tuple[int, ...]:
        """The outputs whose value has to be copied to the caller at the end: it lives elsewhere or has gaps."""
        return tuple(j for j, value in enumerate(self.program.outputs) if not self._is_in_place(j, value))

    def _is_in_place(self, j: int, value: Value) -> bool:
        storage = self.of[value]
        at_home = storage.index == {"output": j, "input": self.written.get(j)}.get(storage.home)
        return at_home and self.is_whole(value)


def shared_operands(op: Op, storages: Storages) -> tuple[tuple[int, int], ...]:
    """Pairs (result, operand) of a fusion that live in the same memory, one written over the other."""
    return tuple(
        (j, i)
        for j, result in enumerate(op.results)
        for i, operand in enumerate(op.operands)
        if storages.of[result] is storages.of[operand] and storages.of[result].home != "constant"
    )


def assign(program: Program, donated: Collection[int] = (), writes: Sequence[int | None] | None = None) -> Storages:
    """Gives every value its storage. `writes` stands in for that of the program (bodies of fusions have none)."""
    return _Assignment(program, frozenset(donated), program.writes if writes is None else writes).run()


def can_fail(op: Op) -> bool:
    """Whether an op may raise at run time: out of bounds, integer division by zero, user code."""
    if op.bodies:
        return any(can_fail(inner) for body in op.bodies for inner in body.ops)
    return op.defn.checks and not (op.defn.elementwise and op.operands[0].type.dtype[0] not in "ui")


class _Assignment:
    def __init__(self, program: Program, donated: frozenset[int], writes: Sequence[int | None]) -> None:
        self.program = program
        self.result = Storages(program)
        self.safe_from = max((n + 1 for n, op in enumerate(program.ops) if can_fail(op)), default=0)
        self.result.written = {
            j: i for j, i in enumerate(writes) if i is not None and i in donated and program.outputs[j].type == program.inputs[i].type
        }
        self.target: dict[Value, Value] = {}
        """Values that had best be computed in the memory of this input."""

    def run(self) -> Storages:
        self._views()
        self._lifetimes()
        self._targets()
        for index, value in enumerate(self.program.inputs):
            self._new(value, "input", index, -1)
        for number, op in enumerate(self.program.ops):
            self._place(number, op)
        self._outputs()
        return self.result

    def _views(self) -> None:
        root, strides = self.result.root, self.result.strides
        for value in self.program.inputs:
            root[value], strides[value] = value, contiguous(value.type.shape)
        for op in self.program.ops:
            seen = view_strides(op, strides[op.operands[0]]) if op.defn.view else None
            for value in op.results:
                root[value] = value if seen is None else root[op.operands[0]]
                strides[value] = contiguous(value.type.shape) if seen is None else seen

    def _lifetimes(self) -> None:
        last, root = self.result.last, self.result.root
        for value in self.program.inputs:
            last[value] = -1
        for number, op in enumerate(self.program.ops):
            for value in (*op.results, *op.operands):
                last[root[value]] = number
        for value in self.program.outputs:
            last[root[value]] = len(self.program.ops)

    def _targets(self) -> None:
        """Walks back from updated parameters, so that the chain of ops that ends in one runs in its memory."""
        for j, i in self.result.written.items():
            if self.result.root[self.program.outputs[j]] is self.program.outputs[j]:
                self.target[self.program.outputs[j]] = self.program.inputs[i]
        for number in range(len(self.program.ops) - 1, self.safe_from - 1, -1):
            op = self.program.ops[number]
            for result in op.results:
                wanted = self.target.get(result)
                if wanted is None or wanted in op.operands:
                    continue
                for i, operand in enumerate(op.operands):
                    if operand.op is not None and operand not in self.target and self._may_take(number, op, i, result.index):
                        self.target[operand] = wanted
                        break

    def _place(self, number: int, op: Op) -> None:
        of, root = self.result.of, self.result.root
        if op.defn.view and root[op.result] is not op.result:
            of[op.result] = of[root[op.result]]
        elif not op.operands and not op.defn.random:
            for value in op.results:
                self._new(value, "constant", -1, number)
        elif op.body is not None:
            self._place_fusion(number, op)
        else:
            for j, value in enumerate(op.results):
                over = next((i for i in self._candidates(number, op, j) if self._may_take(number, op, i, j)), None)
                self._settle(number, value, None if over is None else op.operands[over])

    def _place_fusion(self, number: int, op: Op) -> None:
        pairs: dict[int, int] = {}
        for j in range(len(op.results)):
            for i in self._candidates(number, op, j):
                if i not in pairs.values() and self._is_free(number, op, i, j) and overwrites(op, {**pairs, j: i}):
                    pairs[j] = i
                    break
        for j, value in enumerate(op.results):
            self._settle(number, value, op.operands[pairs[j]] if j in pairs else None)

    def _candidates(self, number: int, op: Op, j: int) -> Iterator[int]:
        """Operands whose memory result j may want, the best first."""
        wanted = self.target.get(op.results[j])
        order = range(len(op.operands))
        if wanted is not None:
            storage = self.result.of[wanted]
            yield from (i for i in order if self.result.of[op.operands[i]] is storage)
            if number >= self.safe_from and self._idle(wanted, number):
                return
        yield from (i for i in order if self.result.of[op.operands[i]].home == "temporary")

    def _idle(self, value: Value, number: int) -> bool:
        """Whether the memory of an input holds nothing that is still read at op `number`."""
        return self.result.of[value].end < number

    def _may_take(self, number: int, op: Op, i: int, j: int) -> bool:
        if not self._is_free(number, op, i, j):
            return False
        if op.defn.elementwise:
            # NumPy multiplies complex numbers otherwise, and rounds otherwise, where it writes over an operand.
            return op.results[j].type.dtype[0] != "c"
        return op.defn.into == i or (op.body is not None and overwrites(op, {j: i}))

    def _is_free(self, number: int, op: Op, i: int, j: int) -> bool:
        operand, result, root = op.operands[i], op.results[j], self.result.root
        if operand.type != result.type or self.result.last[root[operand]] != number or not self.result.is_whole(operand):
            return False
        if operand.op is None and number < self.safe_from:
            return False
        others = [v for k, v in enumerate(op.operands) if k != i and root[v] is root[operand]]
        return not others or (op.defn.elementwise and all(v is operand for v in others))

    def _settle(self, number: int, value: Value, over: Value | None) -> None:
        """Enters a result: over an operand, in the idle memory of the input it is meant for, or in new memory."""
        wanted = self.target.get(value)
        storage = self.result.of[over] if over is not None else None
        if storage is None and wanted is not None and number >= self.safe_from and self._idle(wanted, number):
            storage = self.result.of[wanted]
        if storage is None:
            self._new(value, "temporary", -1, number)
            return
        storage.values.append(value)
        storage.end = self.result.last[value]
        self.result.of[value] = storage

    def _new(self, value: Value, home: Home, index: int, start: int) -> None:
        storage = Storage(value, home, index, start, self.result.last[value])
        self.result.all.append(storage)
        self.result.of[value] = storage

    def _outputs(self) -> None:
        for j, value in enumerate(self.program.outputs):
            storage = self.result.of[value]
            if storage.home == "temporary" and self.result.is_whole(value):
                storage.home, storage.index = "output", j


def overwrites(op: Op, pairs: Mapping[int, int]) -> bool:
    """Whether the body of a fusion can write each result j over operand `pairs[j]`, also when it runs in blocks of rows.

    A block must not overwrite what another one reads: both have to be of full rank, so that equal types mean equal rows.
    """
    assert op.body is not None
    body = op.body
    rank = max(v.type.rank for v in (*body.inputs, *(v for inner in body.ops for v in inner.results)))
    if any(op.results[j].type.rank < rank for j in pairs):
        return False
    storages = assign_body(body, pairs)
    return all(storages.of[body.outputs[j]].home == "input" and storages.of[body.outputs[j]].index == i for j, i in pairs.items())


def assign_body(body: Program, pairs: Mapping[int, int]) -> Storages:
    """Storages of a fusion's body whose result j is written over operand `pairs[j]`."""
    return assign(body, frozenset(pairs.values()), [pairs.get(j) for j in range(len(body.outputs))])
