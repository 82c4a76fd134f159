"""The passes in their order, and what happens between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from tpc.ir.builder import Rewriter
from tpc.ir.program import Op, Program
from tpc.passes.cse import cse
from tpc.passes.fuse import fuse
from tpc.passes.partition import partition
from tpc.passes.schedule import schedule
from tpc.passes.simplify import Evaluate, simplify

Pass: TypeAlias = Callable[[Program], Program]
Watch: TypeAlias = Callable[[str, Program], None]
Verify: TypeAlias = Callable[[Program], None]

PASSES: tuple[Callable[..., Program], ...] = (simplify, cse, partition, fuse, schedule)
"""Every pass from programs to programs, in the order they run; `lifetime` then makes the plan."""


def standard(evaluate: Evaluate | None = None, memory_budget: float = 1.0, skip: Sequence[str] = ()) -> tuple[Pass, ...]:
    """The standard pipeline. `evaluate` runs constant parts (none: nothing is folded); `skip` names passes to leave out."""
    settings: dict[str, dict[str, Any]] = {"simplify": {"evaluate": evaluate}, "partition": {"memory_budget": memory_budget}}
    unknown = set(skip).difference(p.__name__ for p in PASSES)
    if unknown:
        raise ValueError(f"no pass is called {sorted(unknown)[0]!r}; there are {', '.join(p.__name__ for p in PASSES)}")
    return tuple(partial(p, **settings.get(p.__name__, {})) for p in PASSES if p.__name__ not in skip)


def pass_name(function: Pass) -> str:
    """What a pass is called in dumps and errors: the name of its function."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def run(program: Program, passes: Sequence[Pass] | None = None, watch: Watch | None = None, verify: Verify | None = None) -> Program:
    """Runs passes one after the other.

    `watch(name, program)` is called with the given program (as ``input``) and after each pass: dumps, timing and checks hang on
    it. `verify(program)` is called at the same places, before it. An error says in which pass it arose.
    """
    passes = standard() if passes is None else passes
    if verify is not None:
        verify(program)
    if watch is not None:
        watch("input", program)
    for number, function in enumerate(passes, 1):
        name = pass_name(function)
        try:
            program = _with_bodies(function, program)
            if verify is not None:
                verify(program)
        except Exception as error:
            error.add_note(f"in pass {name} ({number} of {len(passes)})")
            raise
        if watch is not None:
            watch(name, program)
    return program


def _with_bodies(function: Pass, program: Program) -> Program:
    """The pass on a program and on the bodies of its control flow, innermost first."""
    if not any(op.bodies and not op.defn.fused for op in program.ops):
        return function(program)
    rewriter = Rewriter(program)
    for op in program.ops:
        if op.bodies and not op.defn.fused:
            bodies = tuple([_with_bodies(function, body) for body in op.bodies])
            made = rewriter.append(Op(op.defn, rewriter.operands(op), op.attrs, op.types, op.scopes, op.loc, bodies))
            for old, new in zip(op.results, made.results, strict=True):
                rewriter.forward(old, new)
        else:
            rewriter.copy(op)
    return function(rewriter.finish())
