"""Hooks of modules. Backward hooks are two Functions that pass gradients through and say so, one on the inputs, one on the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tpc.autograd.function import Function
from tpc.autograd.node import HookHandle, Hooks
from tpc.storage import REARRANGED
from tpc.tensor import Tensor

Grads = tuple[Any, ...]


class ModuleHooks(Hooks):
    """Hooks of a module; a recording is made anew where they change."""

    def __setitem__(self, key: int, hook: Any) -> None:
        REARRANGED.count += 1
        super().__setitem__(key, hook)

    def pop(self, key: int, default: Any = None) -> Any:
        REARRANGED.count += 1
        return super().pop(key, default)


EVERY = {name: ModuleHooks() for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")}
"""The hooks that all modules have."""


def added(hooks: Hooks, hook: Callable[..., Any], first: bool = False) -> HookHandle:
    """Adds a hook, before the others if that is asked for."""
    handle = hooks.add(hook)
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


def before_forward(hook: Callable[..., Any], with_kwargs: bool) -> Callable[..., Any]:
    """A user's forward pre-hook as a function of module, arguments and keywords to arguments and keywords."""

    def run(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if with_kwargs:
            new = hook(module, args, kwargs)
            if new is not None and not (isinstance(new, tuple) and len(new) == 2):
                raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}.")
            return (args, kwargs) if new is None else new
        new = hook(module, args)
        return args if new is None else new if isinstance(new, tuple) else (new,), kwargs

    run.given = hook  # type: ignore[attr-defined]
    return run


def after_forward(hook: Callable[..., Any], with_kwargs: bool, always_call: bool) -> Callable[..., Any]:
    """A user's forward hook as a function of module, arguments, keywords and result to the result."""

    def run(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        new = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        return output if new is None else new

    run.always = always_call  # type: ignore[attr-defined]
    return run


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """`hook(module, args)` runs before the forward of every module, before its own hooks."""
    return added(EVERY["_forward_pre_hooks"], before_forward(hook, False))


def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False) -> HookHandle:
    """`hook(module, args, output)` runs after the forward of every module, before its own hooks."""
    return added(EVERY["_forward_hooks"], after_forward(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """`hook(module, grad_output)` runs when the gradients of the outputs of any module are there."""
    return added(EVERY["_backward_pre_hooks"], hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> HookHandle:
    """`hook(module, grad_input, grad_output)` runs when the gradients of the inputs of any module are there."""
    return added(EVERY["_backward_hooks"], hook)


register_module_backward_hook = register_module_full_backward_hook


class _Passed(Function):
    """Its arguments, whose gradients `seen` may replace."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[[Grads], Sequence[Any]], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tuple([t.view_as(t) for t in tensors])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (None, *ctx.seen(grads))


def _passed(values: Any, seen: Callable[[Grads], Sequence[Any]]) -> tuple[Any, bool]:
    """`values` (a tensor or a tuple) with the tensors that need gradients watched; whether there were any."""
    parts = values if isinstance(values, tuple) else (values,)
    places = [i for i, x in enumerate(parts) if isinstance(x, Tensor) and x.requires_grad]
    if not places:
        return values, False

    def whole(grads: Grads) -> Sequence[Any]:
        every = [None] * len(parts)
        for i, g in zip(places, grads, strict=True):
            every[i] = g
        replaced = seen(tuple(every))
        return [replaced[i] for i in places]

    made = list(parts)
    for i, t in zip(places, _Passed.apply(whole, *[parts[i] for i in places]), strict=True):
        made[i] = t
    return (tuple(made) if isinstance(values, tuple) else made[0]), True


class BackwardWatch:
    """One call of a module: its hooks hear of the gradients of its outputs and inputs."""

    def __init__(self, module: Any, pre_hooks: Iterable[Callable[..., Any]], hooks: Iterable[Callable[..., Any]]) -> None:
        self.module, self.pre_hooks, self.hooks = module, list(pre_hooks), list(hooks)
        self.outgoing: Grads = ()
        self.inputs = 0
        self.input_needs = False

    def inputs_of(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, watched."""
        self.inputs = len(args)
        watched, self.input_needs = _passed(args, self._inputs_seen)
        return watched  # type: ignore[no-any-return]

    def outputs_of(self, result: Any) -> Any:
        """The result, watched."""
        return _passed(result, self._outputs_seen)[0]

    def _outputs_seen(self, grads: Grads) -> Sequence[Any]:
        for hook in self.pre_hooks:
            new = hook(self.module, grads)
            if new is not None:
                grads = new if isinstance(new, tuple) else (new,)
        self.outgoing = grads
        if not self.input_needs:
            # No gradient reaches the inputs: this is all there is to tell.
            self._tell((None,) * self.inputs)
        return grads

    def _inputs_seen(self, grads: Grads) -> Sequence[Any]:
        return self._tell(grads)

    def _tell(self, grads: Grads) -> Grads:
        for hook in self.hooks:
            new = hook(self.module, grads, self.outgoing)
            if new is not None:
                new = new if isinstance(new, tuple) else (new,)
                if len(new) != len(grads):
                    raise RuntimeError(f"Backward hook returned an invalid number of grad_input, got {len(new)}, but expected {len(grads)}")
                grads = new
        return grads
