"""What a recording depends on in modules: their settings, and which tensors, modules and hooks they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpc.autograd.node import Hooks
from tpc.nn.hooks import EVERY
from tpc.nn.tree import Tree
from tpc.tensor import Tensor


def signature(roots: Iterable[Any]) -> tuple[Any, ...]:
    """A hashable description of modules and all below them, and of optimisers, to be compared while their tensors are alive."""
    seen: dict[int, Any] = {}
    for root in roots:
        for module in root.modules() if isinstance(root, Tree) else [root]:
            if id(module) not in seen:
                seen[id(module)] = tuple([(name, setting(value)) for name, value in vars(module).items()])
    return (*[tuple(hooks) for hooks in EVERY.values()], *seen.items())


def setting(value: Any) -> Any:
    """A hashable description of a value; equal where a recording that took one may stand for the other."""
    if isinstance(value, (Tensor, Tree)):
        return id(value)
    if isinstance(value, Hooks):
        return tuple(value)
    if isinstance(value, (Mapping, list, tuple)):
        # A group of parameters shows numbers that live in tensors as numbers.
        items = dict.items(value) if isinstance(value, dict) else value.items() if isinstance(value, Mapping) else enumerate(value)
        return (type(value), *[(setting(k), setting(x)) for k, x in items])
    if isinstance(value, (float, complex)):
        return (type(value), repr(value))
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), value)
