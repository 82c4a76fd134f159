"""Every rule of the verifier, broken once by a program made by hand."""

from __future__ import annotations

import pytest

import tpc.ir.ops  # noqa: F401
from tpc.ir.builder import Builder
from tpc.ir.errors import VerifyError
from tpc.ir.opdef import lookup
from tpc.ir.parser import parse, parse_program
from tpc.ir.program import Loc, Module, Op, Program, Value
from tpc.ir.types import TensorType, tensor_type
from tpc.ir.verify import verify, why_not_valid

X = tensor_type("f32", (2, 3))


def program(ops=None, outputs=None, inputs=None, writes=None) -> Program:
    """@f with whatever parts are given; else ``return %x``."""
    inputs = inputs if inputs is not None else [Value(None, 0, X, "x")]
    return Program("f", inputs, outputs if outputs is not None else inputs, ops or [], writes)


def one_op(name="exp", operands=None, attrs=None, types=(X,), **rest) -> Program:
    x = Value(None, 0, X, "x")
    op = Op(lookup(name), [x] if operands is None else operands, attrs or {}, types, **rest)
    return program([op], op.results, [x])


def test_valid_programs_pass():
    verify(program())
    verify(one_op())
    verify(Module([program(), Program("g", [], [], [])]))


def test_the_message_names_program_op_and_line():
    bad = one_op("exp", types=(tensor_type("f32", (7,)),), loc=Loc("model.py", 12, "forward"))
    with pytest.raises(VerifyError) as caught:
        verify(bad)
    assert str(caught.value) == "@f in `%0 = exp %x : f32[7]` at model.py:12: its type rule gives (f32[2,3]), its results are (f32[7])"


STRANGER = Value(None, 0, X, "stranger")


def shared_op() -> Program:
    x = Value(None, 0, X, "x")
    op = Op(lookup("exp"), [x], {}, [X])
    return program([op, op], op.results, [x])


def wrong_order() -> Program:
    x = Value(None, 0, X, "x")
    first = Op(lookup("exp"), [x], {}, [X])
    second = Op(lookup("exp"), [first.result], {}, [X])
    return program([second, first], second.results, [x])


def two_writes() -> Program:
    x = Value(None, 0, X, "x")
    op = Op(lookup("exp"), [x], {}, [X])
    return program([op], [op.result, op.result], [x], [0, 0])


def with_body(body: Program) -> Program:
    return one_op("fusion", types=[v.type for v in body.outputs], bodies=(body,))


def nested(depth: int) -> Program:
    body = program()
    for _ in range(depth):
        body = with_body(body)
    return body


REJECTED = {
    "input that is a result": (lambda: program(inputs=one_op().outputs), "input 0 is the result of exp"),
    "input twice": (lambda: program(inputs=[STRANGER, STRANGER]), "input 1 is there twice"),
    "input of no type": (lambda: program(inputs=[Value(None, 0, TensorType("f31", ()))]), "'f31' is no element type"),
    "input with a size that is no int": (lambda: program(inputs=[Value(None, 0, TensorType("f32", (2.0,)))]), "2.0 is no size of an axis"),
    "input too large": (lambda: program(inputs=[Value(None, 0, TensorType("f32", (2**41,)))]), "is too large"),
    "foreign operand": (lambda: one_op(operands=[STRANGER]), r"operand 0 \(<Value stranger f32\[2,3\] of input>\) is not defined"),
    "operand defined later": (wrong_order, "is not defined before it is read"),
    "op twice": (shared_op, "the op is there twice"),
    "too few operands": (lambda: one_op("mul"), r"mul takes 2 operands \(a, b\), not 1"),
    "missing attribute": (lambda: one_op("sum", attrs={"dims": (0,)}), "sum lacks the attribute 'keepdim'"),
    "unknown attribute": (lambda: one_op(attrs={"dim": 0}), "exp has no attribute 'dim'; it has none"),
    "attribute of no legal kind": (lambda: one_op("sum", attrs={"dims": [0], "keepdim": True}), r"attribute 'dims': \[0\] of class list"),
    "attribute too large": (lambda: one_op("sum", attrs={"dims": (2**64,), "keepdim": True}), "does not fit into 64 bits"),
    "wrong result type": (lambda: one_op(types=[tensor_type("f64", (2, 3))]), r"gives \(f32\[2,3\]\), its results are \(f64\[2,3\]\)"),
    "wrong number of results": (lambda: one_op(types=[X, X]), r"gives \(f32\[2,3\]\), its results are \(f32\[2,3\], f32\[2,3\]\)"),
    "type rule": (lambda: one_op("sum", attrs={"dims": (5,), "keepdim": True}), "sum"),
    "scopes": (lambda: one_op(scopes=["S#0"]), "scopes are a tuple of strings"),
    "location": (lambda: one_op(loc=("a.py", 1)), "the location is a Loc or None"),
    "output of nobody": (lambda: program(outputs=[STRANGER]), r"output 0 \(.*\) is not defined"),
    "writes of another length": (lambda: program(writes=[None, None]), "writes has 2 entries for 1 outputs"),
    "written into no input": (lambda: program(writes=[3]), "written into input 3, which does not exist"),
    "written into negative": (lambda: program(writes=[-1]), "written into input -1, which does not exist"),
    "written into another type": (
        lambda: Program("f", a := [Value(None, 0, X), Value(None, 1, tensor_type("f32", ()))], a[1:], [], [0]),
        r"output 0 is f32\[\] and cannot be written into input 0, which is f32\[2,3\]",
    ),
    "written twice": (two_writes, "two outputs are written into input 0"),
    "fusion without a body": (lambda: one_op("fusion"), "fusion lacks a body"),
    "body of another op": (lambda: one_op("exp", bodies=(program(),)), "exp has no body"),
    "body that is invalid": (lambda: with_body(program(outputs=[STRANGER])), "its body @f: output 0"),
    "body with an invalid op": (lambda: with_body(one_op("mul")), "its body @f, `%0 = mul %x : .*: mul takes 2 operands"),
    "body of other inputs": (
        lambda: with_body(program(inputs=[Value(None, 0, tensor_type("f32", ()))])),
        r"operands are \(f32\[2,3\]\) but its body takes \(f32\[\]\)",
    ),
    "body that writes": (lambda: with_body(program(writes=[0])), "a body writes into nothing"),
    "nested too deep": (lambda: nested(40), "nested more than"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_rejected(case):
    make, message = REJECTED[case]
    with pytest.raises(VerifyError, match=message) as caught:
        verify(make())
    assert str(caught.value).startswith("@f")
    assert why_not_valid(make()) is not None


def test_names_in_a_module():
    module = Module([program()])
    module.programs = {"g": module["f"]}
    with pytest.raises(VerifyError, match="@f is in its module under the name @g"):
        verify(module)


def test_what_parses_is_valid():
    text = "program @f (%x: f32[2,3]) -> (f32[2,3] into %x) {\n  %0 = exp %x : f32[2,3]\n  return %0\n}"
    verify(parse(text))
    verify(parse_program(text))


def test_builder_gives_valid_programs():
    b = Builder("f")
    x = b.input(X)
    verify(b.finish([b.emit("mul", x, b.constant(2, "f32"))], [0]))
