"""Type rules that several families share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpc.ir.errors import DtypeError, TypeRuleError
from tpc.ir.opdef import AttrValue, Infer
from tpc.ir.types import TensorType, tensor_type

if TYPE_CHECKING:
    from tpc.ir.program import Program

Types = Sequence[TensorType]
Attrs = Mapping[str, AttrValue]


def listed(op: str, types: Types) -> str:
    """How messages name an op and its operand types: ``(mul: f32[2,3] and f32[2,4])``."""
    return f"({op}: {' and '.join(map(str, types))})"


def broadcast(op: str, types: Types) -> tuple[int, ...]:
    """The common shape by NumPy's rule; `TypeRuleError` in PyTorch's words where there is none."""
    first = types[0].shape
    if all(t.shape == first for t in types):
        return first
    rank = max(t.rank for t in types)
    out = [1] * rank
    for t in types:
        for axis, n in enumerate(t.shape, rank - t.rank):
            if n == 1 or n == out[axis]:
                continue
            if out[axis] != 1:
                raise TypeRuleError(
                    f"The size of tensor a ({out[axis]}) must match the size of tensor b ({n}) at non-singleton dimension {axis} "
                    f"{listed(op, types)}"
                )
            out[axis] = n
    return tuple(out)


def same_dtype(op: str, types: Types) -> str:
    """The one dtype of all operands."""
    dtype = types[0].dtype
    if any(t.dtype != dtype for t in types):
        raise TypeRuleError(f"operands must have one dtype {listed(op, types)}")
    return dtype


def require(op: str, types: Types, kinds: str, what: str) -> None:
    """Refuses operands whose dtype is not of the kinds given (letters b, u, i, f, c)."""
    for t in types:
        if t.dtype[0] not in kinds:
            raise DtypeError(f'"{op}" not implemented for {t.dtype}: it takes {what} {listed(op, types)}')


_INT = frozenset({int})


def integers(attrs: Attrs, name: str) -> tuple[int, ...]:
    """A tuple-of-ints attribute."""
    value = attrs[name]
    if not isinstance(value, tuple) or not _INT.issuperset(map(type, value)):
        raise TypeRuleError(f"attribute {name} must be a list of integers, not {value!r}")
    return value  # type: ignore[return-value]


def integer(attrs: Attrs, name: str) -> int:
    """An int attribute."""
    value = attrs[name]
    if type(value) is not int:
        raise TypeRuleError(f"attribute {name} must be an integer, not {value!r}")
    return value


def boolean(attrs: Attrs, name: str) -> bool:
    """A bool attribute."""
    value = attrs[name]
    if type(value) is not bool:
        raise TypeRuleError(f"attribute {name} must be true or false, not {value!r}")
    return value


def axis(op: str, attrs: Attrs, rank: int, name: str = "dim") -> int:
    """An attribute that names an axis of an operand of that rank."""
    value = integer(attrs, name)
    if not 0 <= value < max(rank, 1):
        raise TypeRuleError(f"Dimension out of range (expected to be in range of [0, {rank - 1}], but got {value}) ({op})")
    return value


def by_bodies(op: str) -> Infer:
    """Stands in for the type rule of an op whose results follow from its bodies."""

    def infer(types: Types, attrs: Attrs) -> TensorType:
        raise TypeRuleError(f"the results of {op} are those of its bodies")

    return infer


def fits(op: str, types: Types, body: Program) -> None:
    """Refuses a body that takes other inputs than the op hands it."""
    wanted = [value.type for value in body.inputs]
    if wanted != list(types):
        has, takes = (", ".join(map(str, each)) for each in (types, wanted))
        raise TypeRuleError(f"{op}: operands are ({has}) but its body takes ({takes})")


def elementwise(op: str, kinds: str, what: str, result: str | None = None) -> Infer:
    """Broadcast operands of one dtype; the result has it too, or `result`."""

    def infer(types: Types, attrs: Attrs) -> TensorType:
        dtype = same_dtype(op, types)
        require(op, types, kinds, what)
        return tensor_type(result or dtype, broadcast(op, types))

    return infer
