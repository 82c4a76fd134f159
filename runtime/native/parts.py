"""What native code can take of a plan: the kernels that an op comes to, and the memory they work on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

from tpc.ir.layout import Strides, view_offset
from tpc.ir.opdef import OpDef, lookup
from tpc.ir.plan import Place, Plan
from tpc.ir.program import Op, Program, Value
from tpc.runtime.native import jit
from tpc.runtime.native.loops import Emitter, collapsed, loops_of
from tpc.runtime.native.nest import COMPOSITES, REDUCTIONS, Describer, Nest, describe, iteration_space, loops_together, reduced_axes
from tpc.runtime.native.products import Matrix, Product, ProductWriter
from tpc.runtime.native.scalars import FLOATS, REGISTERS, converts, supports

ROW_BYTES = 1 << 17
"""Row buffers lie on the stack, which has to hold them."""
SMALL_PRODUCT = 1 << 18
"""Matrix products of so many multiplications are made here, one after the other; larger ones are a BLAS's business."""
LONGEST_COLUMN = 4096
"""Longer columns are added up as NumPy does it."""


class Location(NamedTuple):
    """Where a value begins: a place of the plan, and bytes into it. Constants have places of their own, so they carry their value."""

    place: Place
    offset: int
    constant: Value | None = None


class Part(NamedTuple):
    """One kernel over some memory. `work` is what it costs in all, in units of one streamed addition."""

    kernel: Nest | Product
    operands: tuple[Location, ...]
    work: float

    @property
    def range(self) -> int:
        """How far the kernel's outermost loop goes: what its calls may share."""
        return self.kernel.range if isinstance(self.kernel, Product) else loops_of(self.kernel).range

    def address(self, folder: Path | None) -> int:
        return jit.address(repr(self.kernel), self._text, folder)

    def _text(self) -> str:
        return ProductWriter(self.kernel).text() if isinstance(self.kernel, Product) else Emitter(self.kernel).text()


class Memory:
    """Where the values of a plan lie."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._found: dict[Value, Location] = {}

    def location(self, value: Value) -> Location:
        if value not in self._found:
            self._found[value] = self._located(value)
        return self._found[value]

    def _located(self, value: Value) -> Location:
        if value in self.plan.views:
            op = cast(Op, value.op)
            source = op.operands[0]
            base = self.location(source)
            steps = view_offset(op, self.plan.strides[source])
            return base._replace(offset=base.offset + steps * value.type.numpy_dtype.itemsize)
        place = self.plan.places[value]
        if place.kind == "arena":
            return Location(Place("arena", 0), place.index)
        return Location(place, 0, value if place.kind == "constant" else None)

    def strides(self, value: Value) -> Strides:
        return self.plan.strides[value]


def parts_of(op: Op, memory: Memory) -> list[Part] | None:
    """The kernels for an op; None if NumPy has to run it."""
    if any(v.type.dtype not in REGISTERS or v.type.numel == 0 for v in (*op.operands, *op.results)):
        return None
    if op.body is not None:
        return _fusion(op, op.body, memory)
    if op.defn.elementwise and _is_supported(op):
        return _elementwise(op, memory)
    if op.name in REDUCTIONS or op.name in COMPOSITES:
        return _reduction(op, memory)
    if op.name == "matmul":
        return _matmul(op, memory)
    return None


def _matmul(op: Op, memory: Memory) -> list[Part] | None:
    """A small product of matrices; NumPy's rules for vectors and batches."""
    left, right = op.operands
    out, dtype = op.results[0], op.results[0].type.dtype
    if dtype not in FLOATS or left.type.rank < 2 or right.type.rank < 2:
        return None
    (m, k), n = left.type.shape[-2:], right.type.shape[-1]
    batch = out.type.shape[:-2]
    strides = [_batch_strides(v, len(batch), memory) for v in (left, right, out)]
    axes = collapsed(batch, [s[:-2] for s in strides])
    if m * n * k > SMALL_PRODUCT or len(axes) > 1:
        return None
    count, steps = (axes[0].size, axes[0].strides) if axes else (1, (0, 0, 0))
    a, b, c = (Matrix(step, *s[-2:]) for step, s in zip(steps, strides, strict=True))
    product = Product(dtype, count, m, n, k, a, b, c)
    return _products(product, op, memory)


def _batch_strides(value: Value, rank: int, memory: Memory) -> Strides:
    """Strides over the batch of the result, then those of the matrix."""
    strides, shape = memory.strides(value), value.type.shape
    over = tuple(0 if n == 1 else s for n, s in zip(shape[:-2], strides[:-2], strict=True))
    return (0,) * (rank - len(over)) + over + tuple(strides[-2:])


def _column_sum(op: Op, order: Sequence[int], rows: int, out: Strides, memory: Memory) -> list[Part] | None:
    """A sum or mean over axes that elements next to each other do not lie along."""
    (x,), dtype = op.operands, op.operands[0].type.dtype
    if op.name not in ("sum", "mean") or dtype not in FLOATS or op.results[0].type.dtype != dtype:
        return None
    shape, strides = [x.type.shape[d] for d in order], [memory.strides(x)[d] for d in order]
    kept = collapsed(shape[:rows], [tuple(strides[:rows]), out[:rows]])
    lost = collapsed(shape[rows:], [tuple(strides[rows:])])
    if len(lost) != 1 or lost[0].size > LONGEST_COLUMN or not 1 <= len(kept) <= 2:
        return None
    count, steps = (kept[0].size, kept[0].strides) if len(kept) == 2 else (1, (0, 0))
    columns = kept[-1]
    matrices = Matrix(steps[0], lost[0].strides[0], columns.strides[0]), Matrix(steps[1], 0, columns.strides[1])
    divisor = float(lost[0].size) if op.name == "mean" else 1.0
    return _products(Product(dtype, count, 1, columns.size, lost[0].size, None, *matrices, divisor), op, memory)


def _products(product: Product, op: Op, memory: Memory) -> list[Part] | None:
    if not product.fits:
        return None
    work = product.batches * product.m * product.n * product.k / 8
    return [Part(product, tuple(map(memory.location, (*op.operands, *op.results))), work)]


def _is_supported(op: Op) -> bool:
    dtype = op.operands[-1].type.dtype if op.operands else op.results[0].type.dtype
    if op.name == "constant":
        return op.results[0].type.rank == 0 and dtype in REGISTERS
    if op.name == "cast":
        return converts(dtype, op.results[0].type.dtype)
    if op.name in REDUCTIONS or op.name in COMPOSITES:
        return op.operands[0].type.dtype in REGISTERS and op.results[0].type.dtype in REGISTERS
    return dtype in REGISTERS if op.name == "where" else op.defn.elementwise and supports(op.name, dtype)


def _part(nest: Nest, operands: Sequence[Value], results: Sequence[Value], memory: Memory) -> Part:
    work = math.prod(nest.shape) * (len(operands) + len(results) + sum(_cost(s.name) for s in nest.steps if s.full))
    return Part(nest, tuple(map(memory.location, (*operands, *results))), work)


@lru_cache(maxsize=256)
def _cost(name: str) -> float:
    # Vectors compute several elements in the time that memory delivers one.
    defn: OpDef = lookup(name)
    return defn.cost / 4


def _fusion(op: Op, body: Program, memory: Memory) -> list[Part] | None:
    if not all(_is_supported(inner) and inner.results[0].type.dtype in REGISTERS for inner in body.ops):
        return None
    if not loops_together(body):
        return None
    shape, rows = iteration_space(body)
    if any(reduced_axes(o) != tuple(range(rows, len(shape))) for o in body.ops if not o.defn.elementwise and o.operands):
        return None
    nest = describe(body, [memory.strides(v) for v in op.operands], [memory.strides(v) for v in op.results])
    if not _is_safe(nest, memory.plan.overwritten[op]):
        return None
    return [_part(nest, op.operands, op.results, memory)]


def _is_safe(nest: Nest, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether row buffers fit, and no pass writes a result over an operand that a later one still reads."""
    if nest.stages > 1 and math.prod(nest.inner) * 8 * len(nest.steps) > ROW_BYTES * 8:
        return False
    for j, i in pairs:
        made = nest.step(nest.outputs[j][0])
        last = max((s.stage - (s.name in REDUCTIONS) for s in nest.steps if i in s.operands), default=0)
        if made is not None and made.full and last > made.stage:
            return False
    return True


def _elementwise(op: Op, memory: Memory) -> list[Part]:
    result = op.results[0]
    made = Describer(result.type.shape, result.type.rank)
    numbers = [made.input(v.type.dtype, made.align(v.type, memory.strides(v)), True) for v in op.operands]
    if op.name == "cast":
        number = made.cast(numbers[0], op.operands[0].type.dtype, result.type.dtype)
    else:
        number = made.add(op.name, numbers, op.operands[-1].type.dtype, result.type.dtype)
    return [_part(made.finish([(number, memory.strides(result))]), op.operands, op.results, memory)]


def _reduction(op: Op, memory: Memory) -> list[Part] | None:
    """A reduction along any axes: these are moved to the end."""
    if not _is_supported(op):
        return None
    (x,), result = op.operands, op.results[0]
    axes = reduced_axes(op) if x.type.rank else ()
    order = [d for d in range(x.type.rank) if d not in axes] + list(axes)
    rows = x.type.rank - len(axes)
    strides = memory.strides(x)
    made = Describer(tuple(x.type.shape[d] for d in order), rows)
    number = made.input(x.type.dtype, tuple(0 if x.type.shape[d] == 1 else strides[d] for d in order), True)
    total = made.reduction(op, number)
    written = memory.strides(result)
    if result.type.rank == x.type.rank:
        out = tuple(0 if result.type.shape[d] == 1 else written[d] for d in order)
    else:
        out = (*(0 if n == 1 else s for n, s in zip(result.type.shape, written, strict=True)), *(0,) * len(axes))
    if axes and rows and strides[order[-1]] > 1 and strides[order[rows - 1]] == 1 and op.name not in COMPOSITES[-2:]:
        return _column_sum(op, order, rows, out, memory)
    nest = made.finish([(total, out)])
    return [_part(nest, op.operands, op.results, memory)] if _is_safe(nest, ()) else None
