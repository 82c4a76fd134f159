"""The one place that checks an op against its definition and asks for its result types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.types import MAX_ELEMENTS, NUMPY_DTYPES, TensorType

if TYPE_CHECKING:
    from tpc.ir.program import Program

MAX_RANK = 64
"""NumPy's."""


def why_not_operand_count(defn: OpDef, count: int) -> str | None:
    """Why the op cannot have that many operands; None if it can."""
    names = defn.operands
    variadic = bool(names) and names[-1].startswith("*")
    fixed = len(names) - variadic
    if count == fixed or (variadic and count > fixed):
        return None
    listed = f" ({', '.join(names)})" if names else ""
    return f"{defn.name} takes {'at least ' if variadic else ''}{counted(fixed, 'operand')}{listed}, not {count}"


def why_not_attr_names(defn: OpDef, names: Iterable[str]) -> str | None:
    """Why these are not exactly the op's attributes; None if they are."""
    given = set(names)
    for name in sorted(given.difference(defn.attrs)):
        have = f"it has {', '.join(defn.attrs)}" if defn.attrs else "it has none"
        return f"{defn.name} has no attribute {name!r}; {have}"
    missing = [name for name in defn.attrs if name not in given]
    return f"{defn.name} lacks the attribute{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}" if missing else None


def result_types(
    defn: OpDef, types: Sequence[TensorType], attrs: Mapping[str, AttrValue], bodies: Sequence[Program] = ()
) -> tuple[TensorType, ...]:
    """Result types of an op: what its rule infers, or what its bodies return; `TypeRuleError` if they do not exist."""
    why = why_not_operand_count(defn, len(types)) or why_not_attr_names(defn, attrs)
    if why is not None:
        raise TypeRuleError(why)
    if (why := why_not_bodies(defn, len(bodies))) is not None:
        raise TypeRuleError(why)
    return _inferred(defn, types, attrs, bodies)


def why_not_bodies(defn: OpDef, count: int) -> str | None:
    """Why the op cannot have that many bodies; None if it can."""
    if count == len(defn.bodies):
        return None
    if not defn.bodies or not count:
        return f"{defn.name} {'lacks a' if defn.bodies else 'has no'} body"
    return f"{defn.name} has {len(defn.bodies)} bodies ({', '.join(defn.bodies)}), not {count}"


def why_not_type(type: TensorType) -> str | None:
    """Why no array can have this type; None if one can."""
    if type.dtype not in NUMPY_DTYPES:
        return f"{type.dtype!r} is no element type"
    if len(type.shape) > MAX_RANK:
        return f"a tensor has at most {MAX_RANK} axes, not {len(type.shape)}"
    elements = 1
    for size in type.shape:
        if size.__class__ is not int or size < 0:
            return f"{size!r} is no size of an axis"
        elements *= size or 1  # NumPy refuses a size that overflows even beside a 0
    return f"{type} is too large: a tensor has at most {MAX_ELEMENTS} elements" if elements > MAX_ELEMENTS else None


def _inferred(
    defn: OpDef, types: Sequence[TensorType], attrs: Mapping[str, AttrValue], bodies: Sequence[Program]
) -> tuple[TensorType, ...]:
    try:
        inferred = defn.infer(types, attrs) if defn.infer_bodies is None else defn.infer_bodies(types, attrs, bodies)
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        # A rule trusts its attributes to be of the right kind; text, JSON and hand-written programs may break that.
        given = ", ".join([f"{name}={value!r:.60}" for name, value in attrs.items()])
        raise TypeRuleError(f"{defn.name} ({listed(types)}) cannot have the attributes {given}: {error}") from error
    results = (inferred,) if isinstance(inferred, TensorType) else tuple(inferred)
    for result in results:
        if (why := why_not_type(result)) is not None:
            raise TypeRuleError(f"{defn.name}: {why}")
    return results


def listed(types: Iterable[TensorType]) -> str:
    """``f32[3], i64[]``"""
    return ", ".join(map(str, types))


def counted(number: int, noun: str) -> str:
    return f"{'no' if number == 0 else number} {noun}{'' if number == 1 else 's'}"
