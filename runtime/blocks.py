"""Large fused groups run in blocks of rows that stay in the processor's cache.

Note: cutting. The leading axes of a group's iteration space are cut: all of them where every operand is either full or
one number; up to the first reduced axis where the body reduces; fewer where an operand broadcasts, so that each operand either
has all rows or none. Every row is computed exactly as it would be in the whole array, so blocks change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from tpc.ir.builder import Builder
from tpc.ir.layout import Strides, is_contiguous, reshaped
from tpc.ir.opdef import AttrValue, lookup
from tpc.ir.plan import Plan, plan_body
from tpc.ir.program import Op, Program, Value
from tpc.ir.signature import result_types
from tpc.ir.types import tensor_type
from tpc.runtime.code import Code
from tpc.runtime.workers import run_shared

CACHE_BYTES = 1 << 20
"""What a block may use: half of a second-level cache of common size. Groups that use less run whole."""
SHARED_FROM = 1 << 19
"""From this many elements on, blocks are shared between threads."""
LEAST_ELEMENTS = 1 << 16
"""Blocks do not get smaller than this, even out of the cache: threads take turns at the interpreter, twice per call of a kernel."""


class Cut(NamedTuple):
    """How a group is cut: `axes` leading axes of `shape`, together `rows` rows, `step` of them a block."""

    shape: tuple[int, ...]
    axes: int
    rows: int
    step: int

    def trail(self, value: Value) -> tuple[int, ...] | None:
        """Shape of one row of a value; None if it has no rows but is the same for all."""
        lead, shape = self.shape[: self.axes], value.type.shape
        if _is_reduced(value) or len(shape) == len(self.shape):
            return shape[self.axes :] if shape[: self.axes] == lead else None
        return None


def cut_of(op: Op, strides: Sequence[Strides]) -> Cut | None:
    """How to cut a fusion whose operands have these strides; None if it is better, or only possible, to run it whole."""
    body = cast(Program, op.body)
    values = [*body.inputs, *(v for o in body.ops if o.operands for v in o.results)]
    shape = max((v.type.shape for v in values), key=lambda s: (math.prod(s), len(s)))
    if any(o.operands and not (o.defn.elementwise or o.defn.reduction) for o in body.ops):
        return None
    working = plan_body(op, body, ()).arena_bytes + sum(v.type.nbytes for v in (*body.inputs, *body.outputs))
    if working <= CACHE_BYTES or _reduces_gaps(body, strides):
        return None
    most = min((d for o in body.ops if o.defn.reduction for d in _dims(o)), default=len(shape))
    for axes in range(most, 0, -1):
        rows = math.prod(shape[:axes])
        step = max(1, rows * CACHE_BYTES // working, rows * LEAST_ELEMENTS // math.prod(shape))
        cut = Cut(shape, axes, rows, step)
        if rows > step and all(_fits(cut, v) for v in values) and _is_seen(cut, body, strides):
            return cut
    return None


def _reduces_gaps(body: Program, strides: Sequence[Strides]) -> bool:
    """Whether a reduction reads an operand that is not row-major: NumPy would then add in another order in a block than in the whole."""
    gaps = {v for v, s in zip(body.inputs, strides, strict=True) if not is_contiguous(v.type.shape, s)}
    return any(op.defn.reduction and not gaps.isdisjoint(op.operands) for op in body.ops)


def _dims(op: Op) -> tuple[int, ...]:
    """The reduced axes of a reduction; all for one that names none."""
    dims = op.attrs.get("dims", op.attrs.get("dim"))
    if dims is None:
        return tuple(range(op.operands[0].type.rank))
    return dims if isinstance(dims, tuple) else (cast(int, dims),)  # type: ignore[return-value]


def _is_reduced(value: Value) -> bool:
    """Whether a value lacks the axes that it was reduced over, so that its axes stand at the left of the iteration space."""
    return value.op is not None and value.op.defn.reduction and value.type.rank < value.op.operands[0].type.rank


def _fits(cut: Cut, value: Value) -> bool:
    """Whether a value has all rows, or none."""
    if cut.trail(value) is not None:
        return True
    missing = len(cut.shape) - value.type.rank
    return not _is_reduced(value) and all(size == 1 for size in value.type.shape[: max(0, cut.axes - missing)])


def _is_seen(cut: Cut, body: Program, strides: Sequence[Strides]) -> bool:
    """Whether every result has rows, and every operand that has some can be seen as rows without a copy."""
    trails = [(v, s, cut.trail(v)) for v, s in zip(body.inputs, strides, strict=True)]
    if any(cut.trail(v) is None for v in body.outputs):
        return False
    return all(t is None or reshaped(v.type.shape, s, (cut.rows, *t)) is not None for v, s, t in trails)


def block_shape(cut: Cut, value: Value, rows: int) -> tuple[int, ...]:
    """Shape of a value in a block of so many rows."""
    trail = cut.trail(value)
    if trail is not None:
        return (rows, *trail)
    kept = len(cut.shape) - cut.axes
    return value.type.shape[max(0, value.type.rank - kept) :]


def block_body(op: Op, cut: Cut, rows: int) -> Program:
    """The body of a fusion as it is for a block of so many rows."""
    body = cast(Program, op.body)
    builder = Builder(body.name)
    new = {v: builder.input(tensor_type(v.type.dtype, block_shape(cut, v, rows)), v.name) for v in body.inputs}
    for inner in body.ops:
        attrs: dict[str, AttrValue] = dict(inner.attrs)
        if inner.defn.reduction:
            moved = tuple(d - cut.axes + 1 for d in _dims(inner))
            attrs.update({"dims": moved} if "dims" in attrs else {"dim": moved[0]})
        operands = [new[v] for v in inner.operands]
        types = result_types(inner.defn, [v.type for v in operands], attrs)
        made = builder.append(Op(inner.defn, operands, attrs, types, inner.scopes, inner.loc))
        new.update(zip(inner.results, made.results, strict=True))
    return builder.finish([new[v] for v in body.outputs])


def is_large(op: Op) -> bool:
    """Whether a single op is worth running in blocks: over threads, and with the kernel's own temporaries in the cache."""
    return op.defn.elementwise and op.result.type.numel >= SHARED_FROM


def alone(op: Op, plan: Plan) -> tuple[Op, list[tuple[int, int]]]:
    """A fusion of one op, and which operand its result is written over in the plan."""
    builder = Builder(op.name)
    operands = tuple(dict.fromkeys(op.operands))
    new = {v: builder.input(v.type) for v in operands}
    made = builder.append(Op(op.defn, [new[v] for v in op.operands], op.attrs, op.types, op.scopes, op.loc))
    fusion = Op(lookup("fusion"), operands, {}, op.types, op.scopes, op.loc, (builder.finish(made.results),))
    here = plan.places[op.result]
    over = [i for i, v in enumerate(operands) if plan.places[v] == here and v.type == op.result.type and here.kind != "constant"]
    return fusion, [(0, i) for i in over[:1]]


Write = Callable[[Code, Plan, Sequence[str], Callable[[int], str]], None]
"""Writes the ops of a plan into code; handed in by `lowering`, which uses this module."""


class Blocks:
    """A fusion that runs block by block."""

    def __init__(self, op: Op, pairs: Sequence[tuple[int, int]], cut: Cut, threads: int, write: Write) -> None:
        body = cast(Program, op.body)
        self.cut = cut
        self.count = -(-cut.rows // cut.step)
        self.threads = min(threads, self.count) if math.prod(cut.shape) >= SHARED_FROM else 1
        values = (*body.inputs, *body.outputs)
        self.shapes = tuple(block_shape(cut, v, cut.rows) for v in values)
        self.moving = tuple(cut.trail(v) is not None for v in values)
        last = cut.rows - (self.count - 1) * cut.step
        self.codes: list[Code] = []
        self.block_bytes = 0
        for rows in dict.fromkeys((cut.step, last)):
            block = block_body(op, cut, rows)
            plan = plan_body(op, block, pairs)
            inputs, outputs = [f"i{n}" for n in range(len(body.inputs))], [f"o{n}" for n in range(len(body.outputs))]
            code = Code(f"block of @{body.name}", [*inputs, *outputs])
            write(code, plan, inputs, outputs.__getitem__)
            code.rename(dict(zip(block.ops, body.ops, strict=True)))
            self.codes.append(code)
            self.block_bytes = max(self.block_bytes, plan.arena_bytes)

    @property
    def scratch_bytes(self) -> int:
        return self.block_bytes * self.threads

    def instance(self, scratch: np.ndarray) -> Callable[..., None]:
        """The fusion as a function of its operands and results, over its own scratch memory."""
        functions = []
        for thread in range(self.threads):
            memory = {"scratch": scratch[thread * self.block_bytes : (thread + 1) * self.block_bytes]}
            made = [code.function(memory) for code in self.codes]
            functions.append((made[0], made[-1]))
        step, last, shapes, moving = self.cut.step, self.count - 1, self.shapes, self.moving

        def run(*arrays: np.ndarray) -> None:
            rows = [(a.reshape(shape), moves) for a, shape, moves in zip(arrays, shapes, moving, strict=True)]

            def work(numbers: Iterator[int], thread: int) -> None:
                block, tail = functions[thread]
                for number in numbers:
                    here = slice(number * step, (number + 1) * step)
                    function: Callable[..., Any] = block if number < last else tail
                    function(*[a[here] if moves else a for a, moves in rows])

            run_shared(work, self.count, self.threads)

        return run
