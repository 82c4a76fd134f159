"""Checkpointing: a part of forward keeps nothing for backward and runs again when backward needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpc.autograd.backward import backward
from tpc.autograd.function import Function
from tpc.autograd.grad_mode import enable_grad
from tpc.autograd.graph import saved_tensors_hooks
from tpc.functions.random import get_rng_state, set_rng_state
from tpc.tensor import Tensor


class CheckpointFunction(Function):
    """The reentrant form: backward runs the function again and back-propagates through that."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.run, ctx.state = run, get_rng_state() if preserve_rng_state else None
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        return run(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        args = list(ctx.others)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = t.detach().requires_grad_(t.requires_grad)
        before = get_rng_state()
        if ctx.state is not None:
            set_rng_state(ctx.state)
        with enable_grad():
            outputs = ctx.run(*args)
        if ctx.state is not None:
            set_rng_state(before)
        spread = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(spread, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[a.grad if isinstance(a, Tensor) else None for a in args])


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args)`, keeping only its arguments for backward, which runs it again.

    `use_reentrant=True` back-propagates through the second run inside backward (and takes no keywords); False (the default) replaces
    what was
    saved by what the second run saves, so that everything else - hooks, several backward passes, `grad` - works as usual.
    """
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    saved = _Again(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(saved.pack, saved.unpack):
        return function(*args, **kwargs)


class _Again:
    """Saved tensors by number; the first one asked for runs the function again and fills them all in."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], preserve: bool) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.state = get_rng_state() if preserve else None
        self.types: list[Any] = []
        self.found: dict[int, Tensor] = {}

    def pack(self, t: Tensor) -> int:
        self.types.append(t._type)
        return len(self.types) - 1

    def unpack(self, number: int) -> Tensor:
        if number not in self.found:
            self._run()
        return self.found.pop(number)

    def _run(self) -> None:
        seen: list[Tensor] = []

        def keep(t: Tensor) -> Tensor:
            seen.append(t.detach())
            return t

        before = get_rng_state()
        if self.state is not None:
            set_rng_state(self.state)
        with enable_grad(), saved_tensors_hooks(keep, lambda t: t):
            self.function(*self.args, **self.kwargs)
        if self.state is not None:
            set_rng_state(before)
        if len(seen) != len(self.types):
            raise RuntimeError(
                "tpc.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation. Number "
                "of tensors saved "
                f"during forward: {len(self.types)}. Number of tensors saved during recomputation: {len(seen)}."
            )
        for i, (t, type) in enumerate(zip(seen, self.types, strict=True)):
            if t._type != type:
                raise RuntimeError(
                    f"tpc.utils.checkpoint: Recomputed values for the following tensors have different metadata: saved {type}, "
                    f"recomputed {t._type} (tensor {i})"
                )
            self.found[i] = t


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """A chain of functions in `segments` pieces, each checkpointed but the last."""
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def piece(x: Any) -> Any:
            for f in parts[start:end]:
                x = f(x)
            return x

        return piece

    size = len(parts) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, **kwargs)
    return run(end, len(parts))(input)


__all__ = ["CheckpointFunction", "checkpoint", "checkpoint_sequential"]
