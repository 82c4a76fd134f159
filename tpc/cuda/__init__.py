"""`tpc.cuda`: there is no CUDA device, and code that asks is told so. What needs one raises."""

from __future__ import annotations

from typing import Any, NoReturn

from tpc.cuda import amp


def is_available() -> bool:
    """False: tpc runs on the CPU."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def _refuse(*args: Any, **options: Any) -> NoReturn:
    """Raises: there is no CUDA device."""
    raise RuntimeError("tpc runs on the CPU: there is no CUDA device. Ask tpc.cuda.is_available() before using one")


current_device = get_device_name = get_device_properties = get_device_capability = set_device = init = _refuse
synchronize = current_stream = default_stream = stream = get_rng_state = _refuse
Stream = Event = _refuse


def _nothing(*args: Any, **options: Any) -> None:
    """Nothing to do without a CUDA device."""


empty_cache = ipc_collect = manual_seed = manual_seed_all = seed = seed_all = set_rng_state = _nothing
reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = _nothing


def _zero(*args: Any, **options: Any) -> int:
    """0 bytes: nothing lives on a CUDA device."""
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _zero


def get_rng_state_all() -> list[Any]:
    """No states."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Takes no states."""
    if list(new_states):
        _refuse()


class device:  # noqa: N801 - PyTorch's spelling
    """A block on a device; None and negative numbers leave things as they are."""

    def __init__(self, device: Any) -> None:
        if device is not None and not (isinstance(device, int) and device < 0):
            _refuse()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


__all__ = [
    "amp", "current_device", "device", "device_count", "empty_cache", "is_available", "is_initialized", "manual_seed", "manual_seed_all",
    "synchronize",
]  # fmt: skip
