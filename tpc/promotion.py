"""Questions about dtypes: what two become together, and what may be stored where."""

from __future__ import annotations

from typing import Any

from tpc.dtype import BY_IR, dtype, ir_dtype, promote
from tpc.dtype import can_cast as storable
from tpc.record import common_dtype


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be brought to."""
    found = promote(ir_dtype(type1), ir_dtype(type2))
    assert found is not None
    return BY_IR[found]


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of arithmetic between two tensors or numbers."""
    return BY_IR[common_dtype((tensor1, tensor2))]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether values of one dtype may be stored in another: never from floating to integer, nor from complex to real."""
    return storable(ir_dtype(from_), ir_dtype(to))


def typename(obj: Any) -> str:
    """The name of an object's type, such as ``"torch.FloatTensor"``."""
    from tpc.tensor import Tensor

    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
