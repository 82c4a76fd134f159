"""The table of derivatives. The entries stand in one file per family beside this one.

An entry is `derivative(op, operand=formula, ...)`. A formula's first parameter is the gradient `g` of the result (a list, for several
results; called `grads`, it has None instead of zeros where no gradient arrives); the others say by name what it needs: an operand
(saved for backward; a Python scalar where the user gave one), `y` the result (saved; of several the first, `y1` and `y2` the next),
`<operand>_type` a type (not saved), or an attribute. Formulas are written with public functions, so what they do
is recorded and differentiable. The engine sums a gradient down to a broadcast operand's shape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tpc.autograd.node import OpNode
from tpc.autograd.saved import SavedTensor
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.types import TensorType, is_differentiable
from tpc.recording import Recorded


@dataclass(frozen=True, slots=True)
class Formula:
    """The gradient of one operand: `names` are its parameters after `g`, `saves` those that are tensors to be saved."""

    function: Callable[..., Any]
    names: tuple[str, ...]
    saves: tuple[str, ...]
    variadic: bool = False
    takes_none: bool = False
    """Whether it tells results without gradient from those whose gradient is zero."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a node does whose operands need gradients in one particular pattern."""

    formulas: tuple[tuple[int, Formula], ...]
    """(operand position, formula)."""
    saves: tuple[tuple[str, int], ...]
    """(name, operand position): a tensor to save; negative positions are in `RESULTS`, one from `REST` on is all operands from there."""
    names: tuple[str, ...]
    variadic: bool

    def type_of(self, name: str, types: Sequence[TensorType]) -> Any:
        """The type that a formula asks for as ``x_type``; all types of the rest of a variadic op."""
        position = self.names.index(name.removesuffix("_type"))
        if self.variadic and position == len(self.names) - 1:
            return tuple(types[position:])
        return types[position]


RESULTS = {"y": -1, "y1": -2, "y2": -3}
"""Results by what formulas call them: result i has position -1 - i."""
REST = 1 << 16


@dataclass(frozen=True, slots=True)
class Rule:
    """Formulas by operand position (the last of a variadic op serves all the rest), and the node class that PyTorch names for the op."""

    formulas: Mapping[int, Formula]
    node: type[OpNode]
    names: tuple[str, ...]
    variadic: bool
    when: Callable[[Mapping[str, AttrValue]], bool] | None = None
    """Attributes that the rule is for."""
    plans: dict[tuple[bool, ...], Plan] = field(default_factory=dict)

    def plan(self, needs: tuple[bool, ...]) -> Plan:
        """The plan for operands that need gradients as `needs` says."""
        found = self.plans.get(needs)
        if found is None:
            found = self.plans[needs] = self._plan(needs)
        return found

    def _plan(self, needs: tuple[bool, ...]) -> Plan:
        formulas = tuple((i, f) for i, f in self.formulas.items() if (any(needs[i:]) if f.variadic else needs[i]))
        saves: dict[str, int] = {}
        for _, formula in formulas:
            for name in formula.saves:
                position = RESULTS[name] if name in RESULTS else self.names.index(name)
                saves[name] = position + REST if self.variadic and position == len(self.names) - 1 else position
        return Plan(formulas, tuple(saves.items()), self.names, self.variadic)


RULES: dict[OpDef, list[Rule]] = {}
"""Rules of an op; the first whose `when` holds counts."""
NOT_DIFFERENTIABLE: set[OpDef] = set()

_TORCH_NAMES = {
    "mul": "Mul",
    "broadcast_to": "Expand",
    "slice": "Slice",
    "reshape": "View",
    "index": "Index",
    "copy": "Clone",
    "cast": "ToCopy",
    "cholesky": "LinalgCholeskyEx",
    "inv": "LinalgInvEx",
    "solve": "LinalgSolveEx",
    "solve_triangular": "LinalgSolveTriangular",
    "det": "LinalgDet",
    "slogdet": "LinalgSlogdet",
    "qr": "LinalgQr",
    "eigh": "LinalgEigh",
    "eig": "LinalgEig",
    "svd": "LinalgSvd",
    "lu": "LinalgLuFactorEx",
    "pinv": "LinalgPinv",
    "matrix_exp": "LinalgMatrixExp",
    "fft_c2c": "FftC2C",
    "fft_r2c": "FftR2C",
    "fft_c2r": "FftC2R",
}


def node_name(op: str) -> str:
    """PyTorch's name of the op's node: MulBackward0."""
    return _TORCH_NAMES.get(op, "".join(part.capitalize() for part in op.split("_"))) + "Backward0"


def rule_for(defn: OpDef, attrs: Mapping[str, AttrValue]) -> Rule | None:
    """The rule of an op with these attributes."""
    rules = RULES.get(defn, ())
    if len(rules) == 1 and rules[0].when is None:
        return rules[0]
    return next((r for r in rules if r.when is None or r.when(attrs)), None)


def derivative(defn: OpDef, when: Callable[[Mapping[str, AttrValue]], bool] | None = None, **formulas: Callable[..., Any]) -> None:
    """Enters the gradient formulas of an op, by operand name; with `when`, for attributes of which that holds."""
    rules = RULES.setdefault(defn, [])
    if rules and rules[-1].when is None:
        raise ValueError(f"{defn.name} has its derivative twice")
    variadic = defn.operands[-1].startswith("*")
    names = tuple(n.lstrip("*") for n in defn.operands)
    entries = {}
    for operand, function in formulas.items():
        first, *rest = inspect.signature(function).parameters
        parameters = tuple(rest)
        for n in parameters:
            if n not in names and n not in defn.attrs and n not in RESULTS and n.removesuffix("_type") not in names:
                raise ValueError(f"{defn.name}: its formula for {operand} asks for {n!r}, which is neither operand nor attribute")
        is_rest = variadic and operand == names[-1]
        saves = tuple(n for n in parameters if n in names or n in RESULTS)
        entries[names.index(operand)] = Formula(function, parameters, saves, is_rest, first == "grads")
    rules.append(Rule(entries, type(node_name(defn.name), (OpNode,), {}), names, variadic, when))


def not_differentiable(*defns: OpDef) -> None:
    """Declares that an op's results carry no gradient."""
    NOT_DIFFERENTIABLE.update(defns)


class NotImplementedNode(OpNode):
    """Stands where an op has no derivative, and says so when back-propagated."""

    op: str

    def _run(self, grads: Any) -> Sequence[Any]:
        raise NotImplementedError(f"derivative for {self.op} is not implemented ({self._described()})")


def make_node(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue], results: Any, loc: Any) -> None:
    """Gives the results of a recorded op their node. At least one operand requires grad."""
    if defn in NOT_DIFFERENTIABLE:
        return
    outputs = results if results.__class__ is tuple else (results,)
    tracked = [slot for slot, t in enumerate(outputs) if is_differentiable(t._type.dtype)]
    if not tracked:
        return
    edges = [None if t.__class__ is Recorded else t._edge() for t in operands]
    metas = [t._type for t in outputs]
    rule = rule_for(defn, attrs)
    node: OpNode
    if rule is None:
        node = NotImplementedNode(edges, metas)
        node.op = defn.name
    else:
        node = rule.node(edges, metas)
        plan = node.plan = rule.plan(tuple([e is not None for e in edges]))
        node.operand_types = [t.type if t.__class__ is Recorded else t._type for t in operands]
        node.saved = [_save(position, operands, outputs) for _, position in plan.saves]
    node.attrs = attrs
    node._loc = loc
    for slot in tracked:
        outputs[slot]._node, outputs[slot]._slot = node, slot


def _save(position: int, operands: Sequence[Any], outputs: Sequence[Any]) -> Any:
    if position < 0:
        return SavedTensor(outputs[-1 - position], True, -1 - position)
    if position >= REST:
        return tuple(_save(i, operands, outputs) for i in range(position - REST, len(operands)))
    operand = operands[position]
    return operand if operand.__class__ is Recorded else SavedTensor(operand)
