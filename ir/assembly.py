"""Puts a program together from what a reader finds (text, JSON), checking every rule of the IR as it goes."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import tpc.ir.ops  # noqa: F401  (fills the table of operators)
from tpc.ir.attrs import why_not_attr
from tpc.ir.errors import TypeRuleError, UnknownOpError
from tpc.ir.opdef import AttrValue, OpDef, lookup
from tpc.ir.program import Loc, Op, Program, Value
from tpc.ir.signature import counted, listed, result_types, why_not_attr_names, why_not_operand_count
from tpc.ir.types import TensorType

Part: TypeAlias = tuple[str, int | str]
"""Which part of what was read is wrong: ``("operand", 1)``, ``("attr", "dim")``, ``("op", 0)``; readers know where it stands."""


class Fault(Exception):
    """Something that was read breaks a rule."""

    def __init__(self, part: Part, message: str) -> None:
        super().__init__(message)
        self.part = part


class Assembly:
    """One program, or the body of one op, while it is read. Values are known by the reader's keys."""

    def __init__(self, name: str, prefix: str = "%") -> None:
        self.name = name
        self.prefix = prefix
        self.inputs: list[Value] = []
        self.ops: list[Op] = []
        self.values: dict[Hashable, Value] = {}

    def input(self, key: Hashable, type: TensorType, name: str | None) -> None:
        self._define(key, Value(None, len(self.inputs), type, name), ("input", len(self.inputs)))
        self.inputs.append(self.values[key])

    def op(
        self,
        name: str,
        results: Sequence[Hashable],
        operands: Sequence[Hashable],
        attrs: Mapping[str, AttrValue],
        types: Sequence[TensorType],
        scopes: tuple[str, ...] = (),
        loc: Loc | None = None,
        bodies: tuple[Program, ...] = (),
    ) -> None:
        """Appends an op; `types` are those that stand in the text, and must be what the op's rule gives."""
        defn = _definition(name)
        values = [self._read(key, ("operand", i)) for i, key in enumerate(operands)]
        _check_signature(defn, len(values), attrs)
        try:
            inferred = result_types(defn, [v.type for v in values], attrs, bodies)
        except TypeRuleError as error:
            raise Fault(("op", 0), str(error)) from None
        if len(results) != len(inferred):
            raise Fault(("result", 0), f"{name} has {counted(len(inferred), 'result')}, not {len(results)}")
        if inferred != tuple(types):
            raise Fault(("type", 0), f"{name} gives {listed(inferred)}, not {listed(types)}")
        op = Op(defn, values, {attr: attrs[attr] for attr in defn.attrs}, inferred, scopes, loc, bodies)
        for i, key in enumerate(results):
            self._define(key, op.results[i], ("result", i))
        self.ops.append(op)

    def finish(self, outputs: Sequence[Hashable], types: Sequence[TensorType] | None, into: Sequence[Hashable | None] | None) -> Program:
        """The program. `types` are those of the signature if there is one; `into` names the input that each output is written to."""
        values = [self._read(key, ("output", i)) for i, key in enumerate(outputs)]
        if types is not None and len(types) != len(values):
            raise Fault(("output", 0), f"@{self.name} is to return {counted(len(types), 'value')}, not {len(values)}")
        for i, value in enumerate(values):
            if types is not None and value.type != types[i]:
                raise Fault(("output", i), f"output {i} of @{self.name} is {value.type}, its signature says {types[i]}")
        writes = [self._target(key, i, values[i]) for i, key in enumerate(into or [None] * len(values))]
        twice = next((i for i, target in enumerate(writes) if target is not None and target in writes[:i]), None)
        if twice is not None:
            raise Fault(("into", twice), f"two outputs are written into {self._show(into[twice] if into else None)}")
        return Program(self.name, self.inputs, values, self.ops, writes)

    def _target(self, key: Hashable | None, output: int, value: Value) -> int | None:
        if key is None:
            return None
        target = self._read(key, ("into", output))
        if target.op is not None:
            raise Fault(("into", output), f"{self._show(key)} is no input: only inputs can be written into")
        if target.type != value.type:
            raise Fault(
                ("into", output), f"output {output} is {value.type} and cannot be written into {self._show(key)}, which is {target.type}"
            )
        return target.index

    def _define(self, key: Hashable, value: Value, part: Part) -> None:
        if key in self.values:
            raise Fault(part, f"{self._show(key)} is defined twice")
        self.values[key] = value

    def _read(self, key: Hashable, part: Part) -> Value:
        try:
            return self.values[key]
        except KeyError:
            raise Fault(part, f"{self._show(key)} is not defined{self._hint(key)}") from None

    def _hint(self, key: Hashable) -> str:
        wanted = str(key)
        if wanted.isdecimal() or len(wanted) > 50 or len(self.values) > 1000:
            return ""
        near = difflib.get_close_matches(wanted, [str(name) for name in self.values], 1)
        return f"; did you mean {self._show(near[0])}?" if near else ""

    def _show(self, key: Hashable) -> str:
        return f"{self.prefix}{key}"


def _definition(name: str) -> OpDef:
    try:
        return lookup(name)
    except UnknownOpError as error:
        raise Fault(("op", 0), str(error)) from None


def _check_signature(defn: OpDef, operands: int, attrs: Mapping[str, AttrValue]) -> None:
    """Names the very attribute that is wrong; `result_types` would only say that one is."""
    if (why := why_not_operand_count(defn, operands)) is not None:
        raise Fault(("op", 0), why)
    if attrs.keys() != set(defn.attrs):
        unknown = next((attr for attr in attrs if attr not in defn.attrs), None)
        raise Fault(("op", 0) if unknown is None else ("attr", unknown), why_not_attr_names(defn, attrs) or "")
    for attr, value in attrs.items():
        if (why := why_not_attr(value)) is not None:
            raise Fault(("attr", attr), why)
