"""Settings of PyTorch's process that tpc takes: those that it can follow, and those that change nothing here."""

from __future__ import annotations

from typing import Any

from tpc.device import CPU, checked_device, device
from tpc.dtype import set_default_dtype

_flags = {"deterministic": False, "precision": "highest"}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered: results are deterministic anyway."""
    _flags["deterministic"] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last told."""
    return bool(_flags["deterministic"])


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered: products of float32 are always computed in float32."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _flags["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was last told."""
    return str(_flags["precision"])


def set_default_device(device: Any) -> None:
    """Takes the CPU; `RuntimeError` for anything else."""
    checked_device(device)


def get_default_device() -> device:
    """The CPU."""
    return CPU


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype to that of a class such as `FloatTensor`, or of its name."""
    from tpc.legacy import TYPES

    kind = TYPES.get(t.rsplit(".", 1)[-1]) if isinstance(t, str) else t
    if kind is None or not hasattr(kind, "dtype"):
        raise TypeError(f"invalid type object: {t!r} is no tensor type of tpc")
    set_default_dtype(kind.dtype)


def _assert(condition: Any, message: str) -> None:
    """`assert` as a function."""
    assert condition, message
