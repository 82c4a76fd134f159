"""Nests as LLVM IR: one function `i64 k(ptr operands, i64 start, i64 stop)` each, over [start, stop) of its outermost loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from tpc.ir.layout import Strides
from tpc.runtime.native.intrinsics import intrinsic
from tpc.runtime.native.nest import REDUCTIONS, Nest, Step
from tpc.runtime.native.scalars import FLOATS, REGISTERS, apply, constant, convert, stored
from tpc.runtime.native.writer import I64, Writer

SUMMED = 4096
"""Numbers are added up in runs of so many, and the totals of the runs after that: rounding errors grow with the length of a run."""


class Axis(NamedTuple):
    """One loop: its length, and the stride of every operand along it."""

    size: int
    strides: tuple[int, ...]


def collapsed(shape: Sequence[int], strides: Sequence[Strides]) -> list[Axis]:
    """The fewest loops over these axes: neighbours that every operand passes through evenly become one."""
    axes: list[Axis] = []
    for axis, size in enumerate(shape):
        here = Axis(size, tuple(s[axis] for s in strides))
        if size == 1:
            continue
        if axes and all(a == b * size for a, b in zip(axes[-1].strides, here.strides, strict=True)):
            axes[-1] = Axis(axes[-1].size * size, here.strides)
        else:
            axes.append(here)
    return axes


class Loops(NamedTuple):
    """The loops of a nest: those over rows, and those within a row."""

    outer: list[Axis]
    inner: list[Axis]

    @property
    def range(self) -> int:
        """How far the outermost loop goes: what a kernel's calls may share."""
        return self.outer[0].size if self.outer else 1


def loops_of(nest: Nest) -> Loops:
    """How a nest is looped over. Without reductions the innermost loop makes up the row."""
    strides = [i.strides for i in nest.inputs] + [s for _, s in nest.outputs]
    if nest.rows < len(nest.shape):
        outer = collapsed(nest.shape[: nest.rows], [s[: nest.rows] for s in strides])
        return Loops(outer, collapsed(nest.inner, [s[nest.rows :] for s in strides]))
    axes = collapsed(nest.shape, strides)
    return Loops(axes, []) if len(axes) < 2 else Loops(axes[:-1], axes[-1:])


class _Pass(NamedTuple):
    """One pass over a row: the row values known before it, and the reductions that end with it."""

    stage: int
    known: dict[int, ir.Value]
    ending: dict[int, Step]

    @property
    def sums(self) -> dict[int, Step]:
        """The floating point sums among the reductions."""
        return {v: s for v, s in self.ending.items() if s.name == "sum" and s.dtype in FLOATS}


class Emitter(Writer):
    """Writes one nest."""

    def __init__(self, nest: Nest) -> None:
        super().__init__()
        self.nest = nest
        self.loops = loops_of(nest)
        self.buffers: dict[int, ir.Value] = {}
        self.totals: dict[int, ir.Value] = {}

    def text(self) -> str:
        """The module."""
        pointers = self.pointers(len(self.nest.inputs) + len(self.nest.outputs))
        self._allocate()
        if len(self.loops.outer) == 1 and not self.loops.inner and self.nest.rows == len(self.nest.shape):
            self._flat(pointers)
        else:
            self._outer(self.loops.outer, pointers, True)
        return self.finish()

    # --- loops ------------------------------------------------------------------------------

    def _moved(self, pointers: Sequence[ir.Value], axis: Axis, index: ir.Value) -> list[ir.Value]:
        """The operands at one index of an axis."""
        return [self.at(p, index, *each) for p, *each in zip(pointers, axis.strides, self._types(), strict=True)]

    def _types(self) -> list[ir.Type]:
        return [stored(i.dtype) for i in self.nest.inputs] + [stored(self.nest.dtype(v)) for v, _ in self.nest.outputs]

    def _outer(self, axes: Sequence[Axis], pointers: list[ir.Value], outermost: bool) -> None:
        if not axes:
            self._row(pointers)
            return
        start, stop = (self.start, self.stop) if outermost else (I64(0), I64(axes[0].size))
        with self.loop(start, stop) as index:
            self._outer(axes[1:], self._moved(pointers, axes[0], index), False)

    def _flat(self, pointers: list[ir.Value]) -> None:
        """One loop over everything, which callers may share."""
        self._pass(0, [Axis(0, self.loops.outer[0].strides)], pointers, {}, (self.start, self.stop))

    # --- a row ------------------------------------------------------------------------------

    def _allocate(self) -> None:
        """Row buffers for full values that later passes read, and totals of reductions."""
        nest, size = self.nest, math.prod(self.nest.inner)
        for value in buffered(nest):
            self.buffers[value] = self.b.alloca(stored(nest.dtype(value)), I64(size))
        for value, step in enumerate(nest.steps, len(nest.inputs)):
            if step.name in REDUCTIONS:
                self.totals[value] = self.b.alloca(stored(step.result))

    def _row(self, pointers: list[ir.Value]) -> None:
        """All passes over one row, with the row values between them."""
        known: dict[int, ir.Value] = {}
        nest, first = self.nest, len(self.nest.inputs)
        for value, input in enumerate(nest.inputs):
            if not input.full:
                known[value] = self._load(pointers[value], input.dtype, False)
        for stage in range(nest.stages + 1):
            for value, step in enumerate(nest.steps, first):
                if not step.full and step.stage == stage:
                    known[value] = self._total(value, step) if step.name in REDUCTIONS else self._compute(step, known)
            if stage < nest.stages and self._has_pass(stage):
                self._pass(stage, self.loops.inner, pointers, known, None)
        for (value, _), pointer in zip(nest.outputs, pointers[first:], strict=True):
            if not nest.is_full(value):
                self._store(known[value], pointer, nest.dtype(value), False)

    def _has_pass(self, stage: int) -> bool:
        if stage == 0 and any(self.nest.step(v) is None and self.nest.is_full(v) for v, _ in self.nest.outputs):
            return True
        return any((s.full and s.stage == stage) or (s.name in REDUCTIONS and s.stage == stage + 1) for s in self.nest.steps)

    def _total(self, value: int, step: Step) -> ir.Value:
        return self._load(self.totals[value], step.result, False)

    def _pass(
        self,
        stage: int,
        axes: Sequence[Axis],
        pointers: list[ir.Value],
        known: dict[int, ir.Value],
        bounds: tuple[ir.Value, ir.Value] | None,
    ) -> None:
        """One pass over a row; reductions that end with it start from their identity."""
        ending = {v: s for v, s in enumerate(self.nest.steps, len(self.nest.inputs)) if s.name in REDUCTIONS and s.stage == stage + 1}
        for value, step in ending.items():
            self.b.store(_in_memory(self.b, identity(step), step.result), self.totals[value])
        axes = axes or [Axis(1, (0,) * len(pointers))]
        self._axes(_Pass(stage, known, ending), axes, pointers, I64(0), bounds)

    def _axes(
        self, here: _Pass, axes: Sequence[Axis], pointers: list[ir.Value], place: ir.Value, bounds: tuple[ir.Value, ir.Value] | None
    ) -> None:
        """The loops of a pass; `place` is where in the row buffers this part of the row begins."""
        axis = axes[0]
        if len(axes) > 1:
            inside = math.prod(a.size for a in axes[1:])
            with self.loop(I64(0), I64(axis.size)) as index:
                begin = self.b.add(place, self.b.mul(index, I64(inside)))
                self._axes(here, axes[1:], self._moved(pointers, axis, index), begin, None)
        elif bounds is None and here.sums and axis.size > SUMMED:
            self._in_runs(here, axis, pointers, place)
        else:
            self._elements(here, axis, pointers, place, *(bounds or (I64(0), I64(axis.size))))

    def _in_runs(self, here: _Pass, axis: Axis, pointers: list[ir.Value], place: ir.Value) -> None:
        grand = {v: self._zero_at_entry(s.result) for v, s in here.sums.items()}
        with self.loop(I64(0), I64(axis.size), step=SUMMED) as first:
            end = self.b.add(first, I64(SUMMED))
            size = I64(axis.size)
            last = self.b.select(self.b.icmp_signed("<", end, size), end, size)
            self._elements(here, axis, pointers, place, first, last)
            for value, step in here.sums.items():
                type = REGISTERS[step.result]
                run, total = self.b.load(self.totals[value], typ=type), self.b.load(grand[value], typ=type)
                self.b.store(self.b.fadd(total, run), grand[value])
                self.b.store(constant(step.result, 0), self.totals[value])
        for value, step in here.sums.items():
            self.b.store(self.b.load(grand[value], typ=REGISTERS[step.result]), self.totals[value])

    def _zero_at_entry(self, dtype: str) -> ir.Value:
        """A number on the stack, which would grow with every turn of a loop that allocated it."""
        with self.b.goto_block(self.entry):
            made = self.b.alloca(stored(dtype))
        self.b.store(constant(dtype, 0), made)
        return made

    def _elements(self, here: _Pass, axis: Axis, pointers: list[ir.Value], place: ir.Value, start: ir.Value, stop: ir.Value) -> None:
        """The innermost loop: loads, steps, totals, stores. What is the same for all of its elements is read before it."""
        known = dict(here.known)
        for value, input in enumerate(self.nest.inputs):
            if input.full and axis.strides[value] == 0:
                known[value] = self._load(pointers[value], input.dtype, False)
        with self.loop(start, stop, parallel=True) as index:
            element = _Element(self, here.stage, known, self._moved(pointers, axis, index), self.b.add(place, index))
            for value, step in here.ending.items():
                operand = element.get(step.operands[0])
                total = self._load(self.totals[value], step.result, False)
                self._store(combine(self.b, step, total, operand), self.totals[value], step.result, False)
            element.finish()

    # --- numbers ----------------------------------------------------------------------------

    def _load(self, pointer: ir.Value, dtype: str, parallel: bool) -> ir.Value:
        value = self.b.load(pointer, typ=stored(dtype))
        if parallel:
            value.set_metadata("llvm.access.group", self.group)
        return self.b.icmp_unsigned("!=", value, ir.IntType(8)(0)) if dtype == "bool" else value

    def _store(self, value: ir.Value, pointer: ir.Value, dtype: str, parallel: bool) -> None:
        stored_ = self.b.store(_in_memory(self.b, value, dtype), pointer)
        if parallel:
            stored_.set_metadata("llvm.access.group", self.group)

    def _compute(self, step: Step, known: dict[int, ir.Value]) -> ir.Value:
        return compute(self.b, step, [known[v] for v in step.operands])


class _Element:
    """The values of one element in one pass, computed when first asked for."""

    def __init__(self, emitter: Emitter, stage: int, known: dict[int, ir.Value], pointers: list[ir.Value], place: ir.Value) -> None:
        self.emitter, self.stage, self.known, self.pointers, self.place = emitter, stage, known, pointers, place
        self.nest = emitter.nest

    def get(self, value: int) -> ir.Value:
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: int) -> ir.Value:
        emitter, step = self.emitter, self.nest.step(value)
        if step is None:
            return emitter._load(self.pointers[value], self.nest.inputs[value].dtype, True)
        if step.stage < self.stage and value in emitter.buffers:
            return emitter._load(self._buffer(value), step.result, True)
        return compute(emitter.b, step, [self.get(v) for v in step.operands])

    def _buffer(self, value: int) -> ir.Value:
        buffer = self.emitter.buffers[value]
        return self.emitter.b.gep(buffer, [self.place], inbounds=True, source_etype=stored(self.nest.dtype(value)))

    def finish(self) -> None:
        """Writes what this pass makes: row buffers and full results. All is computed before anything is written."""
        nest, first = self.nest, len(self.nest.inputs)
        buffers = [v for v in self.emitter.buffers if nest.steps[v - first].stage == self.stage]
        stores = [(self.get(v), self._buffer(v), nest.dtype(v)) for v in buffers]
        for (value, _), pointer in zip(nest.outputs, self.pointers[first:], strict=True):
            step = nest.step(value)
            if nest.is_full(value) and (step.stage if step is not None else 0) == self.stage:
                stores.append((self.get(value), pointer, nest.dtype(value)))
        for number, pointer, dtype in stores:
            self.emitter._store(number, pointer, dtype, True)


def buffered(nest: Nest) -> tuple[int, ...]:
    """The full values that a later pass reads."""
    first = len(nest.inputs)
    found: dict[int, None] = {}
    for step in nest.steps:
        if not step.full and step.name not in REDUCTIONS:
            continue
        stage = step.stage - (step.name in REDUCTIONS)
        for value in step.operands:
            made = nest.step(value)
            if made is not None and made.full and made.stage < stage:
                found[value] = None
    return tuple(v for v in found if v >= first)


def identity(step: Step) -> ir.Constant:
    """What a reduction starts from."""
    name, dtype = step.name, step.result
    if name in ("amax", "amin"):
        if dtype in FLOATS:
            return constant(dtype, -math.inf if name == "amax" else math.inf)
        if dtype == "bool":
            return constant(dtype, name == "amin")
        bits = int(dtype[1:])
        low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return constant(dtype, low if name == "amax" else high)
    return constant(dtype, name in ("prod", "all"))


def combine(b: ir.IRBuilder, step: Step, total: ir.Value, x: ir.Value) -> ir.Value:
    """One more element of a reduction. Sums and products may be taken in any order: that is what makes vectors possible."""
    name, dtype = step.name, step.result
    if name in ("any", "all"):
        return b.or_(total, x) if name == "any" else b.and_(total, x)
    if name in ("amax", "amin"):
        if dtype in FLOATS:
            return intrinsic(b, "llvm.maximum" if name == "amax" else "llvm.minimum", (total, x))
        return apply(b, "maximum" if name == "amax" else "minimum", dtype, (x, total))
    if dtype in FLOATS:
        return (b.fadd if name == "sum" else b.fmul)(total, x, flags=("reassoc",))
    return (b.add if name == "sum" else b.mul)(total, x)


def compute(b: ir.IRBuilder, step: Step, operands: Sequence[ir.Value]) -> ir.Value:
    """A step on numbers."""
    if step.name == "constant":
        return constant(step.result, step.number)
    if step.name == "cast":
        return convert(b, operands[0], step.dtype, step.result)
    if step.name == "where":
        return b.select(*operands)
    return apply(b, step.name, step.dtype, operands)


def _in_memory(b: ir.IRBuilder, value: ir.Value, dtype: str) -> ir.Value:
    return b.zext(value, ir.IntType(8)) if dtype == "bool" else value
