"""`tpc.compiler`: what PyTorch files tell its compiler. Nothing here changes what `tpc.compile` does."""

from __future__ import annotations

from typing import Any

from tpc.jit import is_tracing as is_compiling

__all__ = [
    "allow_in_graph", "assume_constant_result", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "reset",
]  # fmt: skip

is_dynamo_compiling = is_compiling


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


assume_constant_result = allow_in_graph


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; without one, a decorator."""
    return allow_in_graph if fn is None else fn


def reset() -> None:
    """Nothing: compiled functions keep their own recordings."""


cudagraph_mark_step_begin = reset
