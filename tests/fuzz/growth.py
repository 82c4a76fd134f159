"""A program while it grows: every step is run at once, so that later ones know shapes, dtypes and histories."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tpc
from tests.fuzz.program import Step
from tpc.deferred import flush
from tpc.tensor import Tensor

MAX_NUMEL = 400


class Choices:
    """Where choices come from: hypothesis, or a seed."""

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number

    def choose(self, options: Iterable[Any]) -> Any:
        options = list(options)
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """Whether something unusual happens; shrinks to no."""
        return self.number(0, 99) >= 100 - percent

    def some(self, options: Iterable[Any], least: int = 0) -> list[Any]:
        """A part of the options, in order."""
        options = list(options)
        chosen = [x for x in options if self.number(0, 1)]
        return chosen if len(chosen) >= least else options[:least]


def seeded(seed: int) -> Choices:
    return Choices(random.Random(seed).randint)


class Growth:
    """`env` maps names to what the steps bound so far; `smooth` programs have gradients that central differences can check."""

    def __init__(self, choices: Choices, env: dict[str, Any], prefix: str = "v", smooth: bool = False) -> None:
        self.choices, self.env, self.prefix, self.smooth = choices, env, prefix, smooth
        self.choose, self.number, self.chance, self.some = choices.choose, choices.number, choices.chance, choices.some
        self.steps: list[Step] = []
        self.classes: list[Step] = []
        self.failed = False
        self.next = 0
        self.protected: set[str] = set()
        """Names that must not be written in place."""
        self.random = False
        self.not_inputs: set[str] = set()
        """Names that no gradient is asked for: results of one compiled call, and what it wrote. How these depend on each other is known
        only inside."""

    # --- values at hand ---

    def tensors(self, keep: Callable[[Tensor], bool] = lambda t: True) -> list[str]:
        return [n for n, t in self.env.items() if isinstance(t, Tensor) and not n.startswith("_") and _is_usable(t) and keep(t)]

    def value(self, keep: Callable[[Tensor], bool] = lambda t: True) -> str | None:
        """The name of a tensor for which `keep` holds; late ones are likelier, so that programs get deep."""
        fitting = self.tensors(keep)
        return self.choose(fitting + fitting[-4:]) if fitting else None

    def like(self, name: str, same_dtype: bool = False) -> str:
        """A tensor that broadcasts with another one."""
        x = self.env[name]

        def fits(t: Tensor) -> bool:
            pairs = zip(reversed(t.shape), reversed(x.shape), strict=False)
            return (not same_dtype or t.dtype == x.dtype) and all(m == n or 1 in (m, n) for m, n in pairs)

        found = self.value(fits)
        assert found is not None
        return found

    def dim(self, name: str) -> int:
        """A dimension, sometimes counted from the end."""
        rank = self.env[name].dim()
        return self.number(-rank, rank - 1) if self.chance(30) else self.number(0, rank - 1)

    def constant(self, name: str | None = None) -> str:
        """A Python number."""
        dtype = self.env[name].dtype if name else tpc.float32
        if dtype == tpc.bool:
            return self.choose(["True", "False"])
        if not dtype.is_floating_point and not dtype.is_complex and not self.chance(10):
            return str(self.number(0 if str(dtype).endswith("uint8") else -2, 3))
        return self.choose(["2", "0.5", "-1.5", "1", "0", "3.0", "-2", "0.1"] if not self.smooth else ["2", "0.5", "1.5", "3.0"])

    # --- steps ---

    def fresh(self) -> str:
        self.next += 1
        return f"{self.prefix}{self.next - 1}"

    def let(self, expression: str, many: int = 1) -> bool:
        """A step that binds the value of an expression (`many` of them) to new names."""
        names = tuple(self.fresh() for _ in range(many))
        return self.do(f"{', '.join(names)} = {expression}", names)

    def define(self, code: str, name: str) -> None:
        """Something that stands before the program, where it is made once."""
        exec(code, self.env)
        self.classes.append(Step(code, (name,)))

    def do(self, code: str, binds: Sequence[str] = ()) -> bool:
        """Adds a step if it runs; one that raises is now and then kept, as the last."""
        outcome = self.attempt(code)
        if outcome is not None and not (isinstance(outcome, Exception) and self.chance(6)):
            for name in binds:
                self.env.pop(name, None)
            return False
        self.steps.append(Step(code, tuple(binds)))
        self.failed = outcome is not None
        if any(isinstance(t := self.env.get(n), Tensor) and t.numel() > MAX_NUMEL for n in binds):
            for name in binds:
                self.env.pop(name, None)
        return True

    def attempt(self, code: str) -> BaseException | None:
        try:
            exec(code, self.env)
            flush()
        except Exception as error:
            return error
        return None


def _is_usable(t: Tensor) -> bool:
    """Whether its history can be asked for: not that of a view whose base was written where that is forbidden."""
    try:
        return t.requires_grad or True
    except RuntimeError:
        return False


def is_floating(t: Tensor) -> bool:
    return t.dtype.is_floating_point


def is_inexact(t: Tensor) -> bool:
    return t.dtype.is_floating_point or t.dtype.is_complex


def is_real(t: Tensor) -> bool:
    return not t.dtype.is_complex and t.dtype != tpc.bool


def is_integer(t: Tensor) -> bool:
    return not t.dtype.is_floating_point and not t.dtype.is_complex and t.dtype != tpc.bool


def is_numeric(t: Tensor) -> bool:
    return t.dtype != tpc.bool


def is_tracked(t: Tensor) -> bool:
    return bool(t.requires_grad)


def has_dims(t: Tensor) -> bool:
    return t.dim() > 0
