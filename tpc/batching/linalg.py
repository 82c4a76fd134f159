"""Products, solvers and decompositions of a batch of samples: all work on stacks of matrices, of which it is the first dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.batching.rules import aligned, batching, rank_of
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops import linalg as ops
from tpc.record import record_typed as record

OPS = [d for d in vars(ops).values() if isinstance(d, OpDef)]


@batching(*OPS)
def _stacks(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    rank = max(rank_of(x, f) for x, f in zip(xs, flags, strict=True))
    return record(defn, [aligned(x, f, rank) for x, f in zip(xs, flags, strict=True)], attrs)
