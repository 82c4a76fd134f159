"""`tpc.explain`: what a compiled function would do on these arguments, for people to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tpc.compile import Compiled
from tpc.ir.signature import counted
from tpc.recording import is_ours
from tpc.trace import Traced, trace
from tpc.tracing import Untraceable


class Explanation:
    """What was found out about one function: its programs in `traced`, or in `reason` why it has none. `str()` is the report."""

    def __init__(self, name: str, traced: Traced | None, reason: str | None) -> None:
        self.name, self.traced, self.reason = name, traced, reason

    @property
    def guards(self) -> list[tuple[str, str]]:
        """(line, value) of everything that Python looked at: a call for which it is another is recorded again."""
        if self.traced is None:
            return []
        return [(str(where or "unknown line"), _shown(array)) for _, array, where in self.traced.body.outcome.guards]

    def __str__(self) -> str:
        if self.traced is None:
            return f"@{self.name} runs in deferred mode, not compiled: {self.reason}"
        outcome, programs = self.traced.body.outcome, self.traced.optimized.programs.values()
        given = sum(source.kind in ("arg", "base") for source in outcome.sources)
        memory = f"{counted(given, 'argument')} and {counted(len(outcome.sources) - given, 'tensor')} from outside"
        lines = [f"@{self.name} is compiled to {counted(len(self.traced.optimized.programs), 'program')} on {memory}"]
        lines += [f"  @{p.name}: {counted(len(p.ops), 'op')} after the passes" for p in programs]
        written = len(outcome.writes) + len(outcome.grads)
        if written:
            lines.append(f"effects: {counted(written, 'tensor')} or .grad from outside written at each call")
        guards = self.guards
        lines.append(
            "guards: none, one recording serves all values" if not guards else "guards: recorded again where one of these is another"
        )
        lines += [f"  {where}: the value was {value}" for where, value in guards]
        return "\n".join([*lines, "", str(self.traced.report())])

    __repr__ = __str__


def explain(function: Callable[..., Any], *args: Any, memory_budget: float = 1.0, **kwargs: Any) -> Explanation:
    """Records `function`, compiled or not, on these arguments as `tpc.compile` would, changes nothing, and says what came of it: programs,
    guards with their lines, what is kept for backward and why; or the line for which it runs in deferred mode.

    Arguments may be `tpc.spec`s, for which no value can be looked at. Raises what the function raises.
    """
    if isinstance(function, Compiled):
        memory_budget, function = function.memory_budget, function.function
    name = getattr(function, "__name__", type(function).__name__)
    try:
        return Explanation(name, trace(function, *args, memory_budget=memory_budget, **kwargs), None)
    except Untraceable as reason:
        return Explanation(name, None, _with_line(reason))


def _with_line(reason: Untraceable) -> str:
    """The reason, with the innermost line of the user's where it names none."""
    import traceback

    frames = [f for f in traceback.extract_tb(reason.__traceback__) if not is_ours(f.filename)]
    text = str(reason)
    return text if not frames or f":{frames[-1].lineno}" in text else f"{text} (at {frames[-1].filename}:{frames[-1].lineno})"


def _shown(array: np.ndarray) -> str:
    return " ".join(str(array.tolist()).split()) if array.size <= 8 else f"an array of {array.size} elements"
