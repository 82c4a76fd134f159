"""Backward hooks of modules: two Functions that pass gradients through and say so, one on the inputs, one on the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tpc.autograd.function import Function
from tpc.tensor import Tensor

Grads = tuple[Any, ...]


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
