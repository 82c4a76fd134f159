"""Public functions by name, over all families."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from tpc.functions import arranging, derived, einsum, elementwise, factories, joining, linalg, norms, ordering, random, reduction, shape

FAMILIES: tuple[ModuleType, ...] = (
    elementwise,
    derived,
    reduction,
    ordering,
    norms,
    shape,
    joining,
    arranging,
    linalg,
    einsum,
    random,
    factories,
)
"""In the order in which a name is looked for."""


try:  # indexing is being written
    from tpc.functions import indexing  # type: ignore
    FAMILIES = (*FAMILIES, indexing)
except ImportError:
    pass


def find(name: str) -> Callable[..., Any]:
    """The function of that name, defined in one of the families."""
    for family in FAMILIES:
        found = getattr(family, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise AttributeError(f"no family of functions has {name!r}")
