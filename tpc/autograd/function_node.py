"""`ctx`: the node of one application of a Function, which its forward and backward fill and read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tpc.autograd.node import Grads, Node
from tpc.autograd.saved import SECOND_TIME, SavedTensor
from tpc.ir.types import TensorType, is_differentiable
from tpc.state import STATE
from tpc.tensor import Tensor


class FunctionNode(Node):
    """One application. Attributes that users set live in its `__dict__`."""

    _runs_user_code = True
    _takes_real_part = False
    _forward_cls: Any
    _is_legacy = False

    def __init__(self) -> None:
        super().__init__((), ())
        self.needs_input_grad: tuple[bool, ...] = ()
        self.to_save: tuple[Any, ...] | None = None
        self.dirty_tensors: tuple[Any, ...] | None = None
        self.non_differentiable: tuple[Any, ...] | None = None
        self.saved_for_forward: tuple[Any, ...] | None = None
        self._materialize = True
        self._materialize_non_diff_grads = True
        self._kept: tuple[SavedTensor | None, ...] | None = None
        self._freed = False
        self._in_jvp = False
        self._given_tensors: tuple[Any, ...] | None = None
        """What `saved_tensors` gives where this ctx stands for one sample of a batch."""
        self._marked: frozenset[int] = frozenset()
        """Output slots that carry no gradient by the user's word."""
        self._slots: tuple[bool, ...] = ()
        """For each gradient that backward owes, whether it belongs to a tensor."""
        self._arguments: tuple[int | None, ...] = ()
        """For each argument of apply, how many slots its container spreads over (None: it is one slot)."""

    # --- what users call ---

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `saved_tensors`; the last call counts, and takes effect when forward has returned."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `jvp`."""
        for t in tensors:
            if not isinstance(t, Tensor) and t is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs forward wrote in place."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs carry no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients reach backward as zeros (the default) or as None."""
        if not isinstance(value, bool):
            raise TypeError(f"set_materialize_grads expects a bool, got {type(value).__name__}")
        self._materialize = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Has had no effect for a long time; kept so that old code runs."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked.", FutureWarning, stacklevel=2
        )

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What `save_for_backward` kept; `RuntimeError` after it was freed, or where a tensor was written since."""
        if self._given_tensors is not None:
            return self._given_tensors
        if self._in_jvp:
            return self.saved_for_forward or ()
        if self._freed:
            if self._forward_cls.clear_saved_tensors_on_access and self._kept == ():
                raise RuntimeError(f"saved_tensors can only be accessed once for {self._described()}: it clears them on access")
            raise RuntimeError(f"{SECOND_TIME} (saved by {self._described()})")
        if STATE.trace is not None:
            STATE.trace.readers.add(self)
        if self._kept is None:
            return ()
        unpacked = tuple(s.unpack(self) if s is not None else None for s in self._kept)
        if self._forward_cls.clear_saved_tensors_on_access:
            self._freed, self._kept = True, ()
        return unpacked

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor | None, ...]:
        """What keeps each saved tensor; has `register_hooks(pack, unpack)`."""
        if self._freed:
            raise RuntimeError(f"{SECOND_TIME} (saved by {self._described()})")
        return self._kept or ()

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """Old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary of the user's that stays with the node."""
        found: dict[Any, Any] = self.__dict__.setdefault("_metadata", {})
        return found

    def release_saved(self) -> None:
        """Frees what was saved."""
        self._freed, self._kept = True, None

    _release = release_saved

    def maybe_clear_saved_tensors(self) -> None:
        """Frees what was saved unless the current pass retains the graph."""
        from tpc.autograd.engine import running_pass

        if not running_pass().retain_graph:
            self.release_saved()

    def apply(self, *grads: Any) -> Any:
        """Calls the user's backward directly."""
        return self._backward()(self, *grads)

    def _tracks(self, slot: int) -> bool:
        meta = self._metas[slot]
        return meta is not None and slot not in self._marked and is_differentiable(meta.dtype)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # --- what the engine calls ---

    def _backward(self) -> Any:
        from tpc.autograd.function import Function

        cls = self._forward_cls
        has_backward, has_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if has_backward and has_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        return cls.vjp if has_vjp else cls.backward

    def _run(self, grads: Grads) -> Sequence[Any]:
        given = [self._filled(slot, grad) for slot, grad in enumerate(grads)]
        returned = self._backward()(self, given) if self._forward_cls.boxed_grads_call else self._backward()(self, *given)
        return self._per_tensor(returned if isinstance(returned, tuple) else (returned,))

    def _filled(self, slot: int, grad: Tensor | None) -> Tensor | None:
        meta: TensorType | None = self._metas[slot]
        if grad is not None or meta is None or not self._materialize:
            return grad
        if not self._tracks(slot) and not self._materialize_non_diff_grads:
            return None
        from tpc.functions.factories import zeros_of

        return zeros_of(meta)

    def _per_tensor(self, returned: tuple[Any, ...]) -> list[Any]:
        """One gradient per tensor slot, from one per slot or one per argument."""
        expected = len(self._slots)
        spread: Sequence[Any] = returned
        if any(n is not None for n in self._arguments) and (
            len(returned) == len(self._arguments) != expected or any(isinstance(r, (list, tuple, dict)) for r in returned)
        ):
            spread = self._spread(returned)
        if len(spread) > expected and all(g is None for g in spread[expected:]):
            spread = spread[:expected]
        if len(spread) != expected:
            raise RuntimeError(
                f"function {self._described()} returned an incorrect number of gradients (expected {expected}, got {len(spread)})"
            )
        out = []
        for i, (grad, is_tensor) in enumerate(zip(spread, self._slots, strict=True)):
            if is_tensor:
                out.append(grad)
            elif grad is not None:
                raise RuntimeError(
                    f"function {self._described()} returned a gradient different than None at position {i + 1}, but the corresponding "
                    "forward input was not a Variable"
                )
        return out

    def _spread(self, returned: tuple[Any, ...]) -> list[Any]:
        from tpc.tree import leaves

        spread: list[Any] = []
        for grad, n in zip(returned, self._arguments, strict=False):
            if n is None:
                spread.append(grad)
            elif grad is None:
                spread.extend([None] * n)
            else:
                spread.extend(leaves(grad))
        return spread


def kept(node: FunctionNode, tensors: Any, outputs: Sequence[Any]) -> tuple[SavedTensor | None, ...]:
    """Saves the tensors of the user's last `save_for_backward`, once forward is over."""
    if not isinstance(tensors, tuple):
        raise RuntimeError(f"to_save attribute is expected to be a tuple but is {type(tensors).__name__}")
    saved: list[SavedTensor | None] = []
    for i, t in enumerate(tensors):
        if t is None:
            saved.append(None)
        elif not isinstance(t, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
        else:
            is_output = t._node is node or any(t is o for o in outputs)
            saved.append(SavedTensor(t, is_output and t._node is node, t._slot))
    return tuple(saved)
