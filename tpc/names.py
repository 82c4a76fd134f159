"""Names for the inputs of programs: parameters of the function, and where lifted tensors were found."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from tpc.nn.tree import TABLES
from tpc.outcome import Outcome, Source
from tpc.surroundings import ABSENT, variables
from tpc.tensor import Tensor
from tpc.tree import LEAF, flatten

MAX_DEPTH = 4
MAX_VISITS = 5_000


def input_names(function: Any, outcome: Outcome, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str | None]:
    """One name (or None) for each input of the outcome."""
    arguments = _argument_names(function, args, kwargs)
    found: dict[int, str] = {}
    for path, tensor in reachable(function):
        found.setdefault(id(tensor._storage), path)
    return [_name(source, arguments, found) for source in outcome.sources]


def _name(source: Source, arguments: list[str], found: Mapping[int, str]) -> str | None:
    if source.kind == "arg":
        return str(arguments[source.ref])
    if source.kind == "storage":
        return found.get(id(source.ref), None)
    if source.kind == "grad":
        owner: Source = source.ref
        name = arguments[owner.ref] if owner.kind == "arg" else found.get(id(owner.ref._storage)) if owner.kind == "outside" else None
        return f"{name}.grad" if name else None
    return None


def _argument_names(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        named = list(zip(_spread_names(bound), (*bound.args, *bound.kwargs.values()), strict=True))
    except (TypeError, ValueError):
        named = [(f"arg{i}", a) for i, a in enumerate(args)] + list(kwargs.items())
    names: list[str] = []
    for name, value in named:
        count = len(flatten(value)[0])
        names += [name] if flatten(value)[1] == LEAF else [f"{name}.{i}" for i in range(count)]
    return names


def _spread_names(bound: inspect.BoundArguments) -> Iterator[str]:
    for name, parameter in bound.signature.parameters.items():
        if name not in bound.arguments:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            yield from (f"{name}.{i}" for i in range(len(bound.arguments[name])))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            yield from bound.arguments[name]
        else:
            yield name


def reachable(function: Any) -> Iterator[tuple[str, Tensor]]:
    """Tensors that the function can reach through closure, globals, `self` and their attributes and containers, nearest first."""
    return ((path, x) for path, x in reached(function) if isinstance(x, Tensor))


def reached(function: Any) -> Iterator[tuple[str, Any]]:
    """Everything that it can reach so."""
    queue: list[tuple[str, Any, int]] = list(_roots(function))
    seen: set[int] = set()
    for path, x, depth in queue:
        if id(x) in seen or len(seen) > MAX_VISITS:
            continue
        seen.add(id(x))
        yield path, x
        if isinstance(x, Tensor):
            continue
        if isinstance(x, FunctionType):
            queue.extend((name, child, depth + 1) for name, child, _ in _roots(x) if depth < MAX_DEPTH)
        elif depth < MAX_DEPTH:
            queue.extend((f"{path}.{k}" if path else str(k), child, depth + 1) for k, child in _children(x))


def _roots(function: Any) -> Iterator[tuple[str, Any, int]]:
    owner = getattr(function, "__self__", None)
    plain = getattr(function, "__func__", function)
    if owner is not None:
        yield "", owner, 0
    if not isinstance(plain, FunctionType):
        yield "", function, 0
        return
    for entry in variables(plain):
        if (value := entry.read()) is not ABSENT:
            yield entry.name, value, 0


def _children(x: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(x, (list, tuple)):
        yield from enumerate(x)
    elif isinstance(x, Mapping):
        yield from ((k if isinstance(k, (str, int)) else i, v) for i, (k, v) in enumerate(x.items()))
    elif not isinstance(x, type) and hasattr(x, "__dict__") and type(x).__module__ != "builtins":
        for name, value in vars(x).items():
            yield from value.items() if name in TABLES and isinstance(value, dict) else [(name, value)]
