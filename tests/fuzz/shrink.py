"""Makes a failing program smaller: drops steps, results and classes, simplifies leaves, as long as it fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.program import Program, Step


def shrunk(program: Program, check: Callable[[Program], str | None], tries: int = 600) -> Program:
    """The smallest program found that fails as the given one does."""
    wanted = _kind(checked(check, program))
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(program):
            tries -= 1
            if tries > 0 and _kind(checked(check, smaller)) == wanted:
                program, progress = smaller, True
                break
    return program


def checked(check: Callable[[Program], str | None], program: Program) -> str | None:
    """What the check says; an error of the check itself is a finding too."""
    try:
        return check(program)
    except Exception as error:
        return f"{type(error).__name__} {error}"


def _kind(message: str | None) -> str:
    """A failure without the numbers in it."""
    return re.sub(r"call \d|[vxw]\d+|result \d+|[\d.\-]+", "#", (message or "").split("\n")[0])[:90]


def _smaller(program: Program) -> Iterator[Program]:
    for part in ("after", "body", "classes"):
        steps = getattr(program, part)
        for i in reversed(range(len(steps))):
            gone = set(steps[i].binds)
            kept = (*steps[:i], *steps[i + 1 :])
            results = tuple(n for n in program.results if n not in gone)
            yield replace(program, **{part: kept}, results=results, observed=tuple(n for n in program.observed if n not in gone))
    for i in range(len(program.results)):
        if len(program.results) > 1:
            yield replace(program, results=(*program.results[:i], *program.results[i + 1 :]))
    if program.observed:
        yield replace(program, observed=())
    text = program.source()
    for i, leaf in enumerate(program.leaves):
        rest = (*program.leaves[:i], *program.leaves[i + 1 :])
        if not re.search(rf"\b{leaf.name}\b", text.replace(f"build(ns, flush, {leaf.name}", "").replace(f"nonlocal {leaf.name}", "")):
            yield replace(program, leaves=rest)
        for change in ({"form": "leaf"}, {"tracked": False}, {"dtype": "float32"}, {"seed": 0}):
            if any(getattr(leaf, k) != v for k, v in change.items()):
                yield replace(program, leaves=(*program.leaves[:i], replace(leaf, **change), *program.leaves[i + 1 :]))
    if program.again:
        yield replace(program, again=False)
    if program.budget != 1.0:
        yield replace(program, budget=1.0)
    for part in ("body", "after"):
        steps = getattr(program, part)
        for i, step in enumerate(steps):
            for simple in _simpler(step.code):
                yield replace(program, **{part: (*steps[:i], Step(simple, step.binds), *steps[i + 1 :])})


def _simpler(code: str) -> Iterator[str]:
    for option in (", create_graph=True", ", retain_graph=True", "retain_graph=True", ", keepdim=True", ".detach()", ", alpha=2"):
        if option in code:
            yield code.replace(option, "")
