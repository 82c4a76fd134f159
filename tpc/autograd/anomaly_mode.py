"""Anomaly mode: says which forward call made the backward that failed, and stops at the first NaN."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tpc.autograd.grad_mode import Switch
from tpc.ir.types import is_differentiable
from tpc.state import STATE

if TYPE_CHECKING:
    from tpc.autograd.node import Node


class detect_anomaly(Switch):  # noqa: N801 - PyTorch's spelling
    """Within the block, a backward that raises shows where its forward was called, and one that gives NaN raises (`check_nan`)."""

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )
        self.check_nan = check_nan
        self.outer: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self.outer.append((STATE.anomaly, STATE.anomaly_check_nan))
        _switch(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        STATE.anomaly, STATE.anomaly_check_nan = self.outer.pop()

    def clone(self) -> detect_anomaly:
        return detect_anomaly(self.check_nan)


class set_detect_anomaly:  # noqa: N801 - PyTorch's spelling
    """Switches anomaly mode on or off: at once when called as a function, for a block as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.outer = STATE.anomaly, STATE.anomaly_check_nan
        _switch(mode, check_nan)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        STATE.anomaly, STATE.anomaly_check_nan = self.outer


def _switch(mode: bool, check_nan: bool) -> None:
    from tpc.tracing import Untraceable

    if mode and STATE.trace is not None:
        raise Untraceable("anomaly mode looks at every gradient as it is computed; it can only run in deferred mode")
    STATE.anomaly, STATE.anomaly_check_nan = mode, check_nan


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode."""
    return STATE.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN."""
    return STATE.anomaly_check_nan


def note(node: Node) -> None:
    """Keeps where a node is made, and the node whose backward makes it, for later messages."""
    import traceback

    from tpc.autograd.engine import running_node

    node.__dict__["_made_at"] = "".join(f for f in traceback.format_stack()[:-2] if not _is_ours(f))
    node.__dict__["_made_by"] = running_node()


def _is_ours(frame: str) -> bool:
    from tpc.recording import is_ours

    return is_ours(frame.split('"')[1]) if '"' in frame else False


def explain(node: Node) -> None:
    """Warns where the forward of a node that failed was called, and that of the nodes whose backward was its forward."""
    cause: Node | None = node
    while cause is not None:
        made = cause.__dict__.get("_made_at")
        what, call = (
            (f"Error detected in {cause._described()}.", "forward call that caused the error")
            if cause is node
            else (f"\n\nPrevious calculation was induced by {cause._described()}.", "forward call that induced the previous calculation")
        )
        known = f"Traceback of {call}:\n{made}" if made else "No forward pass information available: it ran outside of anomaly mode."
        warnings.warn(f"{what} {known}", UserWarning, stacklevel=2)
        cause = cause.__dict__.get("_made_by")


def check_nan(node: Node, sent: Any) -> None:
    """`RuntimeError` where a node gave NaN."""
    for i, grad in enumerate(sent):
        if grad is not None and is_differentiable(grad._type.dtype) and bool(np.isnan(grad._array()).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
