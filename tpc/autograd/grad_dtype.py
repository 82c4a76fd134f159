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


def check_assigned(tensor: Tensor, value: Any) -> None:
    """Refuses what may not be a tensor's `.grad`: another type, shape or dtype, or the tensor itself."""
    from tpc.tensor import Tensor

    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value._type.shape != tensor._type.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._type.shape)}' to a tensor of size '{list(tensor._type.shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    kept = kept_type(tensor).dtype
    if value._type.dtype not in (tensor._type.dtype, kept) and not takes_any(tensor):
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with grad_dtype '{BY_IR[kept]}'. The gradient must "
            "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a "
            "specific dtype, or None to allow any dtype."
        )
