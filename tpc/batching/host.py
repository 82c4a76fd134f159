"""Host calls under vmap: one call on the whole batch, or one for each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.batching.rules import batching, expanded
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops import host as ops
from tpc.record import record_typed as record


@batching(ops.host_call)
def _host_call(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    given: Any = attrs
    return record(
        defn,
        [expanded(x, f, batch) for x, f in zip(xs, flags, strict=True)],
        {
            **attrs,
            "shapes": tuple((batch, *shape) for shape in given["shapes"]),
            "mapped": given["mapped"] + (not given["vectorized"]),
        },
    )
