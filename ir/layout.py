"""Where the elements of a view lie: strides, counted in elements, worked out without an array at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from tpc.ir.program import Op

Strides: TypeAlias = tuple[int, ...]


def contiguous(shape: tuple[int, ...]) -> Strides:
    """Strides of a row-major array of its own."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether the elements lie row-major without gaps; the stride of an axis of one element says nothing."""
    if 0 in shape:
        return True
    return all(size == 1 or have == want for size, have, want in zip(shape, strides, contiguous(shape), strict=True))


def view_strides(op: Op, strides: Strides) -> Strides | None:
    """Strides of the result of a view op over an operand with `strides`; None where only a copy can have that shape."""
    rule = _RULES.get(op.name)
    return None if rule is None else rule(op, strides)


def _permute(op: Op, strides: Strides) -> Strides:
    return tuple(strides[d] for d in cast("tuple[int, ...]", op.attrs["dims"]))


def _broadcast_to(op: Op, strides: Strides) -> Strides:
    shape = op.operands[0].type.shape
    return (0,) * (op.result.type.rank - len(shape)) + tuple(
        0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)
    )


def _slice(op: Op, strides: Strides) -> Strides:
    return tuple(s * step for s, step in zip(strides, cast("tuple[int, ...]", op.attrs["steps"]), strict=True))


def _diagonal(op: Op, strides: Strides) -> Strides:
    first, second = cast(int, op.attrs["dim1"]), cast(int, op.attrs["dim2"])
    kept = tuple(s for axis, s in enumerate(strides) if axis not in (first, second))
    return (*kept, strides[first] + strides[second])


def _reshape(op: Op, strides: Strides) -> Strides | None:
    return reshaped(op.operands[0].type.shape, strides, op.result.type.shape)


def reshaped(shape: tuple[int, ...], strides: Strides, new: tuple[int, ...]) -> Strides | None:
    """Strides of a reshape without copying, None if there are none: NumPy's own rule.

    Axes are matched in the smallest runs of equal product; a run of old axes must be evenly strided to be cut anew.
    """
    if 0 in shape:
        return contiguous(new)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    result = [0] * len(new)
    i = j = 0
    while i < len(old) and j < len(new):
        first, start = i, j
        have, want = old[i][0], new[j]
        while have != want:
            if have < want:
                i += 1
                have *= old[i][0]
            else:
                j += 1
                want *= new[j]
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first, i)):
            return None
        step = old[i][1]
        for axis in range(j, start - 1, -1):
            result[axis] = step
            step *= new[axis]
        i, j = i + 1, j + 1
    step = result[j - 1] if j else 1
    result[j:] = [step] * (len(new) - j)
    return tuple(result)


_RULES: dict[str, Callable[[Op, Strides], Strides | None]] = {
    "permute": _permute,
    "broadcast_to": _broadcast_to,
    "slice": _slice,
    "diagonal": _diagonal,
    "reshape": _reshape,
}


def view_offset(op: Op, strides: Strides) -> int:
    """Where the first element of a view op's result lies, in elements from the first of its operand with `strides`."""
    if op.name == "slice":
        return sum(start * s for start, s in zip(cast("tuple[int, ...]", op.attrs["starts"]), strides, strict=True))
    if op.name == "diagonal":
        offset = cast(int, op.attrs["offset"])
        return offset * strides[cast(int, op.attrs["dim2"])] if offset > 0 else -offset * strides[cast(int, op.attrs["dim1"])]
    return 0
