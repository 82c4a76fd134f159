"""Control flow with history and tangents: an op whose bodies are recorded functions, and what those become under a transform.

Note: transforms of bodies. A transform of control flow is control flow again, of transformed functions: the gradient of a branch is a
branch that computes the gradient. Reverse mode differentiates the body as it was recorded, so that user code does not run again; vmap and
forward mode run it once more, on batches or with tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tpc.autograd.node import Grads, Node
from tpc.autograd.saved import SECOND_TIME, SavedTensor
from tpc.autograd.tangents import Level, below, set_tangent, tangent_of
from tpc.batching.batched import Batched, depth_of, innermost, is_batched, lowered
from tpc.bodies import Body, Function, grad_mode, record_body
from tpc.ir.compare import same_program
from tpc.ir.opdef import OpDef
from tpc.ir.ops import control as ops
from tpc.ir.program import Program
from tpc.ir.signature import result_types
from tpc.ir.types import TensorType, is_differentiable, tensor_type
from tpc.recording import NO_ATTRS, Recorded, emit, user_frame
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor


@dataclass(frozen=True)
class Root:
    """User code as it was recorded: whoever runs it once more after that makes sure that it does the same."""

    name: str
    function: Function
    types: Sequence[TensorType]
    flags: Sequence[bool]
    program: Program

    def check(self) -> None:
        """`RuntimeError` where variables that the code closes over are others by now."""
        with grad_mode(True):
            again, _ = record_body(self.name, self.function, self.types, self.flags)
        if same_program(again.program(self.name), self.program, origin=False) is not None:
            raise RuntimeError(
                f"the {self.name} function of control flow has changed since it was recorded (a Python variable that it reads is another "
                "by now), and this transform of its backward runs it once more: bind the variable, as in `lambda x, k=k: x * k`"
            )


@dataclass(frozen=True)
class Call:
    """A control flow op: functions of tensors that close over nothing, and the bodies that were recorded of them, if they were."""

    defn: OpDef
    functions: tuple[Function, ...]
    attrs: dict[str, Any]
    bodies: tuple[Body, ...] = ()
    roots: tuple[Root, ...] = ()

    @property
    def carried(self) -> int:
        return int(self.attrs.get("carried", 0))

    @property
    def scanned(self) -> int:
        return int(self.attrs.get("scanned", 0))

    def input_types(self, operands: Sequence[Tensor]) -> list[TensorType]:
        """Types of the inputs of bodies."""
        types = [t._type for t in operands]
        if self.defn is ops.cond:
            return types[1:]
        for i in range(self.carried, self.carried + self.scanned):
            types[i] = tensor_type(types[i].dtype, types[i].shape[1:])
        return types

    def recorded(self, operands: Sequence[Tensor], tracked: Sequence[bool]) -> Call:
        """The call with its bodies."""
        if self.bodies:
            return self
        flags = list(tracked[1:] if self.defn is ops.cond else tracked)
        if any(flags):
            flags[: self.carried] = [True] * self.carried
        types = self.input_types(operands)
        bodies = tuple(record_body(name, f, types, flags)[0] for name, f in zip(self.defn.bodies, self.functions, strict=True))
        made = replace(self, bodies=bodies)
        if not any(flags):
            return made
        parts = zip(self.defn.bodies, self.functions, made.programs(), strict=True)
        return replace(made, roots=tuple(Root(name, f, types, flags, program) for name, f, program in parts))

    def programs(self) -> tuple[Program, ...]:
        return tuple(body.program(name) for name, body in zip(self.defn.bodies, self.bodies, strict=True))

    def saving(self) -> Call:
        """A scan whose first results behind what is carried are what every step was given, which backward needs."""
        (function,), (body,), n = self.functions, self.bodies, self.carried

        def run(*tensors: Tensor) -> list[Tensor]:
            outputs = function(*tensors)
            return [*outputs[:n], *tensors[:n], *outputs[n:]]

        outputs = [*body.outputs[:n], *body.inputs[:n], *body.outputs[n:]]
        return replace(self, functions=(run,), bodies=(Body(body.trace, body.inputs, outputs),))


def run(call: Call, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Records the op on operands that may be tracked, batched or carry tangents."""
    if STATE.trace is not None:
        operands = STATE.trace.inside(operands)
    level = innermost(operands) if STATE.transforming else None
    followed = [d for d in STATE.duals if (level is None or d.depth >= level.depth) and any(tangent_of(t, d) is not None for t in operands)]
    own = (
        operands
        if level is None
        else [t if is_batched(t, level) or not _is_from_below(t, level) else t._without_history() for t in operands]
    )
    tracked = [STATE.grad_enabled and t._tracked() and is_differentiable(t._type.dtype) for t in own]
    history = any(tracked)
    if level is not None or followed:
        for root in call.roots:
            root.check()
    if history or not (level or followed):
        call = call.recorded(own, tracked)
    shown = call.saving() if history and call.defn is ops.scan else call
    if followed:
        results = _with_tangents(shown, operands, followed[-1])
    elif level is None:
        results = _plain(shown, operands)
    else:
        from tpc.batching.control import batched

        under = [t._physical if is_batched(t, level) else t if _is_from_below(t, level) else t._without_history() for t in operands]
        with lowered(level):
            made = batched(shown, under, [is_batched(t, level) for t in operands], level)
        results = tuple(Batched(r, level) for r in made)
    if history:
        ControlNode.attach(shown, own, results)
    if shown is not call:
        n = call.carried
        return (*results[:n], *results[2 * n :])
    return results


def _is_from_below(t: Tensor, level: Any) -> bool:
    return not t._tracked() or depth_of(t) < level.depth


def _plain(call: Call, operands: Sequence[Tensor]) -> tuple[Tensor, ...]:
    programs = call.programs()
    values = tuple([t._read() for t in operands])
    types = result_types(call.defn, [v.type for v in values], call.attrs, programs)
    attrs: dict[str, Any] = {**call.attrs, "bodies": programs}
    value = emit(call.defn, values, attrs, types)
    if STATE.trace is not None:
        STATE.trace.look(operands)
    return tuple(Tensor(Storage(Recorded(None, (value,), NO_ATTRS, t, i)), t) for i, t in enumerate(types))


# --- reverse mode -------------------------------------------------------------------------------


class ControlNode(Node):
    """Back-propagates one control flow op."""

    call: Call
    saved: list[SavedTensor] | None
    count: int

    @classmethod
    def attach(cls, call: Call, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Gives the results their history."""
        node = cls([t._edge() if is_differentiable(t._type.dtype) else None for t in operands], [t._type for t in results])
        node.call, node.count, node._loc = call, len(operands), STATE.loc or user_frame()
        node.saved = [SavedTensor(t) for t in operands]
        if call.defn is ops.scan:
            node.saved += [SavedTensor(results[i], True, i) for i in range(call.carried, 2 * call.carried)]
        for slot, t in enumerate(results):
            if is_differentiable(t._type.dtype):
                t._node, t._slot = node, slot

    def name(self) -> str:
        return {"cond": "CondBackward", "while_loop": "WhileLoopBackward", "scan": "ScanBackward"}[self.call.defn.name]

    def _run(self, grads: Grads) -> Sequence[Any]:
        if all(g is None for g in grads):
            return [None] * len(self._edges)
        if self.call.defn is ops.while_loop:
            raise RuntimeError(
                f"while_loop cannot be back-propagated ({self._described()}): how often it runs is not known when its backward is "
                "recorded. Use tpc.scan with a fixed number of steps (and tpc.where for those that are too many), forward mode, or pass "
                "detached tensors"
            )
        if self.saved is None:
            raise RuntimeError(f"{SECOND_TIME} ({self._described()})")
        saved = [s.unpack(self) for s in self.saved]
        wanted = [i for i, e in enumerate(self._edges) if e is not None]
        pull = _pull_cond if self.call.defn is ops.cond else _pull_scan
        got = pull(self.call, saved[: self.count], saved[self.count :], wanted, grads)
        out: list[Tensor | None] = [None] * len(self._edges)
        for i, g in zip(wanted, got, strict=True):
            out[i] = g
        return out

    def _release(self) -> None:
        self.saved = None


def _pull_cond(call: Call, operands: Sequence[Tensor], stack: Sequence[Tensor], wanted: Sequence[int], grads: Grads) -> Sequence[Tensor]:
    arriving = [i for i, g in enumerate(grads) if g is not None]
    inputs = [i - 1 for i in wanted]
    given = [g for g in grads if g is not None]
    bodies = tuple(_pulled_body(b, inputs, arriving) for b in call.bodies)
    functions = tuple(_pulled(f, len(operands) - 1, inputs, arriving) for f in call.functions)
    return run(Call(ops.cond, functions, {}, bodies, call.roots), [*operands, *given])


def _pull_scan(call: Call, operands: Sequence[Tensor], stack: Sequence[Tensor], wanted: Sequence[int], grads: Grads) -> Sequence[Tensor]:
    """Runs the steps backwards. What is carried are the gradients of what was carried, and the sums of those of operands that every step
    reads."""
    from tpc.functions.elementwise import add
    from tpc.functions.factories import zeros_of

    n, m, (body,) = call.carried, call.scanned, call.bodies
    flowing = [i for i in range(n) if is_differentiable(operands[i]._type.dtype)]
    arriving = [i for i in range(n, len(grads)) if grads[i] is not None]
    xs, rest = [i for i in wanted if n <= i < n + m], [i for i in wanted if i >= n + m]
    inputs, outputs, count = [*flowing, *xs, *rest], [*flowing, *arriving], len(operands)
    f, a, r, y = len(flowing), len(rest), count - n - m, len(arriving)
    # From (gradients, sums | carried, scanned, gradients | rest) to (carried, scanned, rest, gradients, gradients, sums).
    back = [
        *range(f + a, f + a + n + m), *range(f + a + n + m + y, f + a + n + m + y + r), *range(f),
        *range(f + a + n + m, f + a + n + m + y), *range(f, f + a),
    ]  # fmt: skip

    def ordered(gradients: Sequence[Tensor], sums: Sequence[Tensor]) -> list[Tensor]:
        added = [add(s, g) for s, g in zip(sums, gradients[f + len(xs) :], strict=True)]
        return [*gradients[:f], *added, *gradients[f : f + len(xs)]]

    pulled = _pulled(call.functions[0], count, inputs, outputs)

    def function(*tensors: Tensor) -> list[Tensor]:
        given = [tensors[i] for i in back]
        return ordered(pulled(*given[: count + f + y]), given[count + f + y :])

    made = body.extended(
        [*[body.outputs[i]._type for i in outputs], *[body.inputs[i]._type for i in rest]],
        lambda more: ordered(_gradients(body.outputs, body.inputs, outputs, inputs, more[: f + y]), more[f + y :]),
    ).reordered([back.index(i) for i in range(len(back))])
    attrs = {"carried": f + a, "scanned": n + m + y, "length": call.attrs["length"], "reverse": not call.attrs["reverse"]}
    starts = [grads[i] if grads[i] is not None else zeros_of(operands[i]._type) for i in flowing]
    zeros = [zeros_of(operands[i]._type) for i in rest]
    given = [*starts, *zeros, *stack, *operands[n : n + m], *[grads[i] for i in arriving], *operands[n + m :]]
    results = iter(run(Call(ops.scan, (function,), attrs, (made,), call.roots), given))  # type: ignore[arg-type]
    by_operand = {i: next(results) for i in (*flowing, *rest, *xs)}
    return [by_operand[i] for i in wanted]


def _pulled_body(body: Body, inputs: Sequence[int], outputs: Sequence[int]) -> Body:
    types = [body.outputs[i]._type for i in outputs]
    return body.extended(types, lambda more: _gradients(body.outputs, body.inputs, outputs, inputs, more))


def _pulled(function: Function, count: int, inputs: Sequence[int], outputs: Sequence[int]) -> Function:
    """The gradients with respect to some inputs as a function of inputs and gradients of some outputs."""

    def pulled(*tensors: Tensor) -> list[Tensor]:
        with grad_mode(True):
            given = [_tracked_alias(t) if i in inputs else t for i, t in enumerate(tensors[:count])]
            return _gradients(function(*given), given, outputs, inputs, tensors[count:])

    return pulled


def _tracked_alias(t: Tensor) -> Tensor:
    if t._tracked():
        return t._snapshot()
    return t._without_history().requires_grad_()


def _gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], chosen: Sequence[int], wanted: Sequence[int], grads: Sequence[Tensor]
) -> list[Tensor]:
    from tpc.autograd.backward import grad
    from tpc.functions.factories import zeros_of

    pairs = [(outputs[i], g) for i, g in zip(chosen, grads, strict=True) if outputs[i]._tracked()]
    sought = [inputs[i] for i in wanted]
    got: Sequence[Tensor | None] = [None] * len(sought)
    if pairs and sought:
        got = grad([o for o, _ in pairs], sought, [g for _, g in pairs], create_graph=True, allow_unused=True)
    return [g if g is not None else zeros_of(t._type) for g, t in zip(got, sought, strict=True)]


# --- forward mode -------------------------------------------------------------------------------


def _with_tangents(call: Call, operands: Sequence[Tensor], level: Level) -> tuple[Tensor, ...]:
    """Values and tangents side by side, by functions that compute both."""
    from tpc.functions.factories import zeros_of

    n, m, first = call.carried, call.scanned, call.defn is ops.cond
    tangents = [tangent_of(t, level) for t in operands]
    with below(level):
        for i in range(n):
            if tangents[i] is None and is_differentiable(operands[i]._type.dtype):
                tangents[i] = zeros_of(operands[i]._type)
        groups = [range(n), range(n, n + m), range(n + m, len(operands))]
        order: list[tuple[int, bool]] = []
        for group in groups:
            order += [(i, False) for i in group] + [(i, True) for i in group if tangents[i] is not None]
        moving = sum(t is not None for t in tangents[:n])
        attrs = dict(call.attrs)
        if n + m or not first:
            attrs["carried"] = n + moving
            if "scanned" in attrs:
                attrs["scanned"] = m + sum(t is not None for t in tangents[n : n + m])
        inner = [(i - first, is_tangent) for i, is_tangent in order if i >= first]
        functions = tuple(_pushed(f, inner, n, name == "condition") for name, f in zip(call.defn.bodies, call.functions, strict=True))
        given = [tangents[i] if is_tangent else operands[i] for i, is_tangent in order]
        results = run(Call(call.defn, functions, attrs), given)  # type: ignore[arg-type]
    return _paired(results, n, level)


def _paired(results: Sequence[Tensor], carried: int, level: Level) -> tuple[Tensor, ...]:
    """Results with their tangents: what is carried and its tangents, then the rest and its tangents."""
    moving = sum(is_differentiable(t._type.dtype) for t in results[:carried])
    parts = results[: carried + moving], results[carried + moving :]
    out: list[Tensor] = []
    for part in parts:
        count = next(v for v in range(len(part) + 1) if v + sum(is_differentiable(t._type.dtype) for t in part[:v]) == len(part))
        tangents = iter(part[count:])
        for value in part[:count]:
            if is_differentiable(value._type.dtype):
                set_tangent(value, level, next(tangents))
        out += part[:count]
    return tuple(out)


def _pushed(function: Function, order: Sequence[tuple[int, bool]], carried: int, is_condition: bool) -> Function:
    """Values and tangents of a function from values and tangents in this order."""

    def pushed(*tensors: Tensor) -> list[Tensor]:
        from tpc.functions.factories import zeros_of

        level = Level()
        values = {i: t._snapshot() for (i, is_tangent), t in zip(order, tensors, strict=True) if not is_tangent}
        for (i, is_tangent), t in zip(order, tensors, strict=True):
            if is_tangent:
                set_tangent(values[i], level, t)
        outer = STATE.duals, STATE.transforming
        STATE.duals, STATE.transforming = (*STATE.duals, level), True
        try:
            outputs = function(*[values[i] for i in sorted(values)])
        finally:
            STATE.duals, STATE.transforming = outer
        if is_condition:
            return list(outputs)
        found = [(o, tangent_of(o, level)) for o in outputs]
        made: list[Tensor] = []
        for part in (found[:carried], found[carried:]):
            made += [o for o, _ in part]
            made += [zeros_of(o._type) if t is None else t for o, t in part if is_differentiable(o._type.dtype)]
        return made

    return pushed
