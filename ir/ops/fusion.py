"""A group of ops that run as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, by_bodies, fits
from tpc.ir.types import TensorType

if TYPE_CHECKING:
    from tpc.ir.program import Program


def _fusion(types: Types, attrs: Attrs, bodies: Sequence[Program]) -> tuple[TensorType, ...]:
    fits("fusion", types, bodies[0])
    return tuple(value.type for value in bodies[0].outputs)


fusion = define(OpDef("fusion", ("*inputs",), by_bodies("fusion"), foldable=False, bodies=("body",), infer_bodies=_fusion, fused=True))
