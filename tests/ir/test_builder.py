"""Builder and Rewriter: what they build, share, refuse, and call equal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.ir.programs import programs
from tpc.ir.builder import Builder, Rewriter
from tpc.ir.compare import same_program
from tpc.ir.errors import TypeRuleError, UnknownOpError, VerifyError
from tpc.ir.opdef import lookup
from tpc.ir.parser import parse_program
from tpc.ir.printer import print_program
from tpc.ir.program import Loc, Op
from tpc.ir.types import tensor_type
from tpc.ir.verify import verify

X = tensor_type("f32", (2, 3))


def test_emit_gives_one_value_or_a_tuple():
    b = Builder("f")
    x = b.input(X, "x")
    y = b.emit("exp", x, scopes=("S#0",), loc=Loc("a.py", 3))
    values, indices = b.emit("sort", y, descending=False, dim=1, stable=True)
    assert b.emit1("exp", x).type == X
    assert isinstance(b.emit_op("exp", x), Op)
    assert print_program(b.finish([values, indices], [0, None])) == (
        "program @f (%x: f32[2,3]) -> (f32[2,3] into %x, i64[2,3]) {\n"
        '  %0 = exp %x : f32[2,3]    @S#0    loc("a.py":3)\n'
        "  %1, %2 = sort %0 {dim=1, descending=false, stable=true} : f32[2,3], i64[2,3]\n"
        "  return %1, %2\n}"
    )


def test_emit_refuses_what_the_definition_does_not_have():
    b = Builder("f")
    x = b.input(X)
    with pytest.raises(UnknownOpError, match="did you mean 'sigmoid'"):
        b.emit("sigmoyd", x)
    with pytest.raises(TypeRuleError, match=r"mul takes 2 operands \(a, b\), not 1"):
        b.emit("mul", x)
    with pytest.raises(TypeRuleError, match=r"index takes at least 1 operand \(x, \*indices\), not 0"):
        b.emit("index", axes=(0,))
    with pytest.raises(TypeRuleError, match="exp has no attribute 'dim'; it has none"):
        b.emit("exp", x, dim=0)
    with pytest.raises(TypeRuleError, match="sum lacks the attributes 'dims', 'keepdim'"):
        b.emit("sum", x)
    with pytest.raises(TypeRuleError, match="shape must be a list of integers, not 'abc'"):
        b.emit("reshape", x, shape="abc")
    with pytest.raises(TypeRuleError, match="complex"):
        b.constant(1j, "f32")


def test_constants_have_the_class_of_their_dtype():
    b = Builder("f")
    attrs = [b.constant(2, dtype).op.attrs["value"] for dtype in ("f32", "i64", "bool", "c64")]
    assert attrs == [2.0, 2, True, 2 + 0j]
    assert [type(value) for value in attrs] == [float, int, bool, complex]


def test_at_gives_location_and_scopes():
    b = Builder("f")
    x = b.input(X)
    source = b.emit_op("exp", x, scopes=("S#0",), loc=Loc("a.py", 3))
    with b.at(source):
        inside = b.emit_op("exp", x)
        other = b.emit_op("exp", x, scopes=(), loc=Loc("b.py", 1))
    outside = b.emit_op("exp", x)
    assert (inside.scopes, inside.loc) == (source.scopes, source.loc)
    assert (other.scopes, other.loc) == ((), Loc("b.py", 1))
    assert (outside.scopes, outside.loc) == ((), None)


def test_inline_expands_a_body():
    text = """program @f (%x: f32[2,3]) -> (f32[2,3]) {
      %0 = fusion %x, %x : f32[2,3]
        body (%a: f32[2,3], %b: f32[2,3]) { %0 = mul %a, %b : f32[2,3] @S#0 %1 = exp %0 : f32[2,3] return %1 }
      return %0
    }"""
    program = parse_program(text)
    rewriter = Rewriter(program)
    for op in program.ops:
        assert op.body is not None
        (result,) = rewriter.inline(op.body, *rewriter.operands(op))
        rewriter.forward(op.result, result)
    assert print_program(rewriter.finish()) == (
        "program @f (%x: f32[2,3]) -> (f32[2,3]) {\n  %0 = mul %x, %x : f32[2,3]    @S#0\n  %1 = exp %0 : f32[2,3]\n  return %1\n}"
    )
    with pytest.raises(TypeRuleError, match="other types"):
        rewriter.inline(program)


@given(programs())
@settings(max_examples=40, deadline=None)
def test_a_rewrite_that_changes_nothing_gives_the_same_program(case):
    program, _ = case
    rewriter = Rewriter(program)
    for op in program.ops:
        assert rewriter.copy(op) is op
    again = rewriter.finish()
    assert again.ops == program.ops and again.outputs == program.outputs
    assert same_program(program, again, origin=True) is None


def chain() -> tuple[Builder, Op, Op]:
    b = Builder("f")
    first = b.emit_op("exp", b.input(X, "x"))
    return b, first, b.emit_op("sum", first.result, dims=(1,), keepdim=False, scopes=("S#0",))


def test_copies_with_other_operands_are_typed_anew():
    b, first, second = chain()
    program = b.finish(second.results)
    rewriter = Rewriter(program)
    rewriter.copy(first)
    wide = rewriter.emit1("broadcast_to", rewriter.get(first.result), shape=(4, 2, 3))
    copied = rewriter.copy(second, [wide])
    assert copied.types == (tensor_type("f32", (4, 3)),)
    assert copied.scopes == ("S#0",)
    again = rewriter.copy(first)
    assert again is not first  # the second copy is another op
    assert rewriter.get(first.result) is again.result


def test_rewriter_refuses_what_would_break_the_program():
    b, first, second = chain()
    rewriter = Rewriter(b.finish(second.results))
    with pytest.raises(VerifyError, match="read before it was copied"):
        rewriter.copy(second)
    with pytest.raises(VerifyError, match="types differ"):
        rewriter.forward(first.result, rewriter.emit1("sum", rewriter.program.inputs[0], dims=(0,), keepdim=False))
    rewriter.copy(first)
    rewriter.copy(second)
    with pytest.raises(ValueError, match="had 1 outputs and gets 2"):
        rewriter.finish([rewriter.get(first.result), rewriter.get(second.result)])
    verify(rewriter.finish([rewriter.get(first.result)]))


def test_writes_survive():
    b = Builder("f")
    x = b.input(X, "x")
    program = b.finish([b.emit("exp", x)], [0])
    rewriter = Rewriter(program)
    rewriter.copy(program.ops[0])
    assert rewriter.finish().writes == (0,)


def keys(*ops: Op) -> list:
    b = Builder("f")
    program = b.finish([])
    rewriter = Rewriter(program)
    for op in ops:
        for value in op.operands:
            rewriter.forward(value, value)
    return [rewriter.key(op) for op in ops]


def test_keys_tell_numbers_apart():
    b = Builder("f")
    values = [0.0, -0.0, 0, False, 1.0, 1, True, float("nan"), 0j, -0j, complex(0, float("nan"))]
    x = b.input(X)
    ops = [Op(lookup("pad"), [x], {"low": (0, 0), "high": (0, 0), "value": value}, [X]) for value in values]
    assert len(set(keys(*ops))) == len(values)


def test_keys_of_equal_ops_are_equal():
    b = Builder("f")
    x, y = b.input(X), b.input(X)
    nan = [b.emit_op("constant", value=float("nan"), dtype="f32") for _ in range(2)]
    pairs = [nan, [b.emit_op("mul", x, y, loc=Loc("a.py", 1)), b.emit_op("mul", y, x, scopes=("S#0",))]]
    for first, second in pairs:
        a, b_ = keys(first, second)
        assert a == b_ and hash(a) == hash(b_)
    different = [b.emit_op("sub", x, y), b.emit_op("sub", y, x), b.emit_op("mul", x, x), b.emit_op("add", x, x)]
    different += [b.emit_op("sum", x, dims=(0,), keepdim=k) for k in (True, False)] + [b.emit_op("sum", x, dims=(0, 1), keepdim=True)]
    assert len(set(keys(*different))) == len(different)
