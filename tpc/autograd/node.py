"""Nodes of the backward graph: what `grad_fn` gives and the engine runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from tpc.autograd.saved import SECOND_TIME
from tpc.ir.types import TensorType, is_differentiable
from tpc.recording import Recorded, resolve_loc
from tpc.state import STATE

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


class Node:
    """One step of backward: gradients of its outputs in, gradients for `edges` out."""

    __slots__ = ("__weakref__", "edges", "loc", "metas", "post_hooks", "pre_hooks", "retaining", "scope", "sequence", "tensor_hooks")

    takes_real_part = True
    """A complex gradient for a real input stands for its real part (built-in formulas; users' Functions must say so themselves)."""

    def __init__(self, edges: Sequence[Edge | None], metas: Sequence[TensorType]) -> None:
        self.edges = tuple(edges)
        self.metas = tuple(metas)
        self.sequence = next(_sequence)
        self.pre_hooks: Hooks | None = None
        self.post_hooks: Hooks | None = None
        self.tensor_hooks: dict[int, Hooks] | None = None
        self.retaining: dict[int, ref[Tensor]] | None = None
        self.loc: Any = None
        self.scope: Any = None

    def run(self, grads: Grads) -> Sequence[Any]:
        """Gradients for `edges` from those of the outputs; None where there is none."""
        raise NotImplementedError

    def release(self) -> None:
        """Drops what was saved: the pass does not retain the graph."""

    def tracks(self, slot: int) -> bool:
        """Whether output `slot` carries a gradient."""
        return is_differentiable(self.metas[slot].dtype)

    def name(self) -> str:
        return type(self).__name__

    def described(self) -> str:
        """The node and the user's line that made it, for messages."""
        loc = resolve_loc(self.loc)
        return self.name() + (f" at {loc}" if loc is not None else "")

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple(edge if edge is not None else (None, 0) for edge in self.edges)

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def _input_metadata(self) -> tuple[TensorType, ...]:
        return self.metas

    @property
    def _sequence_nr(self) -> int:
        return self.sequence

    def register_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(grad_inputs, grad_outputs)` after this node ran; may return a replacement for grad_inputs."""
        if self.post_hooks is None:
            self.post_hooks = Hooks()
        return self.post_hooks.add(hook)

    def register_prehook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(grad_outputs)` before this node runs; may return a replacement."""
        if self.pre_hooks is None:
            self.pre_hooks = Hooks()
        return self.pre_hooks.add(hook)

    def hooks_on(self, slot: int) -> Hooks:
        """Tensor hooks of output `slot`."""
        if self.tensor_hooks is None:
            self.tensor_hooks = {}
        return self.tensor_hooks.setdefault(slot, Hooks())

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"


class AccumulateGrad(Node):
    """Adds what arrives to a leaf's `.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        super().__init__((), (variable._type,))
        self.sequence = LAST
        self.variable = variable

    def hooks_on(self, slot: int) -> Hooks:
        return leaf_hooks(self.variable)

    def run(self, grads: Grads) -> Sequence[Any]:
        (grad,) = grads
        if grad is not None:
            accumulate(self.variable, grad)
            hooks = self.variable.__dict__.get("_post_accumulate")
            for hook in tuple(hooks.values()) if hooks else ():
                if hook(self.variable) is not None:
                    raise RuntimeError("A post accumulate grad hook must return None")
        return ()


def leaf_hooks(leaf: Tensor) -> Hooks:
    """Tensor hooks of a leaf; they stay with the tensor, whose node comes and goes."""
    hooks: Hooks = leaf.__dict__.setdefault("_hooks", Hooks())
    return hooks


def accumulate(variable: Tensor, grad: Tensor) -> None:
    """`.grad` += grad. In place, so that the user's object stays the same, unless the pass itself is recorded."""
    from tpc.functions.elementwise import add
    from tpc.tensor import Tensor

    old = variable._get_grad()
    if old is None:
        variable._set_grad(grad._snapshot() if STATE.grad_enabled else _untracked(grad))
    elif STATE.grad_enabled:
        variable._set_grad(add(old, grad))
    else:
        assert isinstance(old, Tensor)
        old._write(add(old, grad))


def _untracked(grad: Tensor) -> Tensor:
    from tpc.tensor import from_recorded

    return from_recorded(grad._read())


class Overwritten(Node):
    """A tracked tensor took a content that needs no gradient: what made it before gets zeros."""

    __slots__ = ()

    def run(self, grads: Grads) -> Sequence[Any]:
        from tpc.functions.factories import zeros_of

        return [zeros_of(t) for t in self.metas]

    def name(self) -> str:
        return "CopyBackwards"


class OpNode(Node):
    """The node of a built-in op; its formulas come from the table of rules."""

    __slots__ = ("attrs", "formulas", "saved", "types", "variadic")

    formulas: Sequence[tuple[int, Any]]
    """(operand position, formula) for each operand that needs a gradient."""
    saved: dict[str, Any] | None
    types: dict[str, Any]

    def run(self, grads: Grads) -> Sequence[Any]:
        out: list[Tensor | None] = [None] * len(self.edges)
        if all(g is None for g in grads):
            return out
        g = grads[0] if len(grads) == 1 else self._filled(grads)
        saved = self._saved()
        for position, formula in self.formulas:
            got = formula.function(g, *[saved[n] if n in saved else self._given(n) for n in formula.names])
            if formula.variadic:
                return tuple(x if e is not None else None for x, e in zip(got, self.edges, strict=True))
            out[position] = got
        return out

    def _given(self, name: str) -> Any:
        return self.types[name[:-5]] if name.endswith("_type") else self.attrs[name]

    def _filled(self, grads: Grads) -> Grads:
        from tpc.functions.factories import zeros_of

        return [zeros_of(t) if g is None and is_differentiable(t.dtype) else g for g, t in zip(grads, self.metas, strict=True)]

    def _saved(self) -> dict[str, Any]:
        if self.saved is None:
            raise RuntimeError(f"{SECOND_TIME} ({self.described()})")
        return {name: _unpacked(s, self) for name, s in self.saved.items()}

    def release(self) -> None:
        if self.saved:
            self.saved = None


def _unpacked(saved: Any, node: Node) -> Any:
    if isinstance(saved, Recorded):
        return saved.attrs["value"]
    if isinstance(saved, tuple):
        return tuple(_unpacked(s, node) for s in saved)
    return saved.unpack(node)
