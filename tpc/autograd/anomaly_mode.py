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
        self.check_nan = check_nan
        self.outer: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self.outer.append((STATE.anomaly, STATE.anomaly_check_nan))
        STATE.anomaly, STATE.anomaly_check_nan = True, self.check_nan

    def __exit__(self, *exc: object) -> None:
        STATE.anomaly, STATE.anomaly_check_nan = self.outer.pop()

    def clone(self) -> detect_anomaly:
        return detect_anomaly(self.check_nan)


class set_detect_anomaly:  # noqa: N801 - PyTorch's spelling
    """Switches anomaly mode on or off: at once when called as a function, for a block as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.outer = STATE.anomaly, STATE.anomaly_check_nan
        STATE.anomaly, STATE.anomaly_check_nan = mode, check_nan

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        STATE.anomaly, STATE.anomaly_check_nan = self.outer


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode."""
    return STATE.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN."""
    return STATE.anomaly_check_nan


def forward_traceback() -> str:
    """Where the node being made is called from, for later messages."""
    import traceback

    return "".join(f for f in traceback.format_stack()[:-1] if not _is_ours(f))


def _is_ours(frame: str) -> bool:
    from tpc.recording import is_ours

    return is_ours(frame.split('"')[1]) if '"' in frame else False


def explain(node: Node) -> None:
    """Warns where the forward of a node that failed was called."""
    made = node.__dict__.get("_made_at")
    warnings.warn(
        f"Error detected in {node._described()}. "
        + (
            f"Traceback of forward call that caused the error:\n{made}"
            if made
            else "No forward pass information available: it ran outside of anomaly mode."
        ),
        UserWarning,
        stacklevel=2,
    )


def check_nan(node: Node, sent: Any) -> None:
    """`RuntimeError` where a node gave NaN."""
    for i, grad in enumerate(sent):
        if grad is not None and is_differentiable(grad._type.dtype) and bool(np.isnan(grad._array()).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
