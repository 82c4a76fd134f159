"""What a recording depends on in an argument."""

from __future__ import annotations

from typing import Any

from tpc.strides import is_contiguous, whole_storage
from tpc.tensor import Tensor
from tpc.writing import VIEW_OF_LEAF


def kind(x: Any) -> Any:
    """Hashable; equal for arguments that one recording may serve."""
    if isinstance(x, Tensor):
        return (x._type, x._tracked(), x._node is None, _view_kind(x) if x._views else None)
    if x.__class__ is float or x.__class__ is complex:
        return (x.__class__, repr(x))  # tells -0.0 from 0.0, and NaN is itself
    try:
        hash(x)
    except TypeError:
        return (x.__class__, id(x))
    return (x.__class__, x)


def _view_kind(x: Tensor) -> Any:
    """What a recording depends on in a view: the whole chain, where memory is not in order (`reshape` copies then)."""
    if is_contiguous(x):
        return True, refusal(x)
    chain = tuple([(view.defn.name, repr(view.attrs)) for view in x._views])
    return chain, whole_storage(x).value.type, x._base is None, refusal(x)


def refusal(x: Tensor) -> str | None:
    """Why a view must not be written in place."""
    base = x._base
    if x._refusal is None and base is not None and x._tracked() and base._leaf and base._node is None and not x._leaf:
        return VIEW_OF_LEAF
    return x._refusal
