"""Faults in values that show when an op is recorded: what its kernel would raise later, raised at the user's line.

An index or a divisor is often known by then (a literal, a batch of labels). Where it is not, the error comes when somebody asks for a
value that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops import elementwise, indexing
from tpc.recording import Recorded, is_fixed
from tpc.runtime.kernels.indexing import checked_index
from tpc.state import STATE

Check = Callable[[Sequence[Recorded], Mapping[str, Any]], None]


def check_known(defn: OpDef, values: Sequence[Recorded], attrs: Mapping[str, AttrValue]) -> None:
    """Raises what the kernel of `defn` would raise for the operands that are known."""
    check = CHECKS.get(defn)
    if check is not None:
        check(values, attrs)


def _known(value: Recorded) -> np.ndarray | None:
    """The array of an operand. What the arguments of a trace happen to hold now does not count: other calls follow."""
    trace = STATE.trace
    if trace is not None and (not is_fixed(value) or any(value is p for p in trace.placeholders.values())):
        return None
    return value.data


def _indices(first: int) -> Check:
    def check(values: Sequence[Recorded], attrs: Mapping[str, Any]) -> None:
        shape = values[0].type.shape
        for axis, value in zip(attrs["axes"], values[first:], strict=True):
            if (index := _known(value)) is not None:
                checked_index(index, shape[axis], axis)

    return check


def _along(values: Sequence[Recorded], attrs: Mapping[str, Any]) -> None:
    dim, shape = attrs["dim"], values[0].type.shape
    if (index := _known(values[1])) is not None:
        checked_index(index, shape[dim] if shape else 1, dim, wrap=False)


def _divisor(values: Sequence[Recorded], attrs: Mapping[str, Any]) -> None:
    divisor = values[1]
    if divisor.type.dtype[0] == "f":
        return
    known: Any = divisor.attrs["value"] if divisor.is_constant else _known(divisor)
    if known is not None and not np.all(known):
        raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")


CHECKS: dict[OpDef, Check] = {
    indexing.index: _indices(1),
    indexing.index_put: _indices(2),
    indexing.gather: _along,
    indexing.scatter: _along,
    indexing.scatter_reduce: _along,
    indexing.index_select: _along,
    indexing.index_add: _along,
    elementwise.floor_divide: _divisor,
    elementwise.remainder: _divisor,
    elementwise.fmod: _divisor,
}
