"""Groups of elementwise ops that run as one."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import accumulate
from typing import cast

from tpc.ir.builder import Builder, Rewriter
from tpc.ir.opdef import lookup
from tpc.ir.program import Op, Program, Value
from tpc.ir.uses import users

MOST_OPS = 128
"""A group does not grow beyond this: its inner values should stay in the cache."""
MOST_VISITED = 256
"""How many ops are looked at to see that a group stays convex; where that is not enough, it does not grow."""


def fuse(program: Program) -> Program:
    """Groups elementwise ops of one shape, and reductions over the last axes of it, into `fusion` ops.

    Before: ``%0 = exp %x``, ``%1 = mul %0, %y``, both f32[64]. After: ``%0 = fusion %x, %y`` with these two as its body. Inner
    values then exist only as blocks in the cache. A group is convex (nothing outside lies between two of its members) and
    does not keep more alive than its members did: an op is not held back past a product or a gather if that makes its
    operands live longer than the bytes it saves. Groups cross the borders between Functions; a fusion keeps all scopes.
    """
    groups = _Groups(program)
    for op in program.ops:
        if _shape(op) is not None:
            groups.add(op)
    return _rebuilt(program, groups)


def _shape(op: Op) -> tuple[int, ...] | None:
    """The iteration space of an op that can be fused; None for others."""
    if len(op.results) != 1 or not op.operands:
        return None
    if op.defn.elementwise and not op.defn.view and op.result.type.numel > 1:
        return op.result.type.shape
    if op.defn.reduction and _rows(op) and op.operands[0].type.numel > 1:
        return op.operands[0].type.shape
    return None


def _rows(op: Op) -> int:
    """How many leading axes a reduction over the last axes leaves; 0 if it is none of that kind, or leaves less than a row each."""
    shape = op.operands[0].type.shape
    dims = op.attrs.get("dims", op.attrs.get("dim"))
    reduced = dims if isinstance(dims, tuple) else (dims,)
    first = len(shape) - len(reduced)
    if first <= 0 or set(reduced) != set(range(first, len(shape))) or any(size <= 1 for size in shape[:first]):
        return 0
    return first


class _Group:
    """Ops that will be one fusion. `shape` is the iteration space, `rows` the axes that its reductions leave (0: none yet)."""

    __slots__ = ("last", "ops", "rows", "shape")

    def __init__(self, op: Op, number: int, shape: tuple[int, ...]) -> None:
        self.ops = [op]
        self.shape = shape
        self.rows = 0 if op.defn.elementwise else _rows(op)
        self.last = number


class _Groups:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.number = {op: n for n, op in enumerate(program.ops)}
        self.readers = users(program)
        self.outputs = set(program.outputs)
        self.of: dict[Op, _Group] = {}
        heavy = (bool(op.operands) and not op.defn.elementwise and not op.defn.view for op in program.ops)
        self.heavy = list(accumulate(heavy, initial=0))

    def add(self, op: Op) -> None:
        """Makes the op a group of its own, then joins it with the groups of its operands where that is legal."""
        shape = _shape(op)
        assert shape is not None
        self.of[op] = group = _Group(op, self.number[op], shape)
        found = {id(g): g for v in op.operands if v.op is not None and (g := self.of.get(v.op)) is not None}
        for other in sorted(found.values(), key=lambda g: -g.last):
            if (joined := self._compatible(group, other)) is not None and self._may_join(group, other):
                group = self._join(group, other, joined)

    def _compatible(self, group: _Group, other: _Group) -> tuple[tuple[int, ...], int] | None:
        """Shape and rows of the union; None if there is none."""
        if len(group.ops) + len(other.ops) > MOST_OPS:
            return None
        if group.rows and other.rows and group.rows != other.rows:
            return None
        rows = group.rows or other.rows
        if group.shape == other.shape:
            return group.shape, rows
        for wide, narrow in ((group, other), (other, group)):
            if wide.rows and not narrow.rows and narrow.shape == _row_shape(wide.shape, rows):
                return wide.shape, rows
        return None

    def _may_join(self, group: _Group, other: _Group) -> bool:
        members = {*group.ops, *other.ops}
        if any(_is_misaligned(v, op) for op in members for v in op.operands if v.op in members):
            return False
        return self._is_convex(group, other, members) and self._keeps_no_more(group, other)

    def _is_convex(self, group: _Group, other: _Group, members: set[Op]) -> bool:
        """Whether no path leads from a member through other ops back to a member. Groups on the way count as one op."""
        latest = max(group.last, other.last)
        seen = set(members)
        stack = [reader for reader in self._readers(members, latest) if reader not in members]
        visited = 0
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            visited += 1
            if visited > MOST_VISITED:
                return False
            grouped = self.of[op].ops if op in self.of else [op]
            seen.update(grouped)
            for reader in self._readers(grouped, latest):
                if reader in members:
                    return False
                stack.append(reader)
        return True

    def _readers(self, ops: Iterable[Op], latest: int) -> Iterable[Op]:
        """Readers that a path back can lead through: what comes after the newest member is in no group yet."""
        return (r for op in ops for v in op.results for r in self.readers[v] if self.number[r] <= latest)

    def _keeps_no_more(self, group: _Group, other: _Group) -> bool:
        """Whether moving the older group down to the newer one lengthens no lives by more bytes than it saves."""
        older, newer = (other, group) if other.last <= group.last else (group, other)
        start, stop = older.last, min(self.number[op] for op in newer.ops if self.number[op] > older.last)
        if self.heavy[stop] == self.heavy[start + 1]:
            return True
        inside = {v for op in older.ops for v in op.results}
        saved = sum(v.type.nbytes for v in inside if v not in self.outputs and any(self.number[r] >= stop for r in self.readers[v]))
        read = {v for op in older.ops for v in op.operands if v not in inside and v.op is not None and v.op.operands}
        longer = sum(v.type.nbytes for v in read if v not in self.outputs and all(self.number[r] < stop for r in self.readers[v]))
        return longer <= saved

    def _join(self, group: _Group, other: _Group, joined: tuple[tuple[int, ...], int]) -> _Group:
        group.ops = sorted({*group.ops, *other.ops}, key=self.number.__getitem__)
        group.shape, group.rows = joined
        group.last = max(group.last, other.last)
        for op in group.ops:
            self.of[op] = group
        return group


def _row_shape(shape: tuple[int, ...], rows: int) -> tuple[int, ...]:
    return shape[:rows] + (1,) * (len(shape) - rows)


def _is_misaligned(value: Value, reader: Op) -> bool:
    """Whether a value lost the axes that it was reduced over: its axes are no longer those of the group."""
    op = cast(Op, value.op)
    return op.defn.reduction and value.type.rank < op.operands[0].type.rank


def _rebuilt(program: Program, groups: _Groups) -> Program:
    """The program with a fusion for every group of two or more, in the place of its last member."""
    rewriter = Rewriter(program)
    for op in _ordered(program, groups):
        group = groups.of.get(op)
        if group is None or len(group.ops) == 1:
            rewriter.copy(op)
        else:
            _emit(rewriter, group, groups)
    return rewriter.finish()


def _ordered(program: Program, groups: _Groups) -> list[Op]:
    """One op for every group (its last) and every other op, so that everything comes after what it reads."""
    leader = {op: groups.of[op].ops[-1] if op in groups.of else op for op in program.ops}
    waiting: dict[Op, int] = dict.fromkeys(leader.values(), 0)
    next_: dict[Op, list[Op]] = {op: [] for op in waiting}
    for op in program.ops:
        for maker in dict.fromkeys(v.op for v in op.operands if v.op is not None):
            if leader[maker] is not leader[op]:
                waiting[leader[op]] += 1
                next_[leader[maker]].append(leader[op])
    heap = [groups.number[op] for op, count in waiting.items() if count == 0]
    heap.sort()
    order = []
    while heap:
        op = program.ops[heappop(heap)]
        order.append(op)
        for reader in next_[op]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heappush(heap, groups.number[reader])
    return order


def _emit(rewriter: Rewriter, group: _Group, groups: _Groups) -> None:
    members = set(group.ops)
    body = Builder("fused")
    inner: dict[Value, Value] = {}
    operands: list[Value] = []
    for op in group.ops:
        for value in op.operands:
            if value in inner or value.op in members:
                continue
            if value.op is not None and not value.op.operands and value.type.rank == 0 and not value.op.defn.random:
                inner[value] = body.append(_copied(value.op, {})).results[value.index]
            else:
                inner[value] = body.input(value.type, value.name)
                operands.append(value)
        inner.update(zip(op.results, body.append(_copied(op, inner)).results, strict=True))
    results = [v for op in group.ops for v in op.results if v in groups.outputs or not members.issuperset(groups.readers[v])]
    fused = rewriter.emit_op(
        lookup("fusion"),
        *[rewriter.get(v) for v in operands],
        scopes=tuple(dict.fromkeys(scope for op in group.ops for scope in op.scopes)),
        loc=group.ops[-1].loc,
        bodies=(body.finish([inner[v] for v in results]),),
    )
    for old, new in zip(results, fused.results, strict=True):
        rewriter.forward(old, new)


def _copied(op: Op, inner: dict[Value, Value]) -> Op:
    return Op(op.defn, [inner[v] for v in op.operands], op.attrs, op.types, op.scopes, op.loc)
