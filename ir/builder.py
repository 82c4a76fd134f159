"""How programs are made: `Builder` from nothing, `Rewriter` from another program."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import tpc.ir.ops  # noqa: F401  (fills the table of operators)
from tpc.ir.attrs import attr_key
from tpc.ir.errors import TypeRuleError, VerifyError
from tpc.ir.opdef import AttrValue, OpDef, lookup
from tpc.ir.program import Loc, Op, Program, Value
from tpc.ir.signature import result_types
from tpc.ir.types import TensorType, category


class Builder:
    """Collects the inputs and ops of a new program; types follow from the type rules.

    >>> b = Builder("f")
    >>> x = b.input(TensorType("f32", (3,)), "x")
    >>> program = b.finish([b.emit("mul", x, b.constant(2.0, "f32"))])
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._inputs: list[Value] = []
        self._ops: list[Op] = []
        self._scopes: tuple[str, ...] = ()
        self._loc: Loc | None = None

    def input(self, type: TensorType, name: str | None = None) -> Value:
        """A further input of the program."""
        value = Value(None, len(self._inputs), type, name)
        self._inputs.append(value)
        return value

    def emit(
        self,
        defn: OpDef | str,
        /,
        *operands: Value,
        scopes: tuple[str, ...] | None = None,
        loc: Loc | None = None,
        bodies: tuple[Program, ...] = (),
        **attrs: AttrValue,
    ) -> Value | tuple[Value, ...]:
        """Appends an op; its result, or the tuple of its results if it has several."""
        results = self.emit_op(defn, *operands, scopes=scopes, loc=loc, bodies=bodies, **attrs).results
        return results[0] if len(results) == 1 else results

    def emit_op(
        self,
        defn: OpDef | str,
        /,
        *operands: Value,
        scopes: tuple[str, ...] | None = None,
        loc: Loc | None = None,
        bodies: tuple[Program, ...] = (),
        **attrs: AttrValue,
    ) -> Op:
        """Appends an op. Without `scopes` and `loc` it takes those of the enclosing `at`, else none."""
        if isinstance(defn, str):
            defn = lookup(defn)
        types = result_types(defn, [v.type for v in operands], attrs, bodies)
        ordered = {name: attrs[name] for name in defn.attrs}
        op = Op(defn, operands, ordered, types, self._scopes if scopes is None else scopes, loc or self._loc, bodies)
        self._ops.append(op)
        return op

    def emit1(
        self,
        defn: OpDef | str,
        /,
        *operands: Value,
        scopes: tuple[str, ...] | None = None,
        loc: Loc | None = None,
        bodies: tuple[Program, ...] = (),
        **attrs: AttrValue,
    ) -> Value:
        """`emit` for ops that have one result, typed so."""
        return self.emit_op(defn, *operands, scopes=scopes, loc=loc, bodies=bodies, **attrs).result

    def constant(self, value: complex, dtype: str) -> Value:
        """A 0-d constant; the number is stored as the Python class of the element type."""
        kind = (bool, int, float, complex)[category(dtype)]
        if isinstance(value, complex) and kind is not complex:
            raise TypeRuleError(f"constant {value!r} is complex, {dtype} is not")
        return self.emit1("constant", value=kind(value), dtype=dtype)

    def append(self, op: Op) -> Op:
        """Takes over an op that was built elsewhere, as it is; its operands must belong here."""
        self._ops.append(op)
        return op

    def inline(self, program: Program, *operands: Value) -> tuple[Value, ...]:
        """Appends copies of the ops of `program`, reading `operands` for its inputs; its outputs, in order."""
        if [v.type for v in operands] != [v.type for v in program.inputs]:
            raise TypeRuleError(f"@{program.name} is given operands of other types than its inputs have")
        values = dict(zip(program.inputs, operands, strict=True))
        for op in program.ops:
            copy = Op(op.defn, [values[v] for v in op.operands], op.attrs, op.types, op.scopes, op.loc, op.bodies)
            values.update(zip(op.results, self.append(copy).results, strict=True))
        return tuple(values[v] for v in program.outputs)

    @contextmanager
    def at(self, op: Op) -> Iterator[None]:
        """Ops emitted inside take the location and the scopes of `op`."""
        before = self._scopes, self._loc
        self._scopes, self._loc = op.scopes, op.loc
        try:
            yield
        finally:
            self._scopes, self._loc = before

    def finish(self, outputs: Sequence[Value], writes: Sequence[int | None] | None = None) -> Program:
        """The program; ops that `outputs` do not need are left out."""
        return Program(self.name, self._inputs, outputs, self._ops, writes)


class Rewriter(Builder):
    """Builds the successor of `program`, whose inputs it shares.

    A pass walks `program.ops` once and either copies an op or says what its results became:

    >>> rewriter = Rewriter(program)
    >>> for op in program.ops:
    ...     if is_redundant(op):
    ...         rewriter.forward(op.result, rewriter.get(op.operands[0]))
    ...     else:
    ...         rewriter.copy(op)
    >>> program = rewriter.finish()
    """

    def __init__(self, program: Program, name: str | None = None) -> None:
        super().__init__(name or program.name)
        self.program = program
        self._inputs = list(program.inputs)
        self._values: dict[Value, Value] = {v: v for v in program.inputs}
        self._kept: set[Op] = set()

    def get(self, old: Value) -> Value:
        """What became of a value of the old program."""
        try:
            return self._values[old]
        except KeyError:
            raise VerifyError(f"@{self.program.name}: {old!r} is read before it was copied or forwarded") from None

    def operands(self, op: Op) -> list[Value]:
        """What became of the operands of an old op."""
        return [self.get(v) for v in op.operands]

    def copy(self, op: Op, operands: Sequence[Value] | None = None) -> Op:
        """Appends the old op with new operands (default: what became of its own) and forwards its results.

        An op whose operands have not changed is shared by both programs instead of built anew.
        """
        new = self.operands(op) if operands is None else operands
        if op not in self._kept and len(new) == len(op.operands) and all(a is b for a, b in zip(new, op.operands, strict=True)):
            copied = op
        else:
            types = [v.type for v in new]
            same = types == [v.type for v in op.operands]
            copied = Op(
                op.defn,
                new,
                op.attrs,
                op.types if same else result_types(op.defn, types, op.attrs, op.bodies),
                op.scopes,
                op.loc,
                op.bodies,
            )
        self._kept.add(copied)
        self._ops.append(copied)
        self._values.update(zip(op.results, copied.results, strict=True))
        return copied

    def forward(self, old: Value, new: Value) -> None:
        """Readers of the old value read the new one; their types must be equal."""
        if old.type != new.type:
            raise VerifyError(f"@{self.program.name}: {old!r} cannot be replaced by {new!r}: their types differ")
        self._values[old] = new

    def key(self, op: Op) -> Hashable:
        """Equal for two old ops that compute the same: same operator, attributes, body and new operands."""
        operands = [id(self.get(v)) for v in op.operands]
        if op.defn.commutative:
            operands.sort()
        return (op.defn.name, *operands, *[attr_key(op.attrs[name]) for name in op.defn.attrs], op.bodies)

    def finish(self, outputs: Sequence[Value] | None = None, writes: Sequence[int | None] | None = None) -> Program:
        """The new program. `outputs` are new values; without them, what became of the old outputs."""
        if outputs is None:
            outputs = [self.get(v) for v in self.program.outputs]
        if writes is None:
            writes = self.program.writes
            if len(writes) != len(outputs):
                raise ValueError(f"@{self.program.name} had {len(writes)} outputs and gets {len(outputs)}: say which are `writes`")
        return super().finish(outputs, writes)
