"""A plan turned into lines of Python that call kernels on prepared arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tpc.ir.plan import Place, Plan, plan_body
from tpc.ir.program import Op, Value
from tpc.runtime.arena import array_at
from tpc.runtime.blocks import Blocks, alone, cut_of, is_large
from tpc.runtime.code import Code
from tpc.runtime.kernels.registry import bind

if TYPE_CHECKING:
    from tpc.runtime.native.segments import Segments

KEYWORD_OUT = (np.maximum, np.minimum)
"""NumPy wants these two to be told by name where their result goes."""


class Lowering:
    """Writes the ops of one plan into `code`.

    `inputs` and `output(j)` are the names of the arrays that the plan's inputs and outputs live in; `arena` is the name of
    the memory that its other values live in. Views of prepared arrays are prepared too, and cost nothing at run time. `threads`
    is how many may share a large op; 0 says that these lines are part of one, and nothing is cut. `native` makes what takes ops
    that have native kernels.
    """

    def __init__(
        self,
        code: Code,
        plan: Plan,
        inputs: Sequence[str],
        output: Callable[[int], str],
        arena: str,
        threads: int,
        native: Callable[[Lowering], Segments] | None = None,
    ) -> None:
        self.code = code
        self.plan = plan
        self.names = dict(zip(plan.program.inputs, inputs, strict=True))
        self.inputs = tuple(inputs)
        self.output = output
        self.arena = arena
        self.threads = threads
        self.scratch_bytes = 0
        """Memory that fusions need for their inner values while they run."""
        self.blocked: list[Blocks] = []
        self.arrays: dict[tuple[Place, object], str] = {}
        self._memory: str | None = None
        self.segments = native(self) if native is not None else None

    def lower(self) -> None:
        """Writes every op, then the copies into outputs whose value lives elsewhere."""
        for op in self.plan.program.ops:
            if op.results[0] in self.plan.views:
                continue
            if self.plan.places[op.results[0]].kind == "constant":
                self._constant(op)
            elif self.segments is None or not self.segments.take(op):
                self._op(op)
        if self.segments is not None:
            self.segments.close()
        for j in self.plan.copied:
            value = self.plan.program.outputs[j]
            self.code.line(f"copyto({self.output(j)}, {self.name(value)})", value.op)

    def _op(self, op: Op) -> None:
        """An op on NumPy."""
        if op.defn.view:
            self._copy_reshaped(op)
        elif op.body is not None:
            self._fusion(op, op, self.plan.overwritten[op])
        elif self.threads and is_large(op):
            self._fusion(op, *alone(op, self.plan))
        else:
            self._call(op)

    def name(self, value: Value) -> str:
        """The name of a value's array. Views are made when they are first asked for: native code needs none."""
        if value not in self.names:
            self.names[value] = self._view(cast(Op, value.op)) if value in self.plan.views else self._home(value)
        return self.names[value]

    def memory(self) -> str:
        """The name of the arena in the generated code."""
        if self._memory is None:
            arena = self.arena
            self._memory = self.code.recipe("arena", lambda names: names[arena])
        return self._memory

    def _home(self, value: Value) -> str:
        """The name of the array that a result is written to."""
        place, program = self.plan.places[value], self.plan.program
        if place.kind == "input":
            return self.inputs[place.index]
        if place.kind == "output":
            name = self.output(place.index)
            if program.outputs[place.index].type.shape == value.type.shape:
                return name
            return self._assigned(f"{name}.reshape({value.type.shape})", value.op)
        key = (place, value.type)
        if key not in self.arrays:
            offset, (dtype, shape), arena = place.index, (value.type.numpy_dtype, value.type.shape), self.arena
            self.arrays[key] = self.code.recipe("b", lambda names: array_at(names[arena], offset, shape, dtype))
        return self.arrays[key]

    def _assigned(self, expression: str, op: Op | None) -> str:
        name = self.code.fresh("v")
        self.code.line(f"{name} = {expression}", op)
        return name

    def _view(self, op: Op) -> str:
        kernel, source = bind(op), self.name(op.operands[0])
        if source in self.code.shared:
            return self.code.bind("c", kernel(self.code.shared[source]))
        if source in self.code.recipes:
            return self.code.recipe("b", lambda names: kernel(names[source]))
        return self._assigned(_written_out(op, source) or f"{self.code.bind('k', kernel)}({source})", op)

    def _copy_reshaped(self, op: Op) -> None:
        """A view that memory order does not allow: elements are copied, seen in the shape of the operand where that is a reshape."""
        operand = op.operands[0]
        source, target = self.name(operand), self._home(op.result)
        self.names[op.result] = target
        if op.name == "reshape":
            shape = operand.type.shape
            if target in self.code.recipes:
                name = target
                target = self.code.recipe("b", lambda names: names[name].reshape(shape))
            else:
                target = f"{target}.reshape({shape})"
            self.code.line(f"copyto({target}, {source})", op)
        else:
            self.code.line(f"copyto({target}, {self.code.bind('k', bind(op))}({source}))", op)

    def _constant(self, op: Op) -> None:
        with np.errstate(all="ignore"):
            made = bind(op)()
        for value, array in zip(op.results, made if isinstance(made, tuple) else (made,), strict=True):
            array.flags.writeable = False
            self.names[value] = self.code.bind("c", array)

    def _call(self, op: Op) -> None:
        for value in op.results:
            self.names[value] = self._home(value)
        out = ", ".join(self.names[v] for v in op.results)
        if len(op.results) > 1:
            out = f"({out})"
        kernel = bind(op)
        if kernel in KEYWORD_OUT:
            out = f"out={out}"
        arguments = [self.name(v) for v in op.operands]
        self.code.line(f"{self.code.bind('k', kernel)}({', '.join([*arguments, out])})", op)

    def _fusion(self, op: Op, fusion: Op, pairs: Sequence[tuple[int, int]]) -> None:
        """A fusion, or a single op dressed up as one: in blocks if it is large, else op by op."""
        assert fusion.body is not None
        for value in op.results:
            self.names[value] = self._home(value)
        arguments, outs = [self.name(v) for v in fusion.operands], [self.names[v] for v in op.results]
        for j, i in pairs:
            # The same memory; but what stands for the operand may be a view that NumPy does not let us write to.
            arguments[i] = outs[j]
        cut = cut_of(fusion, [self.plan.strides[v] for v in fusion.operands]) if self.threads else None
        if cut is not None:
            blocks = Blocks(fusion, pairs, cut, self.threads, _write_block)
            self.blocked.append(blocks)
            self.scratch_bytes = max(self.scratch_bytes, blocks.scratch_bytes)
            name = self.code.recipe("f", lambda names: blocks.instance(names["scratch"]))
            self.code.line(f"{name}({', '.join([*arguments, *outs])})", op)
            return
        plan = plan_body(fusion, fusion.body, pairs)
        inner = Lowering(self.code, plan, arguments, outs.__getitem__, "scratch", 0)
        inner.lower()
        self.scratch_bytes = max(self.scratch_bytes, plan.arena_bytes)


def _written_out(op: Op, source: str) -> str | None:
    """A view of an array as plain Python: in programs of many small ops, calling its kernel would cost more than the view."""
    attrs: Any = op.attrs
    if op.name == "reshape":
        return f"{source}.reshape({attrs['shape']})"
    if op.name == "permute":
        dims = attrs["dims"]
        return f"{source}.T" if dims == tuple(range(len(dims)))[::-1] else f"{source}.transpose({dims})"
    if op.name == "slice" and attrs["starts"]:
        ends = list(zip(attrs["starts"], attrs["limits"], attrs["steps"], op.operands[0].type.shape, strict=True))
        while len(ends) > 1 and ends[-1][0] == 0 and ends[-1][1:3] == (ends[-1][3], 1):
            ends.pop()  # all of the axis
        return f"{source}[{', '.join(f'{a}:{b}' if c == 1 else f'{a}:{b}:{c}' for a, b, c, _ in ends)}]"
    return None


def _write_block(code: Code, plan: Plan, inputs: Sequence[str], output: Callable[[int], str]) -> None:
    code.shared["copyto"] = np.copyto
    Lowering(code, plan, inputs, output, "scratch", 0).lower()
