"""Bodies of control flow: pure functions of tensors, recorded as programs of their own.

Note: closures. A body sees its inputs alone. A tensor from outside that the code uses is *lifted*: inside the body another tensor stands
for it, and it becomes one more operand of the op. So history, tangents and batches of what a closure holds are those of an operand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tpc.ir.printer import print_program
from tpc.ir.program import Program
from tpc.ir.types import TensorType, is_differentiable
from tpc.recording import Recorded, capture, placeholder, resolve_loc, user_frame
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor
from tpc.tracing import Trace, Untraceable

Function = Callable[..., list[Tensor]]
"""A pure function of tensors."""


class BodyTrace(Trace):
    """The trace of a body, inside whatever is recorded around it."""

    def __init__(self, what: str) -> None:
        super().__init__(concrete=False)
        self.what, self.outer = what, STATE.trace
        self.lifted: dict[int, tuple[Tensor, Tensor]] = {}
        """Tensors from outside and what stands for them here, by id."""

    def is_outside(self, storage: Storage) -> bool:
        return storage.trace is not self

    def inside(self, operands: Sequence[Any]) -> Sequence[Any]:
        if all(not isinstance(t, Tensor) or t._trace is self for t in operands):
            return operands
        return [self.stand_in(t) if isinstance(t, Tensor) and t._trace is not self else t for t in operands]

    def stand_in(self, t: Tensor) -> Tensor:
        """What stands for a tensor from outside."""
        found = self.lifted.get(id(t))
        if found is None:
            found = self.lifted[id(t)] = (t, self.input(t._type, t._tracked()))
        return found[1]

    @staticmethod
    def input(type: TensorType, tracked: bool) -> Tensor:
        """A new input of the body."""
        made = Tensor(Storage(placeholder(type)), type)
        made._leaf = tracked and is_differentiable(type.dtype)
        return made

    @contextmanager
    def standing_in(self, outer: Sequence[Tensor], inner: Sequence[Tensor]) -> Iterator[None]:
        """Within the block `inner` stand for `outer`."""
        before, self.lifted = self.lifted, {**self.lifted, **{id(o): (o, i) for o, i in zip(outer, inner, strict=True)}}
        try:
            yield
        finally:
            self.lifted = {**{k: v for k, v in self.lifted.items() if not any(v[0] is o for o in outer)}, **before}

    def read(self, storage: Storage) -> Recorded:
        raise Untraceable(f"{self.what} reads memory from outside in a way that no operand stands for; pass the tensor as an operand")

    def set(self, storage: Storage, value: Recorded) -> None:
        self.refuse_write()

    def refuse_write(self) -> None:
        where = resolve_loc(STATE.loc or user_frame())
        raise RuntimeError(
            f"Encountered input mutation during higher order op tracing: {self.what} writes an input or memory from outside in place at "
            f"{where}. Higher order ops do not support input mutation: return the new value instead. (Random functions write the state of "
            "their generator: draw the numbers outside.)"
        )

    def edge(self, tensor: Tensor) -> Any:
        return self.stand_in(tensor)._edge()

    def look(self, tensors: Any) -> None:
        return

    def grad_was_read(self, tensor: Tensor) -> None:
        raise Untraceable(f"{self.what} reads .grad of a tensor from outside; pass it as an operand")

    def evaluate(self, value: Recorded) -> Any:
        where = resolve_loc(STATE.loc or user_frame())
        if not self._depends_on_inputs(value):
            return self.peek(value)
        raise Untraceable(
            f"{self.what} looks at the value of a tensor at {where}, but it is recorded once for all values (data-dependent control flow); "
            "use tpc.cond or tpc.where instead of a branch"
        )


class Body:
    """One recorded run of a function: `inputs` and `outputs` belong to its trace, where backward can be recorded later."""

    def __init__(self, trace: BodyTrace, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.trace, self.inputs, self.outputs = trace, list(inputs), list(outputs)

    @property
    def types(self) -> list[TensorType]:
        return [t._type for t in self.outputs]

    def program(self, name: str) -> Program:
        """The body as a program; bodies that are alike are one object."""
        with clean(self.trace):
            inputs, outputs = [t._read() for t in self.inputs], [t._read() for t in self.outputs]
        return _shared(capture(name, inputs, outputs))

    def extended(self, types: Sequence[TensorType], make: Callable[[list[Tensor]], list[Tensor]]) -> Body:
        """A body in the same trace with further inputs, whose outputs `make(further)` gives."""
        with clean(self.trace), grad_mode(True):
            further = [BodyTrace.input(t, True) for t in types]
            outputs = list(self.trace.inside(make(further)))
            return Body(self.trace, [*self.inputs, *further], outputs)

    def reordered(self, order: Sequence[int]) -> Body:
        """The body with its inputs in another order."""
        return Body(self.trace, [self.inputs[i] for i in order], self.outputs)


def record_body(what: str, function: Function, types: Sequence[TensorType], tracked: Sequence[bool]) -> tuple[Body, list[Tensor]]:
    """Records a function on inputs of these types; also gives the tensors that were lifted, whose stand-ins are its last inputs."""
    trace = BodyTrace(what)
    with clean(trace):
        inputs = [BodyTrace.input(t, flag) for t, flag in zip(types, tracked, strict=True)]
        before = [t._storage.value for t in inputs]
        outputs = list(trace.inside(function(*inputs)))
        if any(t._storage.value is not v for t, v in zip(inputs, before, strict=True)):
            trace.refuse_write()
    lifted = list(trace.lifted.values())
    return Body(trace, [*inputs, *[i for _, i in lifted]], outputs), [o for o, _ in lifted]


@contextmanager
def clean(trace: Trace | None) -> Iterator[None]:
    """Runs the block under a trace, with no transform active."""
    outer = STATE.trace, STATE.vmaps, STATE.duals, STATE.transforming, STATE.saved_hooks
    STATE.trace, STATE.vmaps, STATE.duals, STATE.transforming, STATE.saved_hooks = trace, (), (), False, None
    try:
        yield
    finally:
        STATE.trace, STATE.vmaps, STATE.duals, STATE.transforming, STATE.saved_hooks = outer


@contextmanager
def grad_mode(enabled: bool) -> Iterator[None]:
    """Runs the block with recording of history on or off."""
    outer, STATE.grad_enabled = STATE.grad_enabled, enabled
    try:
        yield
    finally:
        STATE.grad_enabled = outer


def closed(function: Function, count: int, outer: Sequence[Tensor]) -> Function:
    """The function with what it closes over as arguments behind its own `count`; it runs in traces of bodies only."""

    def run(*tensors: Tensor) -> list[Tensor]:
        trace = STATE.trace
        assert isinstance(trace, BodyTrace)
        with trace.standing_in(outer, tensors[count:]):
            return list(trace.inside(function(*tensors[:count])))

    return run


_known: OrderedDict[str, Program] = OrderedDict()
KNOWN = 512


def _shared(program: Program) -> Program:
    text = print_program(program)
    found = _known.get(text)
    if found is None:
        found = _known[text] = program
        if len(_known) > KNOWN:
            _known.popitem(last=False)
    return found
