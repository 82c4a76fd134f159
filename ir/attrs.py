"""Attribute values: which are legal, and when two are the same."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tpc.ir.opdef import AttrValue


def attr_key(value: AttrValue) -> Hashable:
    """Equal for equal attributes only: tells 0.0 from -0.0 and 1 from 1.0 and True; NaN equals itself."""
    kind = type(value)
    if isinstance(value, tuple):
        if all(type(item) is int for item in value):
            return (tuple, value)
        return (list, *map(attr_key, value))
    if kind is float:
        return (float, repr(value))
    if isinstance(value, complex):
        return (complex, repr(value.real), repr(value.imag))
    return (str, str(value)) if isinstance(value, str) else (kind, value)


def why_not_attr(value: Any) -> str | None:
    """Why this is not an attribute value; None if it is one."""
    if isinstance(value, tuple):
        return next((why for item in value if (why := why_not_attr(item)) is not None), None)
    if type(value) is int:
        return why_not_int(value)
    if value is None or isinstance(value, str) or type(value) in (bool, float, complex):
        return None
    return f"{value!r} of class {type(value).__name__} is no attribute value (None, bool, int, float, complex, str, tuple of these)"


def why_not_int(value: int) -> str | None:
    """Attributes that are integers fit into i64 or u64, so that every reader of the text and JSON forms has them."""
    return None if -(2**63) <= value < 2**64 else f"{value} does not fit into 64 bits"
