"""Nested containers as trees: tuples, lists, dicts, named tuples, dataclasses and registered types are walked; all else is a leaf."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_registered: dict[type, tuple[Callable[[Any], tuple[Sequence[Any], Any]], Callable[[Any, Sequence[Any]], Any]]] = {}


_atoms: set[type] = set()


def atom(kind: type) -> type:
    """Makes instances of a dataclass leaves; also a decorator."""
    _atoms.add(kind)
    return kind


def register(kind: type, flatten: Callable[[Any], tuple[Sequence[Any], Any]], unflatten: Callable[[Any, Sequence[Any]], Any]) -> None:
    """Makes instances of `kind` nodes: `flatten(x) -> (children, aux)`, `unflatten(aux, children) -> x`; aux is compared with ==."""
    _registered[kind] = (flatten, unflatten)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves from left to right, and a hashable description of the rest (None is a leaf)."""
    out: list[Any] = []
    return out, _flatten(tree, out)


LEAF = "*"


def _flatten(tree: Any, out: list[Any]) -> Any:
    kind = type(tree)
    if kind is tuple or kind is list:
        return (kind, tuple([_flatten(x, out) for x in tree]))
    if kind is dict:
        return (kind, tuple(tree), tuple([_flatten(x, out) for x in tree.values()]))
    if kind in _registered:
        children, aux = _registered[kind][0](tree)
        return (kind, aux, tuple([_flatten(x, out) for x in children]))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return (kind, tuple([_flatten(x, out) for x in tree]))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type) and kind not in _atoms:
        names = tuple(f.name for f in dataclasses.fields(tree))
        return (kind, names, tuple([_flatten(getattr(tree, n), out) for n in names]))
    out.append(tree)
    return LEAF


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """The inverse of `flatten`."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure == LEAF:
        return next(leaves)
    kind = structure[0]
    children = [_unflatten(s, leaves) for s in structure[-1]]
    if kind is tuple or kind is list:
        return kind(children)
    if kind is dict:
        return dict(zip(structure[1], children, strict=True))
    if kind in _registered:
        return _registered[kind][1](structure[1], children)
    if len(structure) == 2:
        return kind(*children)
    made = object.__new__(kind)
    for name, child in zip(structure[1], children, strict=True):
        object.__setattr__(made, name, child)
    return made


def leaves(tree: Any) -> list[Any]:
    """The leaves from left to right."""
    return flatten(tree)[0]


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with `function` applied to each leaf."""
    found, structure = flatten(tree)
    return unflatten(structure, [function(x) for x in found])
