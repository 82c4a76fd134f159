"""Nodes of the backward graph: what `grad_fn` gives and the engine runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from tpc.autograd import anomaly_mode
from tpc.autograd.grad_dtype import kept_type, takes_any
from tpc.autograd.saved import SECOND_TIME
from tpc.device import CPU
from tpc.device import device as Device  # noqa: N812 - a field is called so
from tpc.dtype import BY_IR, dtype
from tpc.ir.types import TensorType, is_differentiable
from tpc.recording import Recorded, resolve_loc
from tpc.size import Size
from tpc.state import STATE, WRITING

if TYPE_CHECKING:
    from tpc.tensor import Tensor

Edge = tuple["Node", int]
Grads = list["Tensor | None"]

_sequence = count()
LAST = 1 << 62
"""Sequence number of nodes that run as soon as they are ready (accumulation into leaves)."""


class HookHandle:
    """What every registration returns; `remove()` may be called any number of times, and it is a context manager."""

    __slots__ = ("_hooks", "id")
    _ids = count()

    def __init__(self, hooks: OrderedDict[int, Any]) -> None:
        self._hooks = ref(hooks)
        self.id = next(HookHandle._ids)

    def remove(self) -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks(OrderedDict[int, Any]):
    """Callables in order of registration."""

    def add(self, hook: Callable[..., Any]) -> HookHandle:
        handle = HookHandle(self)
        self[handle.id] = hook
        return handle


class InputMetadata(NamedTuple):
    """Shape and dtype of the gradient that a node takes for one of its outputs."""

    shape: Size
    dtype: dtype
    device: Device = CPU
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class Node:
    """One step of backward: gradients of its outputs in, gradients for `edges` out."""

    _pre_hooks: Hooks | None = None
    _post_hooks: Hooks | None = None
    _tensor_hooks: dict[int, Hooks] | None = None
    _retaining: dict[int, ref[Tensor]] | None = None
    """Tensors whose `.grad` is filled too, by output."""
    _loc: Any = None
    """The user's line that made the node."""
    _depth = 0
    """How many vmaps were active where the history behind the node began."""
    _runs_user_code = False
    """Whether what the node records comes from lines of the user's backward."""
    _any_dtype = False
    """Whether gradients are taken in any dtype (leaves whose `grad_dtype` is None)."""
    _has_inside = False
    """Whether outputs of this node may depend on each other: see `_whole`."""
    _takes_real_part = True
    """A complex gradient for a real input stands for its real part (built-in formulas; users' Functions must say so themselves)."""

    def __init__(self, edges: Sequence[Edge | None], metas: Sequence[TensorType]) -> None:
        self._edges = tuple(edges)
        self._metas = tuple(metas)
        self._sequence = next(_sequence)
        if STATE.vmaps:
            self._depth = max([e[0]._depth for e in self._edges if e is not None], default=0)
        if STATE.anomaly:
            anomaly_mode.note(self)

    def _run(self, grads: Grads) -> Sequence[Any]:
        """Gradients for `edges` from those of the outputs; None where there is none."""
        raise NotImplementedError

    def _whole(self, grads: Grads, captured: Sequence[int]) -> Grads:
        """The gradients with what flows to an output from others of the same node, for those that somebody looks at."""
        return grads

    def _release(self) -> None:
        """Drops what was saved: the pass does not retain the graph."""

    def _tracks(self, slot: int) -> bool:
        """Whether output `slot` carries a gradient."""
        return is_differentiable(self._metas[slot].dtype)

    def name(self) -> str:
        return type(self).__name__

    def _described(self) -> str:
        """The node and the user's line that made it, for messages."""
        loc = resolve_loc(self._loc)
        return self.name() + (f" at {loc}" if loc is not None else "")

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple(edge if edge is not None else (None, 0) for edge in self._edges)

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def _input_metadata(self) -> tuple[InputMetadata | None, ...]:
        """What the gradients of the outputs look like; None for outputs that are no tensors."""
        return tuple(InputMetadata(Size(m.shape), BY_IR[m.dtype]) if m is not None else None for m in self._metas)

    @property
    def _sequence_nr(self) -> int:
        return self._sequence

    def register_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(grad_inputs, grad_outputs)` after this node ran; may return a replacement for grad_inputs."""
        if self._post_hooks is None:
            self._post_hooks = Hooks()
        return self._post_hooks.add(hook)

    def register_prehook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(grad_outputs)` before this node runs; may return a replacement."""
        if self._pre_hooks is None:
            self._pre_hooks = Hooks()
        return self._pre_hooks.add(hook)

    def _hooks_on(self, slot: int) -> Hooks:
        """Tensor hooks of output `slot`."""
        if self._tensor_hooks is None:
            self._tensor_hooks = {}
        return self._tensor_hooks.setdefault(slot, Hooks())

    def retain(self, tensor: Tensor, slot: int) -> None:
        """Fills `.grad` of `tensor`, which is output `slot`, at each pass."""
        if self._retaining is None:
            self._retaining = {}
        self._retaining[slot] = ref(tensor)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"


class AccumulateGrad(Node):
    """Adds what arrives to a leaf's `.grad`."""

    def __init__(self, variable: Tensor) -> None:
        super().__init__((), (kept_type(variable),))
        self._any_dtype = takes_any(variable)
        self._depth = variable.__dict__.get("_depth", 0)
        self._sequence = LAST
        self.variable = variable

    def _hooks_on(self, slot: int) -> Hooks:
        return leaf_hooks(self.variable)

    def _run(self, grads: Grads) -> Sequence[Any]:
        (grad,) = grads
        if grad is not None:
            with WRITING:
                accumulate(self.variable, grad)
            hooks = self.variable.__dict__.get("_post_accumulate")
            for hook in tuple(hooks.values()) if hooks else ():
                got = hook(self.variable)
                if isinstance(got, type(self.variable)):
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
                if got is not None:
                    raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}': it must return None")
        return ()


def leaf_hooks(leaf: Tensor) -> Hooks:
    """Tensor hooks of a leaf; they stay with the tensor, whose node comes and goes."""
    hooks: Hooks = leaf.__dict__.setdefault("_hooks", Hooks())
    return hooks


def hook_ids(leaf: Tensor) -> tuple[Any, ...]:
    """The hooks on a leaf's gradient, by number, and its `grad_dtype` if set: what a recording has to find unchanged."""
    state = leaf.__dict__
    if not state:
        return ()
    kept = state.get("_grad_dtype")
    return (*state.get("_hooks", ()), *state.get("_post_accumulate", ()), *([kept] if kept is not None else []))


def accumulate(variable: Tensor, grad: Tensor, in_place: bool = True) -> None:
    """`.grad` += grad. In place, so that the user's object stays the same, unless the pass itself is recorded."""
    from tpc.functions.elementwise import add
    from tpc.tensor import Tensor

    old = variable._get_grad()
    if old is None:
        variable._set_grad(grad._snapshot() if STATE.grad_enabled else _untracked(grad))
    elif STATE.grad_enabled or not in_place:
        variable._set_grad(add(old, grad))
    else:
        assert isinstance(old, Tensor)
        old._write(add(old, grad))


def _untracked(grad: Tensor) -> Tensor:
    from tpc.tensor import from_recorded

    return from_recorded(grad._read())


class Overwritten(Node):
    """A tracked tensor took a content that needs no gradient: what made it before gets zeros."""

    def _run(self, grads: Grads) -> Sequence[Any]:
        from tpc.functions.factories import zeros_of

        return [zeros_of(t) for t in self._metas]

    def name(self) -> str:
        return "CopyBackwards"


class OpNode(Node):
    """The node of a built-in op; its formulas come from the table of rules."""

    plan: Any
    """Which operands get a gradient, by which formula, and what is saved for that (`rules.Plan`)."""
    saved: list[Any] | None
    """What the plan says, in its order; None once freed."""
    attrs: Mapping[str, Any]
    operand_types: Sequence[TensorType]

    def _run(self, grads: Grads) -> Sequence[Any]:
        out: list[Tensor | None] = [None] * len(self._edges)
        if all(g is None for g in grads):
            return out
        filled: Any = grads[0] if len(grads) == 1 else self._filled(grads)
        given = self._saved()
        for position, formula in self.plan.formulas:
            g = grads if formula.takes_none else filled
            got = formula.function(g, *[given[n] if n in given else self._given(n) for n in formula.names])
            if formula.variadic:
                out[position:] = [x if e is not None else None for x, e in zip(got, self._edges[position:], strict=True)]
            else:
                out[position] = got
        return out

    def _given(self, name: str) -> Any:
        if name in self.attrs:
            return self.attrs[name]
        return self.plan.type_of(name, self.operand_types)

    def _filled(self, grads: Grads) -> Grads:
        from tpc.functions.factories import zeros_of

        return [zeros_of(t) if g is None and is_differentiable(t.dtype) else g for g, t in zip(grads, self._metas, strict=True)]

    def _saved(self) -> dict[str, Any]:
        if self.saved is None:
            raise RuntimeError(f"{SECOND_TIME} ({self._described()})")
        if self.saved and STATE.trace is not None:
            STATE.trace.readers.add(self)
        return {name: _unpacked(s, self) for (name, _), s in zip(self.plan.saves, self.saved, strict=True)}

    def _release(self) -> None:
        if self.saved:
            self.saved = None


def _unpacked(saved: Any, node: Node) -> Any:
    if isinstance(saved, Recorded):
        return saved.attrs["value"]
    if isinstance(saved, tuple):
        return tuple(_unpacked(s, node) for s in saved)
    return saved.unpack(node)
