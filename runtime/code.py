"""Generated Python: lines, what their names stand for, and which op each line is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import CodeType
from typing import Any, TypeAlias

from tpc.ir.program import Op

Names: TypeAlias = Mapping[str, Any]
Recipe: TypeAlias = Callable[[Names], Any]

_serial = count()


class Code:
    """The body of one function, as it is being written.

    Names are either bound once for all (kernels, constants) or made anew for every copy of the function (`recipe`), from
    that copy's memory and from the names bound before them.
    """

    def __init__(self, title: str, parameters: Sequence[str]) -> None:
        self.filename = f"<tpc {title} {next(_serial)}>"
        self.parameters = tuple(parameters)
        self.lines: list[str] = []
        self.ops: list[Op | None] = []
        self.shared: dict[str, Any] = {}
        self.recipes: dict[str, Recipe] = {}
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._compiled: CodeType | None = None

    def fresh(self, prefix: str) -> str:
        """A name that is not yet used."""
        number = self._numbers.get(prefix, 0)
        self._numbers[prefix] = number + 1
        return f"{prefix}{number}"

    def bind(self, prefix: str, value: Any) -> str:
        """A name for an object that all copies of the function share."""
        if (name := self._names.get(id(value))) is None:
            name = self._names[id(value)] = self.fresh(prefix)
            self.shared[name] = value
        return name

    def recipe(self, prefix: str, make: Recipe) -> str:
        """A name for an object that each copy of the function makes for itself."""
        name = self.fresh(prefix)
        self.recipes[name] = make
        return name

    def line(self, text: str, op: Op | None = None) -> None:
        self.lines.append(text)
        self.ops.append(op)

    def rename(self, origins: Mapping[Op, Op]) -> None:
        """Says of lines that belong to one op that they belong to another: the user's, of which it is a part."""
        self.ops = [origins.get(op, op) if op is not None else None for op in self.ops]

    def source(self) -> str:
        """The text that is compiled: a function that makes the function, so that names are closure cells."""
        names = ", ".join([*self.shared, *self.recipes])
        body = "".join(f"        {line}\n" for line in self.lines) or "        pass\n"
        return f"def make({names}):\n    def run({', '.join(self.parameters)}):\n{body}    return run\n"

    def function(self, memory: Names) -> Callable[..., Any]:
        """A copy of the function over its own memory."""
        if self._compiled is None:
            self._compiled = compile(self.source(), self.filename, "exec")
        names = {**memory, **self.shared}
        for name, make in self.recipes.items():
            names[name] = make(names)
        space: dict[str, Any] = {}
        exec(self._compiled, space)
        run: Callable[..., Any] = space["make"](*[names[name] for name in (*self.shared, *self.recipes)])
        return run

    def op_at(self, line: int) -> Op | None:
        """The op that a line of the compiled text belongs to."""
        index = line - 3
        return self.ops[index] if 0 <= index < len(self.ops) else None
