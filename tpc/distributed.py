"""`tpc.distributed`: there is one process, and code that asks is told so."""

from __future__ import annotations

from typing import Any

__all__ = ["get_rank", "get_world_size", "is_available", "is_initialized"]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def get_rank(group: Any = None) -> int:
    """Raises `ValueError`, as PyTorch does without a process group."""
    raise ValueError("Default process group has not been initialized: tpc runs in one process. Ask tpc.distributed.is_initialized() first")


def get_world_size(group: Any = None) -> int:
    """Raises `ValueError`, as PyTorch does without a process group."""
    return get_rank(group)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'tpc.distributed' has no attribute {name!r}: tpc runs in one process")
