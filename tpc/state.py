"""What the current thread is doing: grad mode, trace, Function scope."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from tpc.recording import Scope
    from tpc.storage import Storage
    from tpc.tracing import Trace


class State(threading.local):
    """Per-thread; a new thread starts with the class defaults (recording on, nothing traced)."""

    grad_enabled: bool = True
    inference: bool = False
    trace: Trace | None = None
    scope: Scope | None = None
    """The Function application or backward node that is running."""
    loc: Any = None
    """Where recorded ops are said to come from, when that is not the user's current line (built-in backward formulas)."""
    saved_hooks: tuple[Any, Any] | None = None
    """The innermost (pack, unpack) pair of `saved_tensors_hooks`."""
    saved_hooks_disabled: str | None = None
    transforming: bool = False
    """Whether tangents or batches have to be followed: some level of `duals` or `vmaps` is active."""
    duals: tuple[Any, ...] = ()
    """Active levels of forward mode, innermost last."""
    vmaps: tuple[Any, ...] = ()
    """Active levels of vmap, innermost last."""
    anomaly: bool = False
    anomaly_check_nan: bool = True

    def __init__(self) -> None:
        self.pending: list[ref[Storage]] = []
        """Storages whose value was recorded and not yet computed."""


STATE = State()


def inside(tensor: Any) -> Any:
    """What stands for a tensor in the trace that is running."""
    return tensor if STATE.trace is None else STATE.trace.inside((tensor,))[0]


_PASSING = {
    "grad_enabled": True, "inference": False, "trace": None, "scope": None, "loc": None, "saved_hooks": None, "transforming": False,
    "duals": (), "vmaps": (),
}  # fmt: skip
"""What user code may be in the middle of."""


@contextmanager
def detached_state() -> Iterator[None]:
    """Runs the block as if the thread had just begun: for code that is called while something else is recorded."""
    before = {name: getattr(STATE, name) for name in _PASSING}
    for name, value in _PASSING.items():
        setattr(STATE, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(STATE, name, value)


WRITING = threading.RLock()
"""Held while what other threads may see is read, changed and put back: `.grad`, memory that compiled calls write, and everything while
a function is recorded."""
