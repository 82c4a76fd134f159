"""A random user program as data, its Python source, and the tensors it is run on.

    def build(ns, flush, w0):
        class F0(ns.autograd.Function): ...
        def program(x0, x1):
            v0 = ns.sin(x0)
            ...
            return v0, x1
        def after(results, x0, x1):
            ...
        return program, after

`ns` is tpc, or a module with the same names. `program` is what is compiled, traced and interpreted; `w0` is a tensor that it finds
outside; `after` always runs outside, on what `program` returned. Steps are lines of Python, so that what is printed is what was run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

ROUNDS = 2
"""Sets of input values that a leaf has."""


@dataclass(frozen=True)
class Leaf:
    """A tensor that exists before the program runs. `form` says how it comes about: "leaf", or a view or function of a base that is one,
    or the name of an earlier leaf that it is the same tensor as."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    tracked: bool = False
    form: str = "leaf"
    seed: int = 0
    smooth: bool = False

    @property
    def outside(self) -> bool:
        return self.name[0] == "w"

    def array(self, round: int = 0) -> np.ndarray:
        """Its values: small numbers, with ties and zeros, and sometimes a special one."""
        rng = np.random.default_rng((self.seed, round))
        dtype = np.dtype(self.dtype)
        if self.smooth:
            return np.asarray(rng.uniform(0.3, 1.7, self.shape) * rng.choice([-1, 1, 1], self.shape), dtype)
        if dtype.kind == "b":
            return np.asarray(rng.integers(0, 2, self.shape), dtype)
        if dtype.kind in "ui":
            return np.asarray(rng.integers(0 if dtype.kind == "u" else -3, 6, self.shape), dtype)
        values = np.where(rng.random(self.shape) < 0.3, rng.integers(-2, 3, self.shape), rng.standard_normal(self.shape))
        if rng.random() < 0.15:
            odd = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30], self.shape)
            values = np.where(rng.random(self.shape) < 0.15, odd, values)
        with np.errstate(all="ignore"):
            if dtype.kind == "c":
                return np.asarray(values + 1j * np.asarray(rng.standard_normal(self.shape)), dtype)
            return np.asarray(values, dtype)

    def make(self, ns: Any, array: np.ndarray, made: dict[str, Any]) -> Any:
        """The tensor; its base, if it has one, goes into `made` too."""
        if self.form in made:
            return made[self.form]
        if self.form == "transposed":
            base = self._base(ns, np.ascontiguousarray(np.swapaxes(array, 0, -1)), made)
            return base.transpose(0, -1)
        if self.form == "sliced":
            base = self._base(ns, np.concatenate([array, array]), made)
            return base[: len(array)]
        if self.form == "computed":
            return self._base(ns, array, made) * 2
        return ns.tensor(array).requires_grad_(self.tracked)

    def _base(self, ns: Any, array: np.ndarray, made: dict[str, Any]) -> Any:
        base = made[f"{self.name}_base"] = ns.tensor(array).requires_grad_(self.tracked)
        return base


@dataclass(frozen=True)
class Step:
    """Lines of Python, what names they bind, and what names they read."""

    code: str
    binds: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        return self.code.split("\n")


@dataclass(frozen=True)
class Program:
    leaves: tuple[Leaf, ...]
    classes: tuple[Step, ...] = ()
    body: tuple[Step, ...] = ()
    results: tuple[str, ...] = ()
    after: tuple[Step, ...] = ()
    observed: tuple[str, ...] = ()
    """What the steps of `after` bound."""
    budget: float = 1.0
    nested: int = 0
    """How many of the last results are returned in a list inside the tuple."""
    again: bool = False
    """Whether the second call gets the very arguments of the first."""

    @property
    def arguments(self) -> list[Leaf]:
        return [leaf for leaf in self.leaves if not leaf.outside]

    def source(self, flushing: bool = False) -> str:
        """Python source; `flushing` computes everything after each step, the Functions' own included."""
        found = [leaf.name for leaf in self.leaves if leaf.outside]
        outside = "".join(f", {name}" for name in found)
        declared = [f"nonlocal {', '.join(found)}"] if found else []
        names = ", ".join(leaf.name for leaf in self.arguments)
        out = [f"def build(ns, flush{outside}):"]
        for step in self.classes:
            out += _indented(_with_flushes(step.lines) if flushing else step.lines, 1)
        out += _indented([f"def program({names}):"], 1) + _indented(declared, 2)
        for step in self.body:
            out += _indented(step.lines, 2)
            if flushing:
                out += _indented(["flush()"], 2)
        results = self._results()
        out += _indented([f"return {results}"], 2)
        out += _indented([f"def after(results, {names}):"], 1) + _indented(declared, 2)
        if self.results:
            out += _indented([f"{results} = results"], 2)
        for step in self.after:
            out += _indented(step.lines, 2)
            if flushing:
                out += _indented(["flush()"], 2)
        out += _indented([f"return {_tuple(self.observed)}", ""], 2)
        out += _indented(["return program, after", ""], 1)
        return "\n".join(out)

    def _results(self) -> str:
        if not self.nested or not self.results:
            return _tuple(self.results)
        return _tuple([*self.results[: -self.nested], f"[{', '.join(self.results[-self.nested :])}]"])

    def flat(self, results: Any) -> tuple[Any, ...]:
        """What `program` returned as a flat tuple."""
        return (*results[:-1], *results[-1]) if self.nested and self.results else tuple(results)

    def build(self, ns: Any, tensors: dict[str, Any], flush: Callable[[], None] | None = None) -> tuple[Callable, Callable]:
        """`program` and `after`, over the outside tensors among `tensors`."""
        outside = [tensors[leaf.name] for leaf in self.leaves if leaf.outside]
        return _executed(self.source(flush is not None))["build"](ns, flush, *outside)

    def __str__(self) -> str:
        leaves = "\n".join(f"    {leaf!r}," for leaf in self.leaves)
        return f"{self.source()}\nLEAVES = (\n{leaves}\n)  # budget={self.budget} again={self.again}"


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)" if names else "()"


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


_STATEMENT = re.compile(r"( +)(?!return|def|class|@|if|else|elif|with|for|raise)\S")


def _with_flushes(lines: Sequence[str]) -> list[str]:
    out = []
    for line in lines:
        out.append(line)
        if (found := _STATEMENT.match(line)) and len(found[1]) >= 8:
            out.append(f"{found[1]}flush()")
    return out


def _executed(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "fuzz"}
    exec(compile(source, f"<program {next(_numbers)}>", "exec"), namespace)
    return namespace


_numbers = count()
