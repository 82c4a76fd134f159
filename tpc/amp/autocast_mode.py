"""The autocast mode: which device types it is on for, and the dtype it stands for. No operator looks at it.

Code that asks (`is_autocast_enabled`, `get_autocast_dtype`) gets consistent answers: on the CPU the dtype is float32 unless one is given,
so that "cast to the autocast dtype" changes nothing by itself.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

from tpc.dtype import dtype as dtype_class
from tpc.dtype import float16, float32

_DEFAULT = {"cpu": float32, "cuda": float16}


class _Modes(threading.local):
    def __init__(self) -> None:
        self.enabled = dict.fromkeys(_DEFAULT, False)
        self.dtypes = dict(_DEFAULT)
        self.cached = True
        self.nesting = 0


_MODES = _Modes()


def _known(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _DEFAULT:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether there is an autocast mode for a device type."""
    return device_type in _DEFAULT


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a device type (for "cuda", without one)."""
    return _MODES.enabled[_known(device_type or "cuda")]


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return _MODES.enabled["cpu"]


def set_autocast_enabled(*args: Any) -> None:
    """`set_autocast_enabled(device_type, enabled)`; "cuda" is meant without a device type."""
    device_type, enabled = args if len(args) == 2 else ("cuda", *args)
    _MODES.enabled[_known(device_type)] = bool(enabled)


def get_autocast_dtype(device_type: str) -> dtype_class:
    """The dtype that autocast stands for on a device type."""
    return _MODES.dtypes[_known(device_type)]


def set_autocast_dtype(device_type: str, dtype: dtype_class) -> None:
    """Sets the dtype that autocast stands for on a device type."""
    _MODES.dtypes[_known(device_type)] = dtype


def get_autocast_gpu_dtype() -> dtype_class:
    """The dtype that autocast stands for on CUDA."""
    return _MODES.dtypes["cuda"]


def get_autocast_cpu_dtype() -> dtype_class:
    """The dtype that autocast stands for on the CPU."""
    return _MODES.dtypes["cpu"]


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights would be kept."""
    return _MODES.cached


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Says whether casts of weights would be kept."""
    _MODES.cached = bool(enabled)


def clear_autocast_cache() -> None:
    """Forgets casts of weights: there are none."""


def autocast_increment_nesting() -> int:
    """Enters one more autocast block; returns how many there are."""
    _MODES.nesting += 1
    return _MODES.nesting


def autocast_decrement_nesting() -> int:
    """Leaves an autocast block; returns how many there are."""
    _MODES.nesting -= 1
    return _MODES.nesting


class autocast:  # noqa: N801 - PyTorch's spelling
    """A block, or a decorated function, in which autocast is on (or off) for a device type.

    tpc computes in the dtypes that it is given all the same. For "cuda", of which there is none, the mode stays off.
    """

    def __init__(
        self, device_type: str = "cuda", dtype: dtype_class | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device = _known(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and self.device == "cuda":
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
            enabled = False
        self._enabled = bool(enabled)
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._outer: list[tuple[bool, dtype_class, bool]] = []

    def __enter__(self) -> autocast:
        self._outer.append((_MODES.enabled[self.device], _MODES.dtypes[self.device], _MODES.cached))
        _MODES.enabled[self.device], _MODES.dtypes[self.device] = self._enabled, self.fast_dtype
        _MODES.cached = self._cache_enabled
        autocast_increment_nesting()
        return self

    def __exit__(self, *exc: object) -> None:
        autocast_decrement_nesting()
        _MODES.enabled[self.device], _MODES.dtypes[self.device], _MODES.cached = self._outer.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **options: Any) -> Any:
            with self:
                return function(*args, **options)

        return inside
