"""Random valid programs with arrays to run them on, for hypothesis.

    @given(programs())
    def test_cse_keeps_values(case):
        program, arrays = case
        ...

Programs mix dtypes, broadcasting, views, reductions, scatters, several results and fusions; arrays hold NaN,
infinities and negative zero now and then. `steps` can be narrowed to the steps that a test is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from tpc.ir.builder import Builder
from tpc.ir.errors import TypeRuleError
from tpc.ir.program import Loc, Program, Value
from tpc.ir.types import TensorType, is_complex, is_floating, tensor_type

MAX_NUMEL = 2000
SHAPES = ((), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 1, 3), (4, 2), (0, 3))
DTYPES = ("f32",) * 6 + ("f64", "f64", "i64", "bool", "i32", "c64", "f16", "u8")

Step = Callable[["Growth"], "Value | Sequence[Value] | None"]


class Growth:
    """A program while it grows: values so far, and choices drawn by hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy], object], name: str) -> None:
        self.draw = draw
        self.builder = Builder(name)
        self.values: list[Value] = []

    def choose(self, options: Sequence):
        return self.draw(st.sampled_from(list(options)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def value(self, keep: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value for which `keep` holds; late ones are likelier, so that programs get deep."""
        fitting = [v for v in self.values if keep(v)]
        return self.choose(fitting[-4:] + fitting) if fitting else None

    def like(self, x: Value) -> Value | None:
        """A value of the same dtype that broadcasts with `x`."""

        def fits(v: Value) -> bool:
            pairs = zip(reversed(v.type.shape), reversed(x.type.shape), strict=False)
            return v.type.dtype == x.type.dtype and all(m == n or 1 in (m, n) for m, n in pairs)

        return self.value(fits)

    def emit(self, name: str, *operands: Value, **attrs):
        scopes = self.choose([(), (), ("Swish#0",), ("Swish#0", "Outer#1/InnerBackward#0")])
        loc = self.choose([None, Loc("model.py", 7, "forward"), Loc("model.py", 12, "backward")])
        return self.builder.emit(name, *operands, scopes=scopes, loc=loc, **attrs)


def _floating(v: Value) -> bool:
    return is_floating(v.type.dtype)


def _real(v: Value) -> bool:
    return v.type.dtype != "bool" and not is_complex(v.type.dtype)


def _numeric(v: Value) -> bool:
    return v.type.dtype != "bool"


def unary(g: Growth):
    x = g.value(_floating)
    return x and g.emit(g.choose(["neg", "exp", "sigmoid", "tanh", "relu", "sqrt", "abs", "floor", "square", "sign", "log1p"]), x)


def integer_unary(g: Growth):
    x = g.value(_numeric)
    return x and g.emit(g.choose(["neg", "abs", "square"]), x)


def binary(g: Growth):
    x = g.value(_numeric)
    y = x and g.like(x)
    return y and g.emit(g.choose(["add", "sub", "mul", "mul", "add"]), x, y)


def real_binary(g: Growth):
    x = g.value(_real)
    y = x and g.like(x)
    return y and g.emit(g.choose(["maximum", "minimum", "lt", "ge"]), x, y)


def divide(g: Growth):
    x = g.value(_floating)
    y = x and g.like(x)
    return y and g.emit(g.choose(["div", "atan2", "pow"]), x, y)


def compare(g: Growth):
    x = g.value()
    y = x and g.like(x)
    return y and g.emit(g.choose(["eq", "ne", "logical_and", "logical_or"]), x, y)


def where(g: Growth):
    x = g.value()
    y = x and g.like(x)
    condition = g.value(lambda v: v.type.dtype == "bool")
    return y and condition and g.emit("where", condition, x, y)


def scalar(g: Growth):
    dtype = g.choose(["f32", "f32", "f64", "i64"])
    number = g.choose([0, 1, -1, 2, 0.5, -0.0, float("inf"), 3.0]) if dtype[0] == "f" else g.number(-3, 3)
    return g.builder.constant(number, dtype)


def cast(g: Growth):
    x = g.value(_real)
    return x and g.emit("cast", x, dtype=g.choose(["f32", "f64", "f16"]))


def reduce(g: Growth):
    x = g.value(lambda v: _floating(v) and v.type.rank > 0)
    if x is None:
        return None
    dims = tuple(sorted(g.draw(st.sets(st.integers(0, x.type.rank - 1), min_size=1))))
    return g.emit(g.choose(["sum", "sum", "mean", "amax", "prod"]), x, dims=dims, keepdim=g.choose([True, False]))


def softmax(g: Growth):
    x = g.value(lambda v: _floating(v) and v.type.rank > 0)
    return x and g.emit("softmax", x, dim=g.number(0, x.type.rank - 1))


def cumsum(g: Growth):
    x = g.value(lambda v: _floating(v) and v.type.rank > 0)
    return x and g.emit("cumsum", x, dim=g.number(0, x.type.rank - 1))


def sort(g: Growth):
    x = g.value(lambda v: _floating(v) and v.type.rank > 0)
    return x and g.emit("sort", x, dim=g.number(0, x.type.rank - 1), descending=g.choose([True, False]), stable=True)


def permute(g: Growth):
    x = g.value()
    return x and g.emit("permute", x, dims=tuple(g.draw(st.permutations(range(x.type.rank)))))


def reshape(g: Growth):
    x = g.value()
    if x is None:
        return None
    numel = x.type.numel
    shapes = [(numel,), (1, numel), (numel, 1)] + [(n, numel // n) for n in (2, 3) if numel % n == 0]
    return g.emit("reshape", x, shape=g.choose(shapes))


def broadcast(g: Growth):
    x = g.value()
    return x and g.emit("broadcast_to", x, shape=(g.number(1, 3), *[g.number(1, 3) if n == 1 else n for n in x.type.shape]))


def _window(g: Growth, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    starts = tuple(g.number(0, n) for n in shape)
    limits = tuple(g.number(start, n) for start, n in zip(starts, shape, strict=True))
    return {"starts": starts, "limits": limits, "steps": tuple(g.number(1, 2) for _ in shape)}


def slice_(g: Growth):
    x = g.value(lambda v: v.type.rank > 0)
    return x and g.emit("slice", x, **_window(g, x.type.shape))


def slice_scatter(g: Growth):
    x = g.value(lambda v: v.type.rank > 0)
    if x is None:
        return None
    window = _window(g, x.type.shape)
    src = g.emit("slice", g.like(x) if g.choose([True, False]) else x, **window)
    return g.emit("slice_scatter", x, src, **window)


def cat(g: Growth):
    x = g.value(lambda v: v.type.rank > 0)
    return x and g.emit("cat", x, g.value(lambda v: v.type == x.type), x, dim=g.number(0, x.type.rank - 1))


def flip_pad(g: Growth):
    x = g.value(lambda v: _floating(v) and v.type.rank > 0)
    if x is None:
        return None
    if g.choose([True, False]):
        return g.emit("flip", x, dims=(g.number(0, x.type.rank - 1),))
    low, high = (tuple(g.number(0, 2) for _ in x.type.shape) for _ in range(2))
    return g.emit("pad", x, low=low, high=high, value=1.5)


def matmul(g: Growth):
    x = g.value(lambda v: v.type.dtype in ("f32", "f64") and v.type.rank >= 2)
    if x is None:
        return None
    order = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
    return g.emit("matmul", x, g.emit("permute", x, dims=order))


def take(g: Growth):
    x = g.value(lambda v: v.type.rank > 0 and v.type.shape[0] > 0)
    if x is None:
        return None
    positions = g.emit("iota", start=0, step=1, size=g.number(1, x.type.shape[0]), dtype="i64")
    return g.emit("index", x, positions, axes=(0,)) if g.choose([True, False]) else g.emit("index_select", x, positions, dim=0)


def fusion(g: Growth):
    """An elementwise body over one or two values."""
    x = g.value(_floating)
    y = x and g.like(x)
    if x is None or y is None:
        return None
    body = Growth(g.draw, "fused")
    body.values = [body.builder.input(v.type, name) for v, name in ((x, "a"), (y, None))]
    for _ in range(g.number(1, 4)):
        _grow(body, g.choose([unary, binary, divide]))
    computed = [v for v in body.values if v.op is not None]
    if not computed:
        return None
    outputs = list(dict.fromkeys([computed[-1], g.choose(computed)]))
    return g.emit("fusion", x, y, bodies=(body.builder.finish(outputs),))


STEPS: tuple[Step, ...] = (
    unary, unary, unary, integer_unary, binary, binary, binary, real_binary, divide, compare, where, scalar, cast, reduce, reduce,
    softmax, cumsum, sort, permute, reshape, broadcast, slice_, slice_scatter, cat, flip_pad, matmul, take, fusion,
)  # fmt: skip


@st.composite
def programs(draw, steps: Sequence[Step] = STEPS, max_ops: int = 12, specials: bool = True) -> tuple[Program, list[np.ndarray]]:
    """A program and arrays for its inputs; some outputs are the new content of inputs."""
    growth = Growth(draw, draw(st.sampled_from(["f", "step.reverse", "two words"])))
    for number in range(draw(st.integers(1, 4))):
        type = tensor_type(draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SHAPES)))
        growth.values.append(growth.builder.input(type, draw(st.sampled_from([None, "x", "weight", f"in{number}"]))))
    for step in draw(st.lists(st.sampled_from(list(steps)), min_size=min(3, max_ops), max_size=max_ops)):
        _grow(growth, step)
    outputs = _outputs(draw, growth)
    program = growth.builder.finish(outputs, _writes(draw, growth, outputs))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return program, [array(v.type, rng, specials) for v in program.inputs]


def _grow(growth: Growth, step: Step) -> None:
    """One more step; its values are left out if it does not fit or gets too large."""
    try:
        made = step(growth)
    except TypeRuleError:
        return
    for value in (made,) if isinstance(made, Value) else made or ():
        if value.type.numel <= MAX_NUMEL:
            growth.values.append(value)


def _outputs(draw, growth: Growth) -> list[Value]:
    """Values that nobody reads, so that most steps count, and sometimes one that is read too."""
    computed = [v for v in growth.values if v.op is not None] or growth.values
    read = {operand for v in computed if v.op is not None for operand in v.op.operands}
    return [v for v in computed if v not in read][-4:] + draw(st.lists(st.sampled_from(computed), max_size=1))


def _writes(draw, growth: Growth, outputs: Sequence[Value]) -> list[int | None]:
    writes: list[int | None] = [None] * len(outputs)
    inputs = [v for v in growth.values if v.op is None]
    for j, output in enumerate(outputs):
        targets = [v.index for v in inputs if v.type == output.type and v.index not in writes]
        if targets and draw(st.integers(0, 2)) == 0:
            writes[j] = draw(st.sampled_from(targets))
    return writes


def array(type: TensorType, rng: np.random.Generator, specials: bool = True) -> np.ndarray:
    """Random content of a type: small numbers, every tenth or so special."""
    dtype = type.numpy_dtype
    if dtype.kind in "bui":
        return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 6, type.shape), dtype)
    values = rng.standard_normal(type.shape)
    if dtype.kind == "c":
        return np.asarray(values + 1j * rng.standard_normal(type.shape), dtype)
    if specials:
        odd = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], type.shape)
        values = np.where(rng.random(type.shape) < 0.1, odd, values)
    return np.asarray(values, dtype)
