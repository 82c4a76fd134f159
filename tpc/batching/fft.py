"""Fourier transforms of a batch of samples: the axis moves on by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.batching.rules import batching
from tpc.ir.opdef import OpDef
from tpc.ir.ops import fft
from tpc.record import record_typed as record


@batching(fft.c2c, fft.r2c, fft.c2r)
def _transform(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    return record(defn, xs, {**attrs, "dim": attrs["dim"] + 1})
