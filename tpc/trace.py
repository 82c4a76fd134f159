"""`tpc.trace`: the programs of a function, for people to read, draw and measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tpc.autograd.application import signature_of
from tpc.autograd.function import Function
from tpc.body import Body
from tpc.functions.linalg import trace as matrix_trace
from tpc.ir.plan import Plan, plan_memory
from tpc.ir.program import Module, Program
from tpc.ir.types import TensorType, is_differentiable
from tpc.names import input_names
from tpc.outcome import Outcome, run_traced
from tpc.recording import capture, placeholder
from tpc.storage import Storage
from tpc.tensor import Tensor
from tpc.tree import atom, flatten, unflatten

STAGES = ("recorded", "joint", "forward", "reverse", "optimized", "plan")


@atom
@dataclass(frozen=True, slots=True)
class Spec:
    """Stands for an argument of which only the type is known."""

    type: TensorType
    requires_grad: bool = False

    def __str__(self) -> str:
        return str(self.type) + (" grad" if self.requires_grad else "")


def spec(text: str, requires_grad: bool = False) -> Spec:
    """The spec for a type such as ``f32[64,784]``; ``f32[64,784] grad`` requires grad. `ValueError` for anything else."""
    from tpc.ir.atoms import Misread, read_types

    words = text.split()
    if words[1:] == ["grad"]:
        words, requires_grad = words[:1], True
    try:
        found = read_types(" ".join(words))
    except Misread as error:
        raise ValueError(f"{text!r} is not a spec such as f32[64,784]: {error}") from None
    if len(found) != 1:
        raise ValueError(f"{text!r} is not a spec such as f32[64,784]")
    (type,) = found
    if requires_grad and not is_differentiable(type.dtype):
        raise ValueError(f"{text!r}: only floating and complex arguments can require grad")
    return Spec(type, requires_grad)


def trace(function: Callable[..., Any] | type[Function], *args: Any, memory_budget: float = 1.0, **kwargs: Any) -> Traced:
    """Records `function` on arguments of which some or all are `spec`s, and gives its programs.

    A Function class stands for its `apply`, with its floating arguments requiring grad. Nothing outside changes. Raises what the
    function raises,
    and `Untraceable` (a `RuntimeError`) where it looks at values that specs do not have. Of a tensor it is PyTorch's `trace`, the sum of
    a matrix's diagonal.
    """
    if isinstance(function, Tensor):
        return matrix_trace(function)
    name = getattr(function, "__name__", type(function).__name__)
    if isinstance(function, type) and issubclass(function, Function):
        args = tuple(Spec(a.type, is_differentiable(a.type.dtype)) if isinstance(a, Spec) else a for a in args)
        named_by: Any = Parameters(function)
        function = function.apply
    else:
        named_by = function
    leaves, structure = flatten((args, kwargs))
    concrete = not any(isinstance(x, Spec) for x in leaves)
    given = [_argument(x) for x in leaves]
    args, kwargs = unflatten(structure, given)
    outcome = run_traced(function, args, kwargs, given, concrete)
    names = input_names(named_by, outcome, args, kwargs)
    return Traced(name, outcome, names, memory_budget)


class Parameters:
    """Stands for a Function where its parameters are asked for: those of forward, without ctx."""

    def __init__(self, function: type[Function]) -> None:
        self.__signature__ = signature_of(function.forward, function.setup_context is not Function.setup_context)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Never called; `inspect.signature` asks that it could be."""


def _argument(x: Any) -> Any:
    if not isinstance(x, Spec):
        return x
    made = Tensor(Storage.unknown(placeholder(x.type)), x.type)
    made._leaf = x.requires_grad
    return made


class Traced:
    """The programs of one traced function, by stage.

    ``recorded``: as the function ran. ``joint``: with backward, where its results can be back-propagated. ``forward`` and ``reverse``:
    the joint
    program split. ``optimized``: after all passes. ``plan``: with memory assigned. `str()` gives the text of the recorded program, or of
    forward and reverse.
    """

    def __init__(self, name: str, outcome: Outcome, names: list[str | None], memory_budget: float) -> None:
        self.name = name
        writes: list[int | None] = [None] * len(outcome.outputs)
        for output, number, _ in outcome.writes:
            writes[output] = number
        self.recorded = capture(name, outcome.inputs, outcome.outputs, names, writes)
        self.body = Body(
            name,
            outcome,
            outcome.inputs,
            outcome.outputs,
            outcome.tracked,
            [e for e, _ in outcome.sought],
            names,
            outcome.writes,
            memory_budget,
        )
        self.memory_budget = memory_budget

    @property
    def is_split(self) -> bool:
        """Whether a caller back-propagates through the results, so that there are two programs."""
        return self.body.halves is not None

    @cached_property
    def module(self) -> Module:
        """The programs that run, before passes: one, or forward and reverse."""
        return Module([self.body.halves.forward, self.body.halves.reverse] if self.is_split else [self.recorded])

    @cached_property
    def optimized(self) -> Module:
        """The programs that run, after all passes."""
        if self.is_split:
            return Module([self.body.forward_program, self.body.reverse_program])
        return Module([self.body.optimized])

    @cached_property
    def plans(self) -> list[Plan]:
        """The optimized programs with memory assigned."""
        donated = self.body.donated()
        return [plan_memory(p, donated if i == 0 else ()) for i, p in enumerate(self.optimized.programs.values())]

    def stage(self, name: str) -> Module | list[Plan]:
        """The programs of a stage; `ValueError` for a stage that does not exist or that this function has not."""
        if name not in STAGES:
            raise ValueError(f"there is no stage {name!r}; there are {', '.join(STAGES)}")
        if name == "recorded":
            return Module([self.recorded])
        if name == "joint":
            return Module([self.body.program])
        if name in ("forward", "reverse"):
            if not self.is_split:
                raise ValueError(
                    f"@{self.name} has no {name} program: nothing it returns can be back-propagated from; its stages are recorded, "
                    "optimized, plan"
                )
            return Module([self.body.halves.forward if name == "forward" else self.body.halves.reverse])
        return self.optimized if name == "optimized" else self.plans

    def __getitem__(self, name: str) -> Program:
        return self.module[name]

    def __str__(self) -> str:
        return str(self.module).rstrip("\n")

    def __repr__(self) -> str:
        return f"<Traced {', '.join(map(repr, self.module.programs.values()))}>"

    def report(self) -> Any:
        """What is saved for backward, how and why, what was fused, and the planned peak; prints as a table."""
        from tpc.report import report_of

        return report_of(self)

    def draw(self, path: str | None = None, **options: Any) -> str:
        """Draws the backward graph beside the forward one; the suffix of `path` says how (.svg, .png, .pdf, .dot). Returns the DOT text."""
        from tpc.drawing import draw

        return draw(self, path, **options)

    def _repr_svg_(self) -> str | None:
        """For notebooks; None where nothing can render."""
        from tpc.drawing import svg

        return svg(self)
