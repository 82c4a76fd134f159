"""The table of derivatives. The entries stand in one file per family beside this one.

An entry is `derivative(op, operand=formula, ...)`. A formula's first parameter is the gradient `g` of the result (a list, for several
results); the others say by name what it needs: an operand (saved for backward; a Python scalar where the user gave one), `y` the
result (saved), `<operand>_type` a type (not saved), or an attribute. Formulas are written with public functions, so what they do
is recorded and differentiable. The engine sums a gradient down to a broadcast operand's shape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpc.autograd.node import OpNode
from tpc.autograd.saved import SavedTensor
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.types import is_differentiable
from tpc.recording import Recorded, user_frame
from tpc.state import STATE


@dataclass(frozen=True, slots=True)
class Formula:
    """The gradient of one operand: `names` are its parameters after `g`, `saves` those that are tensors to be saved."""

    function: Callable[..., Any]
    names: tuple[str, ...]
    saves: tuple[str, ...]
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """Formulas by operand position (a variadic op has one, for all), and the node class that PyTorch names for the op."""

    formulas: Mapping[int, Formula]
    node: type[OpNode]
    variadic: bool = False


RULES: dict[OpDef, Rule] = {}
NOT_DIFFERENTIABLE: set[OpDef] = set()

_TORCH_NAMES = {"mul": "Mul", "broadcast_to": "Expand", "slice": "Slice", "reshape": "View", "index": "Index", "copy": "Clone", "cast": "ToCopy"}


def node_name(op: str) -> str:
    """PyTorch's name of the op's node: MulBackward0."""
    return _TORCH_NAMES.get(op, "".join(part.capitalize() for part in op.split("_"))) + "Backward0"


def derivative(defn: OpDef, **formulas: Callable[..., Any]) -> None:
    """Enters the gradient formulas of an op, by operand name."""
    if defn in RULES:
        raise ValueError(f"{defn.name} has its derivative twice")
    variadic = defn.operands[-1].startswith("*")
    names = tuple(n.lstrip("*") for n in defn.operands)
    entries = {}
    for operand, function in formulas.items():
        parameters = tuple(inspect.signature(function).parameters)[1:]
        for n in parameters:
            if n not in names and n not in defn.attrs and n != "y" and n.removesuffix("_type") not in names:
                raise ValueError(f"{defn.name}: its formula for {operand} asks for {n!r}, which is neither operand nor attribute")
        is_rest = variadic and operand == names[-1]
        entries[names.index(operand)] = Formula(function, parameters, tuple(n for n in parameters if n in names or n == "y"), is_rest)
    RULES[defn] = Rule(entries, type(node_name(defn.name), (OpNode,), {"__slots__": ()}), variadic)


def not_differentiable(*defns: OpDef) -> None:
    """Declares that an op's results carry no gradient."""
    NOT_DIFFERENTIABLE.update(defns)


class NotImplementedNode(OpNode):
    """Stands where an op has no derivative, and says so when back-propagated."""

    __slots__ = ("op",)

    def run(self, grads: Any) -> Sequence[Any]:
        raise NotImplementedError(f"derivative for {self.op} is not implemented ({self.described()})")


def make_node(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue], results: Any) -> None:
    """Gives the results of a recorded op their node. At least one operand requires grad."""
    if defn in NOT_DIFFERENTIABLE:
        return
    outputs = results if results.__class__ is tuple else (results,)
    metas = [t._type for t in outputs]
    if not any(is_differentiable(t.dtype) for t in metas):
        return
    edges = [None if t.__class__ is Recorded else t._edge() for t in operands]
    rule = RULES.get(defn)
    node: OpNode
    if rule is None:
        node = NotImplementedNode(edges, metas)
        node.op = defn.name
    else:
        node = rule.node(edges, metas)
        _save(node, defn, rule, edges, operands, outputs)
    node.attrs = attrs
    node.loc = STATE.loc or user_frame()
    for slot, t in enumerate(outputs):
        if is_differentiable(t._type.dtype):
            t._node, t._slot = node, slot


def _save(node: OpNode, defn: OpDef, rule: Rule, edges: Sequence[Any], operands: Sequence[Any], outputs: Sequence[Any]) -> None:
    names = defn.operands
    formulas = []
    saved: dict[str, Any] = {}
    for position, formula in rule.formulas.items():
        if formula.variadic:
            if not any(e is not None for e in edges[position:]):
                continue
        elif edges[position] is None:
            continue
        formulas.append((position, formula))
        for n in formula.saves:
            if n in saved:
                continue
            if n == "y":
                saved[n] = SavedTensor(outputs[0], True, 0)
            elif "*" + n == names[-1]:
                saved[n] = tuple(_saved_operand(t) for t in operands[len(names) - 1 :])
            else:
                saved[n] = _saved_operand(operands[names.index(n)])
    node.formulas = formulas
    node.saved = saved
    if rule.variadic:
        fixed = len(names) - 1
        node.types = {n: operands[i]._type if operands[i].__class__ is not Recorded else operands[i].type for i, n in enumerate(names[:fixed])}
        node.types[names[-1][1:]] = tuple(t._type if t.__class__ is not Recorded else t.type for t in operands[fixed:])
    else:
        node.types = {n: t.type if t.__class__ is Recorded else t._type for n, t in zip(names, operands, strict=True)}


def _saved_operand(t: Any) -> Any:
    return t if t.__class__ is Recorded else SavedTensor(t)
