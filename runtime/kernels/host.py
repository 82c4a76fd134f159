"""Host calls: Python functions by name, called on arrays of their own and held to the types that they promised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tpc.ir.ops.host import HostFunction
from tpc.ir.program import Op
from tpc.ir.types import TensorType, category, dtype_name, tensor_type
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel

KNOWN: WeakValueDictionary[str, HostFunction] = WeakValueDictionary()
"""Host functions by name, as long as some program holds them."""
REGISTERED: dict[str, HostFunction] = {}
"""Those that were given a name for good."""


def function_of(name: str) -> Callable[..., Any]:
    """The Python function that a program calls `name`; `RuntimeError` where this process has none."""
    found = name if isinstance(name, HostFunction) else REGISTERED.get(name) or KNOWN.get(name)
    if found is None:
        raise RuntimeError(
            f"the program calls the host function {name!r}, which this process does not have: a program that was read from a file holds "
            f"names, never code. Register it first: tpc.register_host_function({name!r}, function)"
        )
    return found.function


@kernel("host_call")
def _(op: Op) -> Run:
    attrs: Any = op.attrs
    count, first, mapped, single = len(op.operands), int(attrs["ordered"]), attrs["mapped"], len(op.results) == 1
    types = op.types[: len(op.types) - first]
    promised = [tensor_type(t.dtype, t.shape[mapped:]) for t in types]

    def call(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        # The function may write into its arguments and keep them: they are nobody else's.
        got = function_of(attrs["function"])(*[np.array(a, order="C") for a in arrays])
        return checked(op, got, promised)

    def run(*arrays: np.ndarray, out: Any = None) -> Any:
        if len(arrays) > count:
            out = arrays[count]
        given = arrays[first:count]
        if mapped:
            results = [np.empty(t.shape, t.numpy_dtype) for t in types]
            for index in np.ndindex((given[0] if given else results[0]).shape[:mapped]):
                for result, part in zip(results, call([a[index] for a in given]), strict=True):
                    result[index] = part
        else:
            results = call(given)
        if first:
            results.append(np.array(arrays[0] + 1))
        if out is None:
            return results[0] if single else tuple(results)
        for target, result in zip((out,) if single else out, results, strict=True):
            copied(result, target)
        return out

    return run


def checked(op: Op, got: Any, promised: Sequence[TensorType]) -> list[np.ndarray]:
    """What the function gave as fresh arrays of the promised types: `TypeError` for another number or for no arrays, `RuntimeError` for
    other types."""
    parts = list(got) if isinstance(got, tuple | list) and not (len(promised) == 1 and isinstance(got, list)) else [got]
    if not promised and got is None:
        parts = []
    if len(parts) != len(promised):
        raise TypeError(f"{_named(op)} returned {_counted(len(parts))}, but {_counted(len(promised))} were expected ({_listed(promised)})")
    return [_fitting(op, part, type, i) for i, (part, type) in enumerate(zip(parts, promised, strict=True))]


def _fitting(op: Op, part: Any, expected: TensorType, number: int) -> np.ndarray:
    which = f"result {number} of {_named(op)}"
    if isinstance(part, bool | int | float | complex) and not isinstance(part, np.generic) and expected.shape == ():
        kind = "bool" if isinstance(part, bool) else "i64" if isinstance(part, int) else "f64" if isinstance(part, float) else "c128"
        if category(kind) <= category(expected.dtype):
            return np.array(part, expected.numpy_dtype)
    if not isinstance(part, np.ndarray | np.generic):
        raise TypeError(f"{which} is a {type(part).__name__}, but a NumPy array {expected} was expected")
    try:
        dtype = dtype_name(part.dtype)
    except TypeError:
        dtype = str(part.dtype)
    if (dtype, part.shape) != (expected.dtype, expected.shape):
        raise RuntimeError(
            f"{which} has shape {list(part.shape)} and dtype {dtype}, but shape {list(expected.shape)} and dtype {expected.dtype} were "
            "expected: say so in `out`, or convert it in the function"
        )
    return np.array(part, order="C")


def _named(op: Op) -> str:
    where = f" called at {op.loc}" if op.loc is not None else ""
    return f"the host function {op.attrs['function']}{where}"


def _counted(number: int) -> str:
    return f"{number} result{'' if number == 1 else 's'}"


def _listed(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"
