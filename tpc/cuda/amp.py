"""The old names of `tpc.amp` for CUDA."""

from __future__ import annotations

import functools
from typing import Any

from tpc import amp
from tpc.dtype import dtype, float16

custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")


class autocast(amp.autocast):  # noqa: N801 - PyTorch's spelling
    """`tpc.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`tpc.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'tpc.cuda.amp' has no attribute {name!r}; see tpc.amp")


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
