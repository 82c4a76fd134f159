"""Mantissas and exponents of a batch of samples: those of all its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.batching.rules import batching
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops import numbers
from tpc.record import record_typed as record


@batching(numbers.frexp)
def _frexp(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    return record(defn, xs, attrs)
