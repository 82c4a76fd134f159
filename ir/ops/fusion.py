"""The one op with a body."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types
from tpc.ir.types import TensorType


def _fusion(types: Types, attrs: Attrs) -> TensorType:
    raise TypeRuleError("the results of a fusion are those of its body")


fusion = define(OpDef("fusion", ("*inputs",), _fusion, foldable=False))
