"""Forward mode through custom Functions: the user's `jvp`, and what it must return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpc.autograd.function_node import FunctionNode
from tpc.autograd.tangents import Level, below, set_tangent, tangent_of
from tpc.ir.types import is_differentiable
from tpc.state import STATE
from tpc.tensor import Tensor


def push_tangents(
    cls: Any, ctx: FunctionNode, slots: Sequence[Any], outputs: Sequence[Any], wrapped: Sequence[Any], dirty: Sequence[Tensor]
) -> None:
    """Gives the outputs the tangents that `cls.jvp` makes of those of the inputs, at every active level."""
    for level in STATE.duals:
        if any(tangent_of(t, level) is not None for t in slots):
            with below(level):
                _Push(cls, ctx, level, slots, outputs, dirty).run(wrapped)


class _Push:
    def __init__(
        self, cls: Any, ctx: FunctionNode, level: Level, slots: Sequence[Any], outputs: Sequence[Any], dirty: Sequence[Tensor]
    ) -> None:
        self.cls, self.ctx, self.level, self.slots, self.outputs, self.dirty = cls, ctx, level, slots, outputs, dirty

    def run(self, wrapped: Sequence[Any]) -> None:
        self.given = [self._given(t) for t in self.slots]
        # A jvp that writes a tangent in place gets, and so gives back, a tensor of its own.
        self.given = [
            g._snapshot() if g is not None and any(t is d for d in self.dirty) else g for g, t in zip(self.given, self.slots, strict=True)
        ]
        versions = [g._storage.current_version() if g is not None else 0 for g in self.given]
        returned = self._call()
        if len(returned) != len(self.outputs):
            raise RuntimeError(
                f"{self.cls.__name__}: jvp returned an invalid number of forward gradients (expected {len(self.outputs)} but got "
                f"{len(returned)})"
            )
        for i, (output, tangent) in enumerate(zip(self.outputs, returned, strict=True)):
            if self._checked(i, output, tangent, versions):
                set_tangent(wrapped[i], self.level, tangent)

    def _given(self, t: Any) -> Tensor | None:
        from tpc.functions.factories import zeros_of

        if not isinstance(t, Tensor) or not is_differentiable(t._type.dtype):
            return None
        found = tangent_of(t, self.level)
        return zeros_of(t._type) if found is None and self.ctx._materialize else found

    def _call(self) -> tuple[Any, ...]:
        from tpc.autograd.function import Function

        if self.cls.jvp is Function.jvp:
            raise NotImplementedError(
                f"You must implement the jvp function for custom autograd.Function to use it with forward mode AD ({self.cls.__name__})."
            )
        self.ctx._in_jvp = True
        try:
            returned = self.cls.jvp(self.ctx, *self.given)
        finally:
            self.ctx._in_jvp = False
        return returned if isinstance(returned, tuple) else (returned,)

    def _checked(self, i: int, output: Any, tangent: Any, versions: Sequence[int]) -> bool:
        """Whether the output has this tangent; `RuntimeError` where the user's jvp returned what it must not."""
        name = f"{self.cls.__name__}: jvp"
        wants = isinstance(output, Tensor) and is_differentiable(output._type.dtype) and i not in self.ctx._marked
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(
                f"{name} returned at position {i} what is no tangent: expected Variable or None (got {type(tangent).__name__})"
            )
        if not wants:
            if tangent is not None:
                raise RuntimeError(f"{name}: output {i} is not differentiable. You should return None at that position instead.")
            return False
        if tangent is None:
            raise RuntimeError(f"{name} returned None for output {i}, which is differentiable: expected a Tensor")
        if tangent._type.shape != output._type.shape:
            raise RuntimeError(
                f"{name} returned a forward gradient of a different size for output {i}: {list(tangent._type.shape)} for "
                f"{list(output._type.shape)}"
            )
        self._check_alias(i, output, tangent, versions)
        return True

    def _check_alias(self, i: int, output: Tensor, tangent: Tensor, versions: Sequence[int]) -> None:
        """A view's tangent is a view of the tangent; an input written in place has its tangent written in place."""
        for t, given, version in zip(self.slots, self.given, versions, strict=True):
            if not isinstance(t, Tensor) or given is None or t._storage is not output._storage:
                continue
            if any(t is d for d in self.dirty):
                if tangent._storage is not given._storage or given._storage.current_version() == version:
                    raise RuntimeError(
                        f"{self.cls.__name__}: An inplace custom Function is not modifying the forward mode gradients inplace. If the "
                        "forward is "
                        "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
                    )
            elif tangent is given or tangent._storage is not given._storage:
                raise RuntimeError(
                    f"{self.cls.__name__}: A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
                    "returning a view."
                )
