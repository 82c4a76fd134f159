"""`custom_fwd` and `custom_bwd`: forward and backward of a Function under autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tpc.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from tpc.dtype import dtype, float64
from tpc.tensor import Tensor


def _cast(value: Any, device_type: str, wanted: dtype) -> Any:
    """Floating tensors of a device, but not float64 ones, in another dtype; within lists and mappings too."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(wanted) if eligible else value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, wanted): _cast(v, device_type, wanted) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, wanted) for v in value)
    return value


def _checked(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorates the forward of a Function: with `cast_inputs`, under autocast, it gets its floating inputs in that dtype and runs without
    autocast; backward (see `custom_bwd`) runs as forward did."""
    _checked(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **options: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        active = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = active and cast_inputs is None
        if cast_inputs is None or not active:
            return fwd(*args, **options)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(options, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the backward of a Function whose forward is decorated with `custom_fwd`."""
    _checked(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **options: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **options)

    return backward
