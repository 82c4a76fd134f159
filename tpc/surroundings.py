"""What a recording depends on in the Python around a function: what closures, globals, classes, objects and containers hold.

Recording takes such values as they are. So they are watched, and a call that finds others is recorded again, as one with other
arguments is. Values that the function itself changes while it is recorded (a counter, a log) are not watched: they would never be the
same again.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tpc.nn.signature import setting
from tpc.nn.tree import TABLES, Tree
from tpc.tensor import Tensor

PLAIN = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (list, tuple, dict, set, frozenset)
MOST_ITEMS = 64
"""Of what holds more items in all, only the length is watched, and which object it is."""
MOST_PLACES = 256
MOST_VISITS = 2_000
FOREIGN = {"tpc", "numpy", "scipy", "networkx", "sklearn", "matplotlib"}
STANDARD = sys.stdlib_module_names - {"__main__"}
"""Packages whose code is not looked into; objects of the standard library (namespaces) are."""
ABSENT = object()


class Entry(NamedTuple):
    """A name, the object that it stands in, and how to read what it stands for."""

    name: str
    owner: Any
    read: Callable[[], Any]

    @property
    def key(self) -> tuple[int, str]:
        return id(self.owner), self.name


class Surroundings:
    """The watched values of one function."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.places: list[Entry] = []
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
        return setting(value) if _is_plain(value) else id(value)
    count = len(value)
    if count > room:
        return value.__class__, count, id(value)
    if isinstance(value, dict):
        return (dict, *[(setting(k), _setting(v, room // count)) for k, v in value.items()])
    items = [_setting(v, room // count) for v in value]
    return value.__class__, frozenset(items) if isinstance(value, (set, frozenset)) else tuple(items)


# --- where values are ---------------------------------------------------------------------------


def variables(function: FunctionType) -> Iterator[Entry]:
    """What a function, or one inside it, reads from around it by name; `ABSENT` stands for a variable that has no value yet."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield Entry(name, cell, partial(_content, cell))
    table = function.__globals__
    loads = [i for code in _codes(function.__code__) for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    yield from _entries(table, table, [i.argval for i in loads if i.argval in table])


def _places(function: Any) -> list[Entry]:
    """Where the function, and what it can reach, may read values. Of objects only the attributes that some of that code names."""
    read: dict[tuple[int, str], Entry] = {}
    attributes: dict[tuple[int, str], Entry] = {}
    named: set[str] = set()
    queue: list[Any] = [function]
    seen: set[int] = set()
    for x in queue:
        if id(x) in seen or len(seen) > MOST_VISITS:
            continue
        seen.add(id(x))
        entries, onward = _inside(x)
        if isinstance(x, FunctionType):
            named |= _names_in(x.__code__)
            read.update((e.key, e) for e in entries)
        else:
            attributes.update((e.key, e) for e in entries)
        queue += [e.read() for e in entries]
        queue += onward
    return [*read.values(), *(e for e in attributes.values() if e.name in named)][:MOST_PLACES]


def _inside(x: Any) -> tuple[list[Entry], Sequence[Any]]:
    """What code may read in an object by name, and what else it leads to."""
    if isinstance(x, MethodType):
        return [], (x.__func__, x.__self__)
    if isinstance(x, (staticmethod, classmethod)):
        return [], (x.__func__,)
    if isinstance(x, property):
        return [], (x.fget, x.fset)
    if x.__class__ in CONTAINERS:
        return [], () if len(x) > MOST_ITEMS else [*(x.values() if isinstance(x, dict) else x)]
    if isinstance(x, FunctionType):
        return ([], ()) if _package(x) in FOREIGN or _package(x) in STANDARD else (_in_function(x), ())
    if isinstance(x, type):
        return ([], ()) if _package(x) in FOREIGN or _package(x) in STANDARD else (_entries(x, vars(x), vars(x)), x.__bases__)
    if isinstance(x, Tree):
        # Everything else in a module tells of its changes.
        containers = [n for n, v in vars(x).items() if v.__class__ in (list, dict, set) and n not in TABLES]
        return _entries(x, vars(x), containers), (type(x), *x.modules())
    if isinstance(x, (Tensor, ModuleType)) or not hasattr(x, "__dict__") or _package(type(x)) in FOREIGN:
        return [], ()
    # An attribute may come that hides one of the class.
    return _entries(x, vars(x), {**vars(type(x)), **vars(x)}), (type(x),)


def _in_function(function: FunctionType) -> list[Entry]:
    found = list(variables(function))
    modules = [m for e in found if isinstance(m := e.read(), ModuleType) and m.__name__.partition(".")[0] not in FOREIGN | STANDARD]
    names = _names_in(function.__code__)
    return [*found, *(e for m in modules for e in _entries(m, vars(m), names & vars(m).keys()))]


def _entries(owner: Any, table: Mapping[str, Any], names: Iterable[str]) -> list[Entry]:
    return [Entry(n, owner, partial(table.get, n, ABSENT)) for n in names if not (n.startswith("__") and n.endswith("__"))]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _names_in(code: CodeType) -> set[str]:
    """Names that code may mean attributes by; `getattr` is given them as text."""
    return {n for c in _codes(code) for n in (*c.co_names, *c.co_consts) if isinstance(n, str)}


def _is_plain(value: Any) -> bool:
    return value.__class__ in PLAIN or isinstance(value, np.generic)


def _package(x: Any) -> str:
    return (x.__module__ or "").partition(".")[0]
