"""Control flow: operators that run one of their bodies, or one of them many times.

A body takes exactly what its operands are made of and sees nothing else, so passes need not know what it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, boolean, by_bodies, fits, integer, listed
from tpc.ir.types import TensorType, tensor_type

if TYPE_CHECKING:
    from tpc.ir.program import Program

PREDICATE = tensor_type("bool", ())


def _cond(types: Types, attrs: Attrs, bodies: Sequence[Program]) -> tuple[TensorType, ...]:
    if types[0] != PREDICATE:
        raise TypeRuleError(f"cond: the predicate is {PREDICATE} {listed('cond', types)}")
    true, false = bodies
    for body in bodies:
        fits("cond", types[1:], body)
    results = _outputs(true)
    if results != _outputs(false):
        raise TypeRuleError(f"cond: one branch returns {_shown(results)}, the other {_shown(_outputs(false))}")
    return results


def _while(types: Types, attrs: Attrs, bodies: Sequence[Program]) -> tuple[TensorType, ...]:
    carried = tuple(types[: _count("while_loop", attrs, "carried", len(types))])
    condition, body = bodies
    fits("while_loop", types, condition)
    fits("while_loop", types, body)
    if _outputs(condition) != (PREDICATE,):
        raise TypeRuleError(f"while_loop: the condition returns {PREDICATE}, not {_shown(_outputs(condition))}")
    if _outputs(body) != carried:
        raise TypeRuleError(f"while_loop: {_shown(carried)} is carried, but the body returns {_shown(_outputs(body))}")
    return carried


def _scan(types: Types, attrs: Attrs, bodies: Sequence[Program]) -> tuple[TensorType, ...]:
    carried = _count("scan", attrs, "carried", len(types))
    scanned = _count("scan", attrs, "scanned", len(types) - carried)
    length = integer(attrs, "length")
    boolean(attrs, "reverse")
    (body,) = bodies
    inputs = list(types)
    for i in range(carried, carried + scanned):
        if types[i].shape[:1] != (length,):
            raise TypeRuleError(f"scan: operand {i} is {types[i]}, but the first axis of what is scanned has {length} elements")
        inputs[i] = tensor_type(types[i].dtype, types[i].shape[1:])
    fits("scan", inputs, body)
    results = _outputs(body)
    if results[:carried] != tuple(types[:carried]):
        raise TypeRuleError(f"scan: {_shown(types[:carried])} is carried, but the body returns {_shown(results[:carried])}")
    return (*results[:carried], *[tensor_type(t.dtype, (length, *t.shape)) for t in results[carried:]])


def _count(op: str, attrs: Attrs, name: str, most: int) -> int:
    count = integer(attrs, name)
    if not 0 <= count <= most:
        raise TypeRuleError(f"{op}: there are no {count} operands that are {name}")
    return count


def _outputs(body: Program) -> tuple[TensorType, ...]:
    return tuple(value.type for value in body.outputs)


def _shown(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


cond = define(
    OpDef(
        "cond",
        ("predicate", "*inputs"),
        by_bodies("cond"),
        foldable=False,
        bodies=("true", "false"),
        infer_bodies=_cond,
        doc="Runs one body on the inputs: the first where the predicate holds, else the second.",
    )
)
while_loop = define(
    OpDef(
        "while_loop",
        ("*inputs",),
        by_bodies("while_loop"),
        ("carried",),
        foldable=False,
        bodies=("condition", "body"),
        infer_bodies=_while,
        doc="Replaces the first `carried` inputs by what the body makes of all inputs, as long as the condition holds.",
    )
)
scan = define(
    OpDef(
        "scan",
        ("*inputs",),
        by_bodies("scan"),
        ("carried", "scanned", "length", "reverse"),
        foldable=False,
        bodies=("body",),
        infer_bodies=_scan,
        doc="Runs the body for each element along the first axis of the `scanned` inputs, which follow the `carried` ones: "
        "it returns what is carried on, and an element of each further result.",
    )
)
