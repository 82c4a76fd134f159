"""Tensors kept for backward: identity, version check, pack and unpack hooks, release."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tpc.state import STATE
from tpc.tensor import Tensor

if TYPE_CHECKING:
    from tpc.autograd.node import Node

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


class SavedTensor:
    """One tensor saved by a node.

    An input is kept as the very object. An output is kept without its history, and comes back as a new tensor on
    the node, so that a node never holds itself. Reading checks that the memory was not written since.
    """

    __slots__ = ("edge", "is_output", "packed", "slot", "storage", "tensor", "type", "unpack_hook", "version")

    def __init__(self, tensor: Tensor, is_output: bool = False, slot: int = 0) -> None:
        self.is_output = is_output
        self.slot = slot
        self.type = tensor._type
        if tensor._storage.inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
                "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
                "`tpc.no_grad()` instead of `tpc.inference_mode()`."
            )
        hooks = STATE.saved_hooks
        if hooks is not None:
            self._pack(tensor, hooks)
            return
        self.unpack_hook: Any = None
        self.storage = tensor._storage
        self.version = self.storage.current_version()
        # An output is kept as an alias without history.
        self.tensor = tensor._without_history() if is_output else tensor
        if is_output and STATE.duals:
            # An op's result gets its tangents after its node, so the two share what holds them.
            tensor._tangent = self.tensor._tangent = tensor._tangent if tensor._tangent is not None else {}

    def _pack(self, tensor: Tensor, hooks: tuple[Any, Any]) -> None:
        pack, self.unpack_hook = hooks
        self.edge = None if self.is_output else tensor._edge()
        given = tensor
        before = given._storage.current_version()
        grad_enabled, STATE.grad_enabled = STATE.grad_enabled, False
        outer, STATE.saved_hooks = STATE.saved_hooks, None
        try:
            self.packed = pack(given)
        finally:
            STATE.grad_enabled, STATE.saved_hooks = grad_enabled, outer
        if self.packed is given and self.is_output:
            self.packed = tensor.detach()  # A node does not hold itself; reading gives the history back.
        if given._storage.current_version() != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by "
                "in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place "
                "operations on the input to a pack hook."
            )

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Packs the tensor now; `RuntimeError` where it has hooks already."""
        if self.unpack_hook is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed "
                "at a time."
            )
        self._pack(self.tensor, (pack_hook, unpack_hook))

    def unpack(self, node: Node) -> Tensor:
        """The tensor; `RuntimeError` where it was written since."""
        if self.unpack_hook is not None:
            return self._unpack(node)
        found = self.storage.current_version()
        if found != self.version:
            self._complain(node, found)
        if STATE.trace is not None:
            STATE.trace.unpacked(self.storage)
        if not self.is_output:
            return self.tensor
        made = self.tensor._without_history()
        if node._tracks(self.slot):
            made._node, made._slot = node, self.slot
        return made

    def _unpack(self, node: Node) -> Tensor:
        got = self.unpack_hook(self.packed)
        if not isinstance(got, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(got).__name__}")
        made = got.detach()
        edge = (node, self.slot) if self.is_output and node._tracks(self.slot) else self.edge
        if edge is not None:
            made._node, made._slot = edge
        return made

    def _complain(self, node: Node, found: int) -> None:
        maker = f", which is output {self.slot} of {node.name()}," if self.is_output else ""
        if self.tensor._node is not None:
            maker = f", which is output {self.tensor._slot} of {self.tensor._node.name()},"
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[tpc.{_kind(self.type.dtype)} {list(self.type.shape)}]{maker} is at version {found}; expected version {self.version} "
            "instead. It was saved by "
            f"{node._described()}. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            f"tpc.autograd.set_detect_anomaly(True)."
        )


def _kind(dtype: str) -> str:
    return {"f32": "FloatTensor", "f64": "DoubleTensor", "f16": "HalfTensor", "i64": "LongTensor"}.get(dtype, dtype)
