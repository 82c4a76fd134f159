"""The graph that grows while user code runs: recorded values, and their capture as an immutable program.

A `Recorded` value points at its operands and never the other way round, so a graph that nobody holds any more
is freed at once, without the garbage collector. It *settles* when its array is known, and then forgets
how it was made.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from types import CodeType
from typing import Any

import numpy as np

from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops.shape import constant as constant_op
from tpc.ir.ops.shape import literal as literal_op
from tpc.ir.program import Loc, Op, Program, Value
from tpc.ir.types import NUMPY_DTYPES, TensorType, is_complex, is_floating, tensor_type, type_of
from tpc.state import STATE

NO_ATTRS: Mapping[str, AttrValue] = {}
_order = count()


class Scope:
    """A Function application, or the backward node that belongs to it: both have the number `call`."""

    __slots__ = ("call", "name", "parent")

    def __init__(self, name: str, call: int, parent: Scope | None) -> None:
        self.name = name
        self.call = call
        self.parent = parent


class Recorded:
    """A value of the growing graph: the result of `defn` on `operands`, or a leaf with `data`, or a placeholder.

    For an op with several results, `type` is a tuple and each result is a further `Recorded` with `defn` None,
    `operands` the call alone and its `index`. The programs that an op runs stand in `attrs` as "bodies".
    """

    __slots__ = ("attrs", "data", "defn", "index", "loc", "operands", "order", "scope", "type")

    def __init__(
        self,
        defn: OpDef | None,
        operands: tuple[Recorded, ...],
        attrs: Mapping[str, AttrValue],
        type: Any,
        index: int = 0,
        data: np.ndarray | None = None,
        loc: Any = None,
        scope: Scope | None = None,
    ) -> None:
        self.defn = defn
        self.operands = operands
        self.attrs = attrs
        self.type = type
        self.index = index
        self.data = data
        self.loc = loc
        self.scope = scope
        self.order = next(_order)

    def settle(self, data: np.ndarray) -> None:
        """Becomes a leaf that holds `data`."""
        self.data = data
        self.defn, self.operands, self.attrs, self.scope, self.loc = None, (), NO_ATTRS, None, None

    @property
    def is_constant(self) -> bool:
        """A Python scalar: `attrs["value"]`."""
        return self.defn is constant_op


def leaf(data: np.ndarray) -> Recorded:
    """A value that is known already; `data` must not be written afterwards."""
    return Recorded(None, (), NO_ATTRS, type_of(data), 0, data)


def placeholder(type: TensorType, data: np.ndarray | None = None) -> Recorded:
    """An input of a trace, with the array it has during the trace where there is one."""
    return Recorded(None, (), NO_ATTRS, type, 0, data)


def emit(defn: OpDef, operands: tuple[Recorded, ...], attrs: Mapping[str, AttrValue], type: Any) -> Recorded:
    """Records one op whose type is known."""
    return Recorded(defn, operands, attrs, type, 0, None, STATE.loc or user_frame(), STATE.scope)


_constants: dict[tuple[Any, ...], Recorded] = {}


def constant(value: Any, dtype: str) -> Recorded:
    """A 0-d constant of that dtype; the value is converted (1 becomes 1.0 in f32), and equal constants are one object."""
    key = (value, dtype, value.__class__)
    found = _constants.get(key)
    if found is not None and value != 0:
        return found
    attrs = {"value": _literal(value, dtype), "dtype": dtype}
    made = Recorded(constant_op, (), attrs, tensor_type(dtype, ()))
    if len(_constants) < 10_000:
        _constants[key] = made
    return made


def _literal(value: Any, dtype: str) -> bool | int | float | complex:
    if dtype == "bool":
        return bool(value)
    if is_floating(dtype):
        return float(value)
    if is_complex(dtype):
        return complex(value)
    # Integers that do not fit wrap around, as PyTorch's operand scalars do.
    return int(np.array(int(value) & (1 << 64) - 1, np.uint64).astype(NUMPY_DTYPES[dtype]))


# --- where a recorded op comes from -------------------------------------------------------------

_HOUSE = os.path.dirname(__file__)
_ROOMS = tuple(
    os.path.join(folder, "") for folder in (_HOUSE, *[os.path.realpath(os.path.join(_HOUSE, r)) for r in ("ir", "passes", "runtime")])
)
_ours: dict[CodeType, bool] = {}


def is_ours(path: str) -> bool:
    """Whether a file is tpc's own."""
    return path.startswith(_ROOMS)


def _is_ours(code: CodeType) -> bool:
    ours = _ours[code] = is_ours(code.co_filename)
    return ours


def user_frame() -> tuple[CodeType, int] | None:
    """Code object and instruction of the innermost frame outside tpc: cheap, resolved to a line by `resolve_loc`."""
    frame = sys._getframe(2)
    ours = _ours
    while frame is not None:
        code = frame.f_code
        known = ours.get(code)
        if known is None:
            known = _is_ours(code)
        if not known:
            return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None


def resolve_loc(where: Any) -> Loc | None:
    """The `Loc` of what `user_frame` gave (a `Loc` is its own)."""
    if where is None or isinstance(where, Loc):
        return where
    code, instruction = where
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= instruction < end and number is not None:
            line = number
            break
    return Loc(_shown(code.co_filename), line, code.co_qualname)


@lru_cache(maxsize=1024)
def _shown(path: str) -> str:
    """The path as people see it: relative where it lies below the working directory."""
    below = os.path.relpath(path) if os.path.isabs(path) else path
    return path if below.startswith("..") else below


MAX_LITERAL = 4096
"""Bytes of an array that stands in a program itself; larger ones are inputs."""


def is_fixed(value: Recorded) -> bool:
    """Whether a value is an array that user code brought in, not the result of an op."""
    return value.defn is None and not value.operands and value.data is not None


def _literal_op(value: Recorded) -> Op:
    if value.data is None:
        raise RuntimeError("a value from another trace, or from a trace that has ended, was used here")
    data = np.ascontiguousarray(value.data)
    text = base64.b64encode(data.astype(data.dtype.newbyteorder("<")).tobytes()).decode()
    return Op(literal_op, (), {"data": text, "dtype": value.type.dtype, "shape": value.type.shape}, (value.type,))


# --- capture ------------------------------------------------------------------------------------


def collect(outputs: Iterable[Recorded], stop: Iterable[Recorded] = (), through_data: bool = False) -> list[Recorded]:
    """Everything that the outputs are made from, in order of recording; does not look behind `stop`, nor
    behind values whose array is known unless `through_data`."""
    seen = {id(v): v for v in stop}
    found: list[Recorded] = []
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        found.append(value)
        if value.data is None or through_data:
            stack.extend(value.operands)
    found.sort(key=lambda v: v.order)
    return found


class ScopeNames:
    """Numbers applications in the order in which they appear: ``Swish#0``, ``SwishBackward#0``, ``Outer#0/Inner#1``."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, int], int] = {}
        self.counts: dict[str, int] = {}
        self.paths: dict[int, tuple[Scope, str]] = {}

    def path(self, scope: Scope | None) -> tuple[str, ...]:
        return () if scope is None else (self._path(scope),)

    def _path(self, scope: Scope) -> str:
        known = self.paths.get(id(scope))
        if known is not None:
            return known[1]
        family = scope.name.split("Backward")[0]
        key = (family, scope.call)
        if key not in self.numbers:
            self.numbers[key] = self.counts.get(family, 0)
            self.counts[family] = self.numbers[key] + 1
        path = f"{scope.name}#{self.numbers[key]}"
        if scope.parent is not None:
            path = self._path(scope.parent) + "/" + path
        self.paths[id(scope)] = (scope, path)
        return path


def capture(
    name: str,
    inputs: Sequence[Recorded],
    outputs: Sequence[Recorded],
    input_names: Sequence[str | None] | None = None,
    writes: Sequence[int | None] | None = None,
    through_data: bool = True,
) -> Program:
    """The program that computes `outputs` from `inputs`. Every leaf that is reached must be an input or a constant."""
    names = ScopeNames()
    program_inputs = [Value(None, i, v.type, input_names[i] if input_names else None) for i, v in enumerate(inputs)]
    env: dict[int, Value] = {id(v): p for v, p in zip(inputs, program_inputs, strict=True)}
    calls: dict[int, Op] = {}
    ops: list[Op] = []
    for value in collect(outputs, inputs, through_data):
        if value.defn is None and not value.operands:
            ops.append(_literal_op(value))
            env[id(value)] = ops[-1].results[0]
            continue
        if value.defn is None:
            env[id(value)] = calls[id(value.operands[0])].results[value.index]
            continue
        types = value.type if type(value.type) is tuple else (value.type,)
        attrs: Any = value.attrs
        bodies: tuple[Program, ...] = ()
        if value.defn.bodies:
            attrs = dict(attrs)
            bodies = attrs.pop("bodies")
        operands = [env[id(v)] for v in value.operands]
        op = Op(value.defn, operands, attrs, types, names.path(value.scope), resolve_loc(value.loc), bodies)
        ops.append(op)
        if type(value.type) is tuple:
            calls[id(value)] = op
        else:
            env[id(value)] = op.results[0]
    return Program(name, program_inputs, [env[id(v)] for v in outputs], ops, writes)
