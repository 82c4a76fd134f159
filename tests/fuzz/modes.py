"""A program run in every mode: each gives a list of moments, and all lists must be the same.

The first call and the second get equal values, the third others; tensors from outside live through all three. After each call the
steps of `after` run in deferred mode on what it returned.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.fuzz.observe import Failed, Moment, difference, moment
from tests.fuzz.program import Program
from tpc import deferred
from tpc.autograd.saved import SECOND_TIME

ROUNDS = (0, 0, 1)
"""Which values the arguments have in each call."""


def run(
    program: Program, ns: Any, compile: Callable[[Any], Any] | None = None, flush: Callable[[], None] | None = None
) -> list[Moment | Failed]:
    """The moments after each call and after each `after`; ends with the first failure."""
    ns.manual_seed(0)
    tensors: dict[str, Any] = {}
    for leaf in program.leaves:
        if leaf.outside:
            tensors[leaf.name] = leaf.make(ns, leaf.array(), tensors)
    body, after = program.build(ns, tensors, flush)
    if compile is not None:
        body = compile(body)
    moments: list[Moment | Failed] = []
    for number, round in enumerate(ROUNDS):
        if number != 1 or not program.again:
            for leaf in program.arguments:
                tensors.pop(leaf.name, None)
            for leaf in program.arguments:
                tensors[leaf.name] = leaf.make(ns, leaf.array(round), tensors)
        arguments = [tensors[leaf.name] for leaf in program.arguments]
        results: Any = ()
        returned: Any = ()
        for function, given in ((body, arguments), (after, None)):
            before = moment(tensors, results)
            try:
                outcome = function(*arguments) if given is not None else after(returned, *arguments)
                returned = outcome if given is not None else returned
                results = program.flat(outcome) if given is not None else (*results, *outcome)
                moments.append(moment(tensors, results))
            except Exception as error:
                moments.append(Failed(error, before, _state(tensors)))
                return moments
    return moments


def _state(tensors: dict[str, Any]) -> Moment | Failed:
    """What tensors are after a failure."""
    try:
        return moment(tensors)
    except Exception as error:
        return Failed(error, {})


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Deferred graphs run as executables from their first run on."""
    original = deferred._Entry.run

    def run(self: Any, arrays: Any) -> Any:
        self.runs = max(self.runs, 2)
        return original(self, arrays)

    deferred._Entry.run = run  # type: ignore[method-assign]
    deferred._cache.clear()
    try:
        yield
    finally:
        deferred._Entry.run = original  # type: ignore[method-assign]
        deferred._cache.clear()


def reassociated(program: Program) -> float:
    """How far numbers may be apart: gradients of a compiled call are summed inside it before they meet others."""
    return 64.0 if any("grad(" in step.code or "backward" in step.code for step in program.after) else 0.0


def _asks_for_a_part(program: Program) -> bool:
    return any("autograd.grad" in step.code for step in program.after)


def is_about_values(x: Failed) -> bool:
    """Whether an error comes from what an operand holds: it is raised where that is known, or where a result is asked for."""
    return any(words in str(x.error) for words in ("ZeroDivisionError", "out of bounds"))


def compare(
    program: Program, expected: list[Moment | Failed], got: list[Moment | Failed], atomic: bool, tolerance: float = 0.0
) -> str | None:
    """What differs first between two runs, or None. `atomic`: a failed call of the second changed nothing."""
    for i, (a, b) in enumerate(zip(expected, got, strict=False)):
        if atomic and i % 2 and isinstance(b, Failed) and str(b.error).startswith(SECOND_TIME):
            return None  # a compiled call is one node, which is freed as a whole
        if atomic and i % 2 and isinstance(b, Failed) and "modified by an inplace" in str(b.error) and _asks_for_a_part(program):
            return None  # and which runs as a whole, where only a part leads to what is asked for
        if isinstance(a, Failed) and not isinstance(b, Failed) and is_about_values(a):
            return None  # the operation at fault is one whose result nobody needs: a program does not contain it
        where = f"call {i // 2 + 1}" + (", after" if i % 2 else "")
        if isinstance(a, Failed) or isinstance(b, Failed):
            found = _failure_difference(a, b, atomic and i % 2 == 0)
        else:
            found = difference(a, b, tolerance if i else 0.0)
        if found:
            return f"{where}: {found}"
    return None if len(expected) == len(got) else f"{len(expected)} moments against {len(got)}"


def _failure_difference(a: Moment | Failed, b: Moment | Failed, atomic: bool) -> str | None:
    if not isinstance(a, Failed) or not isinstance(b, Failed) or a.kind != b.kind:
        return f"{_outcome(a)} against {_outcome(b)}"
    if isinstance(b.after, Failed):
        return f"tensors cannot be read after the error: {_outcome(b.after)}" if atomic else None
    assert b.after is not None
    if not atomic:
        # An error that shows only when a value is asked for leaves values that cannot be asked for.
        # A backward pass that raises has been through some nodes already, in an order that differs.
        return None if isinstance(a.after, Failed) or a.after is None else difference(_bare(a.after), _bare(b.after))
    before = {name: b.before[name] for name in b.after}
    found = difference(before, b.after)
    return f"the failed call changed something: {found}" if found else None


def _bare(moment: Moment) -> Moment:
    """Without gradients."""
    return {name: seen and seen._replace(grad=None) for name, seen in moment.items()}


def _outcome(x: Moment | Failed) -> str:
    return f"{x.kind}: {x.error}" if isinstance(x, Failed) else "no error"
