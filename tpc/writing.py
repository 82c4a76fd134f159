"""What a write in place means for history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpc.state import STATE

if TYPE_CHECKING:
    from tpc.tensor import Tensor

CUSTOM_VIEW = "This view was created inside a custom Function"


def overlaps(tensor: Tensor) -> bool:
    """Whether several elements are one place in memory."""
    return any(view.defn.name == "broadcast_to" for view in tensor._views)


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
    base._node, base._slot = edge
    base._edits += 1
