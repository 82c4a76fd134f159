"""Operator definitions: every fact about an operator that a pass, the recorder or the verifier may ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from tpc.ir.errors import UnknownOpError
from tpc.ir.types import TensorType

if TYPE_CHECKING:
    from tpc.ir.program import Program

AttrValue: TypeAlias = "bool | int | float | complex | str | tuple[AttrValue, ...] | None"
Infer: TypeAlias = Callable[[Sequence[TensorType], Mapping[str, AttrValue]], "TensorType | tuple[TensorType, ...]"]
InferBodies: TypeAlias = "Callable[[Sequence[TensorType], Mapping[str, AttrValue], Sequence[Program]], tuple[TensorType, ...]]"
Promotion: TypeAlias = Literal["none", "same", "float", "bool"]


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """One operator.

    `infer(types, attrs)` is the type rule: it returns the result type (a tuple for several results) or raises
    `TypeRuleError`. The flags are what general passes ask instead of naming operators.
    """

    name: str
    operands: tuple[str, ...]
    """Names of the operands; a last name that starts with ``*`` takes any number."""
    infer: Infer
    attrs: tuple[str, ...] = ()
    """Names of the attributes; an op carries exactly these."""
    promotion: Promotion = "none"
    """What the recorder does to operand dtypes: nothing; PyTorch's common dtype ("same"); the same, integers made
    floating ("float"); the common dtype with a bool result ("bool": comparisons)."""
    elementwise: bool = False
    """Result element i depends on element i of the (broadcast) operands alone."""
    view: bool = False
    """The result is operand 0 seen otherwise: no work, no memory."""
    reduction: bool = False
    """Combines elements along `attrs["dims"]` (or `dim`); may end a fused group."""
    commutative: bool = False
    random: bool = False
    """Operand 0 is a generator state and the last result the next one."""
    checks: bool = False
    """The kernel raises for some values: indices out of bounds, singular matrices; elementwise ops only for integers (division by zero)."""
    foldable: bool = True
    """May be evaluated at compile time on constant operands (not: large results, host code)."""
    cost: float = 1.0
    """Work per result element, in units of one streamed addition; 0 for views. Products give theirs by `flops`."""
    flops: Callable[[Sequence[TensorType], Mapping[str, AttrValue]], float] | None = None
    into: int | None = None
    """Operand whose buffer the result may take over although the op is not elementwise (scatters: the base)."""
    bodies: tuple[str, ...] = ()
    """What the programs that the op runs are for."""
    infer_bodies: InferBodies | None = None
    """The type rule of an op with bodies."""
    fused: bool = False
    """The one body is a group of ops that run as one: they are as good as ops of the program itself."""
    doc: str = ""


_TABLE: dict[str, OpDef] = {}


def define(defn: OpDef) -> OpDef:
    """Enters an operator into the table; a name is defined once."""
    if defn.name in _TABLE:
        raise ValueError(f"operator {defn.name!r} is defined twice")
    _TABLE[defn.name] = defn
    return defn


def lookup(name: str) -> OpDef:
    """The operator of that name; `UnknownOpError` names the nearest one."""
    try:
        return _TABLE[name]
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name, _TABLE, 1)
        raise UnknownOpError(f"unknown operator {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")) from None


def all_ops() -> tuple[OpDef, ...]:
    """Every defined operator, in order of definition."""
    return tuple(_TABLE.values())
