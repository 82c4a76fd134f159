"""`tpc.autograd.graph`: nodes, edges, saved-tensor hooks, multi-gradient hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tpc.autograd.node import HookHandle, Hooks, Node
from tpc.state import STATE
from tpc.tensor import Tensor


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes; may stand for the tensor in `grad` and `backward`."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor that requires grad; `RuntimeError` for another."""
    edge = tensor._edge()
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge)


class saved_tensors_hooks:  # noqa: N801 - PyTorch's spelling
    """Within the block each tensor saved for backward is given to `pack_hook`, and what that returns to `unpack_hook` when it is read.

    Of nested blocks the innermost counts.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.hooks = (pack_hook, unpack_hook)
        self.outer: list[Any] = []

    def __enter__(self) -> None:
        if STATE.saved_hooks_disabled is not None:
            raise RuntimeError(STATE.saved_hooks_disabled)
        self.outer.append(STATE.saved_hooks)
        STATE.saved_hooks = self.hooks

    def __exit__(self, *exc: object) -> None:
        STATE.saved_hooks = self.outer.pop()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's spelling
    """Keeps saved tensors as copies in main memory, which is where they are anyway."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: t.detach().clone(), lambda t: t)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):  # noqa: N801 - PyTorch's spelling
    """Saved tensors may be written afterwards: backward gets the values that they had when they were saved."""

    def __init__(self) -> None:
        super().__init__(lambda t: t.detach()._snapshot(), lambda t: t)


class disable_saved_tensors_hooks:  # noqa: N801 - PyTorch's spelling
    """Within the block, entering `saved_tensors_hooks` is a `RuntimeError` with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message
        self.outer: list[str | None] = []

    def __enter__(self) -> None:
        if STATE.saved_hooks is not None:
            raise RuntimeError(self.message)
        self.outer.append(STATE.saved_hooks_disabled)
        STATE.saved_hooks_disabled = self.message

    def __exit__(self, *exc: object) -> None:
        STATE.saved_hooks_disabled = self.outer.pop()


def hooks_of(tensor: Tensor, what: str = "hook") -> Hooks:
    """The gradient hooks of a tensor, as its history stands now; `RuntimeError` where it has none."""
    edge = tensor._edge()
    if edge is None:
        raise RuntimeError(f"cannot register a {what} on a tensor that doesn't require gradient")
    hooks = edge[0]._hooks_on(edge[1])
    _will_change(tensor, hooks)
    return hooks


def _will_change(tensor: Tensor, hooks: Hooks) -> None:
    if STATE.trace is not None and tensor._trace is not STATE.trace:
        STATE.trace.hooked(hooks)


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Any]) -> HookHandle:
    """`hook(grad)` runs once per pass on the whole gradient of the tensor; what it returns takes its place."""
    return hooks_of(tensor).add(hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable[[Tensor], None]) -> HookHandle:
    """`hook(leaf)` runs after `.grad` changed; `RuntimeError` on a non-leaf."""
    if tensor.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    hooks: Hooks = tensor.__dict__.setdefault("_post_accumulate", Hooks())
    _will_change(tensor, hooks)
    return hooks.add(hook)


def retain_grad(tensor: Tensor) -> None:
    """Makes `.grad` of a non-leaf be filled too; nothing to do for a leaf."""
    if not tensor.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = tensor.grad_fn
    if node is None:
        return
    node.retain(tensor, tensor._slot)
    tensor.__dict__["_retains"] = True


def retains_grad(tensor: Tensor) -> bool:
    """Whether a non-leaf's `.grad` will be filled."""
    return tensor.grad_fn is not None and "_retains" in tensor.__dict__


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all") -> HookHandle:
    """`fn` runs once per pass: with the list of gradients once those that can arrive have ("all"), or with the first ("any")."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return _MultiHandle([register_hook(t, hook) for t, hook in zip(tensors, _multi(tensors, fn, mode), strict=True)])


class _MultiHandle(HookHandle):
    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[HookHandle]) -> None:
        super().__init__(Hooks())
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def _multi(tensors: Sequence[Tensor], fn: Callable[..., None], mode: str) -> list[Callable[[Tensor], None]]:
    from tpc.autograd.engine import running_pass

    states: dict[Any, dict[str, Any]] = {}

    def arrived(i: int, grad: Tensor) -> None:
        run = running_pass()
        state = states.setdefault(run, {"grads": [None] * len(tensors), "left": run.reaches(tensors), "done": False})
        if mode == "any":
            if not state["done"]:
                state["done"] = True
                run.at_end(lambda: states.pop(run, None))
                fn(grad)
            return
        state["grads"][i] = grad
        state["left"] -= 1
        if state["left"] == 0:
            del states[run]
            fn(state["grads"])

    return [lambda grad, i=i: arrived(i, grad) for i in range(len(tensors))]  # type: ignore[misc]
