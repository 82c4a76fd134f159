"""Complex numbers as pairs of real ones, for a batch of samples: the pairs are in the last dimension, the batch in the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.batching.rules import batching
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops import pairs
from tpc.record import record_typed as record


@batching(pairs.as_real, pairs.as_complex)
def _parts(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    return record(defn, xs, attrs)
