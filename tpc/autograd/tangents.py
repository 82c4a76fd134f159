"""Forward mode: what each recorded op does to tangents.

Note: tangents. A tensor carries at most one tangent per active level. The tangent of a result is the transpose of the op's gradient
formula: the
formula is linear in the gradient u, so its gradient with respect to u, applied to the operands' tangents, is the result's tangent.
One table of derivatives thus serves both modes, and the tangents are recorded, differentiable values themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.autograd.backward import grad
from tpc.autograd.engine import expands
from tpc.autograd.rules import NOT_DIFFERENTIABLE, REST, Plan, rule_for
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.types import is_complex, is_differentiable
from tpc.recording import Recorded
from tpc.state import STATE
from tpc.tensor import Tensor


class Level:
    """One application of forward mode, inside `depth` vmaps; tangents are filed under it."""

    __slots__ = ("depth",)

    def __init__(self) -> None:
        self.depth = len(STATE.vmaps)


def tangent_of(tensor: Any, level: Level) -> Tensor | None:
    """The tangent of a tensor at a level."""
    if not isinstance(tensor, Tensor) or tensor._tangent is None:
        return None
    return tensor._tangent.get(level)  # type: ignore[no-any-return]


def set_tangent(tensor: Tensor, level: Level, tangent: Tensor) -> None:
    """Gives a tensor its tangent."""
    if tensor._tangent is None:
        tensor._tangent = {}
    tensor._tangent[level] = tangent


class below:  # noqa: N801 - reads as a preposition
    """Within the block only the levels below `level` are active: what computes its tangents may itself have theirs."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.outer = STATE.duals
        STATE.duals = self.outer[: self.outer.index(self.level)]

    def __exit__(self, *exc: object) -> None:
        STATE.duals = self.outer


def propagate(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue], results: Any) -> None:
    """Gives the results of an op the tangents that follow from those of its operands."""
    outputs = results if results.__class__ is tuple else (results,)
    if defn in NOT_DIFFERENTIABLE or not any(is_differentiable(t._type.dtype) for t in outputs):
        return
    for level in STATE.duals:
        tangents = [tangent_of(t, level) for t in operands]
        if any(t is not None for t in tangents):
            with below(level):
                for output, tangent in zip(outputs, _transposed(defn, operands, attrs, outputs, tangents), strict=True):
                    if tangent is not None:
                        set_tangent(output, level, tangent)


def _transposed(
    defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue], outputs: Sequence[Tensor], tangents: Sequence[Tensor | None]
) -> list[Tensor | None]:
    from tpc.functions.factories import zeros_of

    rule = rule_for(defn, attrs)
    if rule is None:
        raise NotImplementedError(
            f"Trying to use forward AD with {defn.name} that does not support it because it has not been implemented yet."
        )
    plan = rule.plan(tuple(t is not None for t in tangents))
    outer, STATE.grad_enabled = STATE.grad_enabled, True
    try:
        seeds = [zeros_of(t._type).requires_grad_() if is_differentiable(t._type.dtype) else None for t in outputs]
        pulled = _pulled_back(plan, operands, attrs, outputs, seeds)
        used = [(v, t) for v, t in zip(pulled, tangents, strict=True) if v is not None and t is not None and v.requires_grad]
        wanted = [s for s in seeds if s is not None]
        got = iter(
            grad([v for v, _ in used], wanted, [t for _, t in used], create_graph=outer, allow_unused=True)
            if used
            else [None] * len(wanted)
        )
    finally:
        STATE.grad_enabled = outer
    made = []
    for seed in seeds:
        tangent = next(got) if seed is not None else None
        made.append(zeros_of(seed._type) if tangent is None and seed is not None else tangent)
    return made


def _pulled_back(
    plan: Plan, operands: Sequence[Any], attrs: Mapping[str, AttrValue], outputs: Sequence[Tensor], seeds: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The gradient formulas applied to `seeds`, each with the type of its operand."""
    types = [t.type if t.__class__ is Recorded else t._type for t in operands]
    given = {name: _given(position, operands, outputs) for name, position in plan.saves}
    g: Any = seeds[0] if len(seeds) == 1 else list(seeds)
    out: list[Tensor | None] = [None] * len(operands)
    for position, formula in plan.formulas:
        arguments = [given[n] if n in given else attrs[n] if n in attrs else plan.type_of(n, types) for n in formula.names]
        got = formula.function(g, *arguments)
        for i, v in enumerate(got if formula.variadic else (got,), position):
            out[i] = _fitted(v, types[i]) if v is not None else None
    return out


def _given(position: int, operands: Sequence[Any], outputs: Sequence[Tensor]) -> Any:
    if position < 0:
        return outputs[-1 - position]
    if position >= REST:
        return tuple(_given(i, operands, outputs) for i in range(position - REST, len(operands)))
    operand = operands[position]
    return operand.attrs["value"] if operand.__class__ is Recorded else operand


def _fitted(v: Tensor, type: Any) -> Tensor:
    from tpc.functions.elementwise import real
    from tpc.functions.reduction import sum_to
    from tpc.record import cast

    if v._type.shape != type.shape and expands(type.shape, v._type.shape):
        v = sum_to(v, type.shape)
    if is_complex(v._type.dtype) and not is_complex(type.dtype):
        v = real(v)
    return cast(v, type.dtype)
