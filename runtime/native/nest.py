"""What a kernel computes, as plain data: loops over a shape, and a list of steps for every element.

Note: stages. The leading `rows` axes of the shape are looped over outside. Within one row the elements are passed over once or
more: a step that reads a reduction's result has to wait for the pass that makes it. A *full* value has an element for each one of the
shape, a *row* value one for each row. A full value made in one stage and read in a later one is kept in a row buffer.
Softmax, log-sum-exp and the variance are written out as reductions and elementwise steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from tpc.ir.layout import Strides
from tpc.ir.program import Op, Program, Value
from tpc.ir.types import TensorType

REDUCTIONS = ("sum", "prod", "amax", "amin", "any", "all")
COMPOSITES = ("mean", "var", "std", "logsumexp", "softmax", "log_softmax")


class Step(NamedTuple):
    """One scalar operation: value `operands` of `dtype` to `result`. `number` is what a constant is."""

    name: str
    dtype: str
    result: str
    operands: tuple[int, ...]
    full: bool
    stage: int
    """The pass over the row that it belongs to; for a row value the number of passes that it comes after."""
    number: Any = None


class Input(NamedTuple):
    """An operand in memory, with strides over the axes of the shape (0 where it is repeated)."""

    dtype: str
    strides: Strides
    full: bool


class Nest(NamedTuple):
    """Loops over `shape`. Values are numbered: inputs first, then steps. `outputs` are values and their strides."""

    shape: tuple[int, ...]
    rows: int
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[tuple[int, Strides], ...]

    @property
    def stages(self) -> int:
        """How many passes over a row there are."""
        return 1 + max((s.stage for s in self.steps if s.full or s.name in REDUCTIONS), default=0)

    @property
    def inner(self) -> tuple[int, ...]:
        return self.shape[self.rows :]

    def dtype(self, value: int) -> str:
        return self.inputs[value].dtype if value < len(self.inputs) else self.steps[value - len(self.inputs)].result

    def is_full(self, value: int) -> bool:
        return self.inputs[value].full if value < len(self.inputs) else self.steps[value - len(self.inputs)].full

    def step(self, value: int) -> Step | None:
        return None if value < len(self.inputs) else self.steps[value - len(self.inputs)]


def reduced_axes(op: Op) -> tuple[int, ...]:
    """The axes that a reduction, or a softmax, works along."""
    dims = op.attrs["dims"] if "dims" in op.attrs else op.attrs["dim"]
    return cast("tuple[int, ...]", dims if isinstance(dims, tuple) else (dims,))


class Describer:
    """Builds a nest step by step."""

    def __init__(self, shape: tuple[int, ...], rows: int) -> None:
        self.shape, self.rows = shape, rows
        self.count = math.prod(shape[rows:])
        self.inputs: list[Input] = []
        self.steps: list[Step] = []

    def is_full(self, type: TensorType) -> bool:
        """Whether a value of this type has an element for every element of a row."""
        inner = len(self.shape) - self.rows
        return self.count == 1 or inner == 0 or math.prod(type.shape[-inner:]) > 1

    def align(self, type: TensorType, strides: Strides, lost: bool = False) -> Strides:
        """Strides over the axes of the shape: values stand at its right end, those that lost the reduced axes at its left."""
        missing = len(self.shape) - type.rank
        moved = tuple(0 if n == 1 else s for n, s in zip(type.shape, strides, strict=True))
        return moved + (0,) * missing if lost else (0,) * missing + moved

    def input(self, dtype: str, strides: Strides, full: bool) -> int:
        assert not self.steps
        self.inputs.append(Input(dtype, strides, full))
        return len(self.inputs) - 1

    def _ready(self, value: int, full: bool) -> int:
        """The first pass in which a step can read a value."""
        if value < len(self.inputs):
            return 0
        return self.steps[value - len(self.inputs)].stage

    def add(self, name: str, operands: Sequence[int], dtype: str, result: str | None = None, number: Any = None) -> int:
        """A step; whether it is full and in which pass it stands follows from its operands."""
        reads = [self._is_full(v) for v in operands]
        stage = max((self._ready(v, f) for v, f in zip(operands, reads, strict=True)), default=0)
        reduces = name in REDUCTIONS
        self.steps.append(Step(name, dtype, result or dtype, tuple(operands), any(reads) and not reduces, stage + reduces, number))
        return len(self.inputs) + len(self.steps) - 1

    def _is_full(self, value: int) -> bool:
        return self.inputs[value].full if value < len(self.inputs) else self.steps[value - len(self.inputs)].full

    def constant(self, dtype: str, number: Any) -> int:
        return self.add("constant", (), dtype, number=number)

    def cast(self, value: int, source: str, target: str) -> int:
        return value if source == target else self.add("cast", (value,), source, target)

    def reduction(self, op: Op, x: int) -> int:
        """A reduction, or one of the ops that are made of several."""
        (type,), dtype = (v.type for v in op.operands), op.results[0].type.dtype
        source = type.dtype
        if op.name in REDUCTIONS:
            if op.name in ("any", "all"):
                return self.add(op.name, (self.cast(x, source, "bool"),), "bool")
            return self.add(op.name, (self.cast(x, source, dtype),), dtype)
        return getattr(self, f"_{op.name}")(op, x, dtype)  # type: ignore[no-any-return]

    def _mean(self, op: Op, x: int, dtype: str) -> int:
        return self.add("div", (self.add("sum", (x,), dtype), self.constant(dtype, self.count)), dtype)

    def _var(self, op: Op, x: int, dtype: str) -> int:
        centred = self.add("sub", (x, self._mean(op, x, dtype)), dtype)
        squares = self.add("sum", (self.add("mul", (centred, centred), dtype),), dtype)
        correction = cast(float, op.attrs["correction"])
        return self.add("div", (squares, self.constant(dtype, max(self.count - correction, 0))), dtype)

    def _std(self, op: Op, x: int, dtype: str) -> int:
        return self.add("sqrt", (self._var(op, x, dtype),), dtype)

    def _exponentials(self, x: int, shift: int, dtype: str) -> tuple[int, int, int]:
        shifted = self.add("sub", (x, shift), dtype)
        terms = self.add("exp", (shifted,), dtype)
        return shifted, terms, self.add("sum", (terms,), dtype)

    def _softmax(self, op: Op, x: int, dtype: str) -> int:
        _, terms, total = self._exponentials(x, self.add("amax", (x,), dtype), dtype)
        return self.add("div", (terms, total), dtype)

    def _log_softmax(self, op: Op, x: int, dtype: str) -> int:
        shifted, _, total = self._exponentials(x, self.add("amax", (x,), dtype), dtype)
        return self.add("sub", (shifted, self.add("log", (total,), dtype)), dtype)

    def _logsumexp(self, op: Op, x: int, dtype: str) -> int:
        # An infinite maximum is not subtracted: inf - inf would be NaN.
        top = self.add("amax", (x,), dtype)
        infinite = self.add("isinf", (top,), dtype, "bool")
        shift = self.add("where", (infinite, self.constant(dtype, 0), top), dtype)
        _, _, total = self._exponentials(x, shift, dtype)
        return self.add("add", (self.add("log", (total,), dtype), shift), dtype)

    def finish(self, outputs: Sequence[tuple[int, Strides]]) -> Nest:
        return Nest(self.shape, self.rows, tuple(self.inputs), tuple(self.steps), tuple(outputs))


def describe(body: Program, operands: Sequence[Strides], results: Sequence[Strides]) -> Nest:
    """The nest of a fusion's body, whose operands and results lie in memory with these strides."""
    shape, rows = iteration_space(body)
    made = Describer(shape, rows)
    number: dict[Value, int] = {}
    for value, strides in zip(body.inputs, operands, strict=True):
        number[value] = made.input(value.type.dtype, made.align(value.type, strides), made.is_full(value.type))
    for op in body.ops:
        number[op.results[0]] = _step(made, op, [number[v] for v in op.operands])
    return made.finish([(number[v], made.align(v.type, s, _lost_axes(v))) for v, s in zip(body.outputs, results, strict=True)])


def _step(made: Describer, op: Op, operands: list[int]) -> int:
    dtype = op.results[0].type.dtype
    if op.name == "constant":
        return made.constant(dtype, op.attrs["value"])
    if op.name in REDUCTIONS or op.name in COMPOSITES:
        return made.reduction(op, operands[0])
    if op.name == "cast":
        return made.cast(operands[0], op.operands[0].type.dtype, dtype)
    return made.add(op.name, operands, op.operands[-1].type.dtype, dtype)


def loops_together(body: Program) -> bool:
    """Whether one nest has room for all values of a body, which may also hold ops that have nothing to do with each other."""
    shape, _ = iteration_space(body)
    values = (*body.inputs, *(v for op in body.ops for v in op.results))
    return all(_lies_in(v, shape) for v in values)


def _lies_in(value: Value, shape: tuple[int, ...]) -> bool:
    own = value.type.shape
    if len(own) > len(shape):
        return False
    along = shape[: len(own)] if _lost_axes(value) else shape[len(shape) - len(own) :]
    return all(n in (1, size) for n, size in zip(own, along, strict=True))


def _lost_axes(value: Value) -> bool:
    """Whether a value lacks the axes that it was reduced over."""
    return value.op is not None and value.op.defn.reduction and value.type.rank < value.op.operands[0].type.rank


def iteration_space(body: Program) -> tuple[tuple[int, ...], int]:
    """The shape that a body loops over, and how many of its axes are outside of its reductions (all if it has none)."""
    values = (*body.inputs, *(v for op in body.ops for v in op.results))
    shape = max((v.type.shape for v in values), key=lambda s: (math.prod(s), len(s)))
    reducing = [op for op in body.ops if op.name in REDUCTIONS or op.name in COMPOSITES]
    rows = min((reduced_axes(op)[0] for op in reducing), default=len(shape))
    return shape, rows
