"""What a recording depends on in the Python around a function: values in closures, globals, classes, objects and containers.

Recording takes such values as they are. So they are watched, and a call that finds others is recorded again, as one with other
arguments is. Values that the function itself changes while it is recorded (a counter, a log) are not watched: they would never be the
same again.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tpc.nn.signature import setting
from tpc.nn.tree import Tree
from tpc.tensor import Tensor

PLAIN = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (list, tuple, dict, set, frozenset)
MOST_ITEMS = 64
"""Of what holds more items in all, only lengths are watched."""
MOST_PLACES = 256
MOST_VISITS = 2_000
FOREIGN = {"tpc", "numpy", "scipy", "networkx", "sklearn", "matplotlib", *sys.stdlib_module_names} - {"__main__"}
"""Packages whose insides are their own business."""


class Place(NamedTuple):
    """Where a value is found: `name` in the object `key[0]`, whose address it is."""

    key: tuple[int, str]
    name: str
    read: Callable[[], Any]


class Surroundings:
    """The watched values of one function."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.places: list[Place] = []
        self.values: list[Any] = []
        self.settings: tuple[Any, ...] = ()
        self.states: dict[tuple[Any, ...], list[Any]] = {}
        """Settings that were recorded for, with the values, whose addresses must not be given to others."""
        self._own: set[tuple[int, str]] = set()

    def look(self) -> None:
        """Finds all places anew: before a recording."""
        self.places = [p for p in _places(self.function) if p.key not in self._own]
        self._take()

    def settle(self) -> None:
        """Stops to watch what has changed since: after a recording. Remembers the state."""
        changed = {p.key for p, s in zip(self.places, self.settings, strict=True) if _setting(p.read()) != s}
        if changed:
            self._own |= changed
            self.places = [p for p in self.places if p.key not in changed]
            self._take()
        self.states[self.settings] = self.values

    def changed(self) -> bool:
        """Whether some value is another one; what is there now is the state from now on."""
        for place, last, known in zip(self.places, self.values, self.settings, strict=True):
            value = place.read()
            if not (value is last and value.__class__ not in CONTAINERS) and _setting(value) != known:
                self._take()
                return True
        return False

    def restless(self) -> list[str]:
        """Names of the values that differ between the states so far."""
        rows = [s for s in self.states if len(s) == len(self.places)]
        return [p.name for i, p in enumerate(self.places) if len({row[i] for row in rows}) > 1]

    def _take(self) -> None:
        self.values = [p.read() for p in self.places]
        self.settings = tuple([_setting(v) for v in self.values])


def _setting(value: Any, room: int = MOST_ITEMS) -> Any:
    """What is compared of a value; `room` is for how many items of containers in all, since that is done at every call."""
    if value.__class__ not in CONTAINERS:
        return setting(value) if value.__class__ in PLAIN else id(value)
    count = len(value)
    if count > room:
        return value.__class__, count, id(value)
    if isinstance(value, dict):
        return (dict, *[(setting(k), _setting(v, room // count)) for k, v in value.items()])
    items = [_setting(v, room // count) for v in value]
    return value.__class__, frozenset(items) if isinstance(value, (set, frozenset)) else tuple(items)


def _places(function: Any) -> Iterator[Place]:
    queue: list[Any] = [function]
    seen: set[int] = set()
    found = 0
    for x in queue:
        if id(x) in seen or len(seen) > MOST_VISITS or found > MOST_PLACES:
            continue
        seen.add(id(x))
        for name, owner, read in _inside(x):
            value = read()
            if value.__class__ in PLAIN or value.__class__ in CONTAINERS or isinstance(value, (Tensor, FunctionType, type)):
                found += 1
                yield Place((id(owner), name), name, read)
            if value.__class__ not in PLAIN:
                queue.append(value)
                queue.extend(_items(value))


def _items(value: Any) -> list[Any]:
    """What in a container may lead further."""
    if value.__class__ not in CONTAINERS or len(value) > MOST_ITEMS:
        return []
    items = value.values() if isinstance(value, dict) else value
    return [x for x in items if x.__class__ not in PLAIN]


def _inside(x: Any) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """Names of values that code may read in an object, the object that has them, and how to read them."""
    if isinstance(x, MethodType):
        yield "self", x, lambda: x.__self__
        yield from _inside(x.__func__)
    elif isinstance(x, (staticmethod, classmethod)):
        yield from _inside(x.__func__)
    elif isinstance(x, FunctionType):
        if not _is_foreign(x.__module__):
            yield from _in_function(x)
    elif isinstance(x, type):
        if not _is_foreign(x.__module__):
            yield from _in_table(x, vars(x))
    elif isinstance(x, Tree):
        # Everything else in a module tells of its changes.
        yield from ((n, x, r) for n, _, r in _in_table(x, vars(x)) if r().__class__ in (list, dict, set) and not n.startswith("_"))
        yield from _in_table(type(x), vars(type(x))) if not _is_foreign(type(x).__module__) else ()
    elif not isinstance(x, (Tensor, ModuleType)) and hasattr(x, "__dict__") and not _is_foreign(type(x).__module__):
        # A new attribute may hide one of the class.
        yield "attributes", x, partial(len, vars(x))
        yield from _in_table(x, vars(x))
        yield from _in_table(type(x), vars(type(x)))


def _in_table(owner: Any, table: Mapping[str, Any]) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    yield from ((n, owner, partial(table.get, n)) for n in tuple(table) if not (n.startswith("__") and n.endswith("__")))


def _in_function(function: FunctionType) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell, partial(getattr, cell, "cell_contents", None)
    table = function.__globals__
    for name, attributes in _globals_of(function.__code__).items():
        value = table.get(name)
        if isinstance(value, ModuleType):
            if not _is_foreign(value.__name__):
                yield from ((a, value, partial(vars(value).get, a)) for a in attributes if a in vars(value))
        elif name in table:
            yield name, table, partial(table.get, name)


def _globals_of(code: CodeType) -> dict[str, tuple[str, ...]]:
    """The globals that code reads, each with all names of attributes in it."""
    found = {i.argval: code.co_names for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found = _globals_of(inner) | found
    return found


def _is_foreign(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in FOREIGN
