"""`leaf.grad_dtype`: the dtype in which a leaf's gradient arrives and is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpc.dtype import BY_IR, dtype
from tpc.ir.types import TensorType
from tpc.state import STATE

if TYPE_CHECKING:
    from tpc.tensor import Tensor

ANY = "any"


def kept_type(leaf: Tensor) -> TensorType:
    """Type of a leaf's gradient, as far as it is fixed."""
    kept = leaf.__dict__.get("_grad_dtype", ANY)
    return leaf._type if kept == ANY else leaf._type._replace(dtype=kept)


def takes_any(leaf: Tensor) -> bool:
    """Whether the user lifted the rule that a gradient has one dtype."""
    return leaf.__dict__.get("_grad_dtype") == ANY


def get_grad_dtype(leaf: Tensor) -> dtype | None:
    """The dtype that a gradient must have, by default the leaf's; None: any. `RuntimeError` for a non-leaf."""
    if not leaf.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return None if takes_any(leaf) else BY_IR[kept_type(leaf).dtype]


def set_grad_dtype(leaf: Tensor, value: Any) -> None:
    """From now on gradients are cast to this dtype when they arrive; None: they stay as they come."""
    from tpc.tracing import Untraceable

    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a tpc.dtype or None, but got {type(value).__name__}")
    if not leaf.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if STATE.trace is not None and leaf._trace is not STATE.trace:
        raise Untraceable("the grad_dtype of a tensor from outside is set: set it outside")
    kept = ANY if value is None else value.ir
    if leaf._grad is not None and kept not in (ANY, leaf._grad._type.dtype):
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value}' because there is already a gradient with dtype '{leaf._grad.dtype}'. Please clear the "
            "gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype."
        )
    leaf.__dict__["_grad_dtype"] = kept
    node = leaf._accumulate() if leaf._accumulate is not None else None
    if node is not None:
        node._metas, node._any_dtype = (kept_type(leaf),), takes_any(leaf)
