"""What a write in place means for history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpc.state import STATE

if TYPE_CHECKING:
    from tpc.autograd.node import Node
    from tpc.tensor import Tensor

CUSTOM_VIEW = "This view was created inside a custom Function"
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."
NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is ambiguous "
    "and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the "
    "no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def base_was_written(refusal: str) -> str:
    """The refusal of a write to a view, for a view whose base was written."""
    return refusal.replace("is being modified inplace", "its base or another view of its base has been modified inplace")


def move_retained(tensor: Tensor, node: Node | None, slot: int) -> None:
    """A tensor that retains its gradient retains that of the history which it is about to take."""
    if not retains(tensor):
        return
    if tensor._node is not None and tensor._node._retaining is not None:
        tensor._node._retaining.pop(tensor._slot, None)
    if node is not None:
        node.retain(tensor, slot)


def retains(tensor: Tensor) -> bool:
    """Whether `.grad` of a non-leaf will be filled."""
    return "_retains" in tensor.__dict__


def overlaps(tensor: Tensor) -> bool:
    """Whether several elements are one place in memory."""
    if not any(view.defn.name == "broadcast_to" for view in tensor._views):
        return False
    from tpc.strides import layout_of

    layout = layout_of(tensor)
    return any(step == 0 and n > 1 for n, step in zip(layout.shape, layout.strides, strict=True))


def rebase(base: Tensor, content: Tensor) -> None:
    """`base` takes the history of `content`; views notice by the edit count. Unrecorded writes leave history as it is."""
    if not STATE.grad_enabled:
        return
    edge = content._edge()
    if edge is None:
        old = base._edge()
        if old is None:
            return
        from tpc.autograd.node import Overwritten

        edge = Overwritten((old,), (base._type,)), 0
    trace = STATE.trace
    if trace is not None and base._trace is not trace:
        trace.remember(base, "_node", "_slot", "_edits")
    move_retained(base, *edge)
    base._node, base._slot = edge
    base._edits += 1
