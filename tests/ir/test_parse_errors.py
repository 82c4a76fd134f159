"""What is wrong with a text is said at its place, and nothing but `ParseError` comes out."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.test_text_form import TEXT
from tpc.ir.errors import ParseError
from tpc.ir.parser import MAX_CHARACTERS, parse, parse_program

PLAIN = """\
tpc 1
program @f (%x: f32[2,3], %h: f32[2,3]) -> (f32[2,3] into %x) {
  %0 = sigmoid %h : f32[2,3]  @S#0  loc("a.py":1)
  %1 = sum %x {dims=[0,1], keepdim=true} : f32[1,1]
  %2 = mul %0, %1 : f32[2,3]
  return %2
}
"""

CASES = {
    "unknown operator": (
        "sigmoid",
        "sigmoyd",
        """\
        f.tir:3:8: error: unknown operator 'sigmoyd'; did you mean 'sigmoid'?
          %0 = sigmoyd %h : f32[2,3]  @S#0  loc("a.py":1)
               ^""",
    ),
    "undefined value, at its use": (
        "mul %0, %1",
        "mul %0, %hh",
        """\
        f.tir:5:16: error: %hh is not defined; did you mean %h?
          %2 = mul %0, %hh : f32[2,3]
                       ^""",
    ),
    "defined twice": (
        "%1 = sum",
        "%0 = sum",
        """\
        f.tir:4:3: error: %0 is defined twice
          %0 = sum %x {dims=[0,1], keepdim=true} : f32[1,1]
          ^""",
    ),
    "type that does not follow": (
        "mul %0, %1 : f32[2,3]",
        "mul %0, %1 : f32[2,4]",
        """\
        f.tir:5:21: error: mul gives f32[2,3], not f32[2,4]
          %2 = mul %0, %1 : f32[2,4]
                            ^""",
    ),
    "unknown attribute": (
        "keepdim=true",
        "keepdims=true",
        """\
        f.tir:4:28: error: sum has no attribute 'keepdims'; it has dims, keepdim
          %1 = sum %x {dims=[0,1], keepdims=true} : f32[1,1]
                                   ^""",
    ),
    "missing attribute": (
        ", keepdim=true",
        "",
        """\
        f.tir:4:8: error: sum lacks the attribute 'keepdim'
          %1 = sum %x {dims=[0,1]} : f32[1,1]
               ^""",
    ),
    "attribute given twice": (
        "keepdim=true",
        "dims=true",
        """\
        f.tir:4:28: error: attribute 'dims' is given twice
          %1 = sum %x {dims=[0,1], dims=true} : f32[1,1]
                                   ^""",
    ),
    "attribute that is no value": (
        "keepdim=true",
        "keepdim=yes",
        """\
        f.tir:4:36: error: expected a value: a number, a string, true, false, none or [...]
          %1 = sum %x {dims=[0,1], keepdim=yes} : f32[1,1]
                                           ^""",
    ),
    "unknown element type": (
        "%h: f32",
        "%h: f31",
        """\
        f.tir:2:31: error: unknown element type 'f31'; did you mean 'f32'?
        program @f (%x: f32[2,3], %h: f31[2,3]) -> (f32[2,3] into %x) {
                                      ^""",
    ),
    "shape with too many elements": (
        "%h: f32[2,3]",
        "%h: f32[2,1048576,1048576]",
        """\
        f.tir:2:31: error: f32[2,1048576,1048576] is too large: a tensor has at most 1099511627776 elements
        program @f (%x: f32[2,3], %h: f32[2,1048576,1048576]) -> (f32[2,3] into %x) {
                                      ^""",
    ),
    "negative size": (
        "%h: f32[2,3]",
        "%h: f32[-1,3]",
        """\
        f.tir:2:35: error: '-1' is no size of an axis
        program @f (%x: f32[2,3], %h: f32[-1,3]) -> (f32[2,3] into %x) {
                                          ^""",
    ),
    "other version": (
        "tpc 1",
        "tpc 2",
        """\
        f.tir:1:5: error: this text has version 2; this tpc reads version 1
        tpc 2
            ^""",
    ),
    "missing colon": (
        "sigmoid %h :",
        "sigmoid %h",
        """\
        f.tir:3:19: error: expected attributes ({name=value}) or ':', not 'f32[2,3]'
          %0 = sigmoid %h f32[2,3]  @S#0  loc("a.py":1)
                          ^""",
    ),
    "operand count": (
        "mul %0, %1",
        "mul %0",
        """\
        f.tir:5:8: error: mul takes 2 operands (a, b), not 1
          %2 = mul %0 : f32[2,3]
               ^""",
    ),
    "result count": (
        "%2 = mul",
        "%2, %3 = mul",
        """\
        f.tir:5:3: error: mul has 1 result, not 2
          %2, %3 = mul %0, %1 : f32[2,3]
          ^""",
    ),
    "output type": (
        "return %2",
        "return %1",
        """\
        f.tir:6:10: error: output 0 of @f is f32[1,1], its signature says f32[2,3]
          return %1
                 ^""",
    ),
    "output count": (
        "return %2",
        "return %2, %x",
        """\
        f.tir:6:10: error: @f is to return 1 value, not 2
          return %2, %x
                 ^""",
    ),
    "written into what is no input": (
        "into %x",
        "into %2",
        """\
        f.tir:2:59: error: %2 is no input: only inputs can be written into
        program @f (%x: f32[2,3], %h: f32[2,3]) -> (f32[2,3] into %2) {
                                                                  ^""",
    ),
    "body of an op that has none": (
        "mul %0, %1 : f32[2,3]",
        "mul %0, %1 : f32[2,3] body (%a: f32[2,3], %b: f32[1,1]) { return %a }",
        """\
        f.tir:5:8: error: mul has no body
          %2 = mul %0, %1 : f32[2,3] body (%a: f32[2,3], %b: f32[1,1]) { return %a }
               ^""",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_error_text(case):
    old, new, expected = CASES[case]
    assert PLAIN.count(old) >= 1
    assert message(PLAIN.replace(old, new, 1)) == textwrap.dedent(expected)


def message(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse(text, "f.tir")
    assert caught.value.__cause__ is None and (caught.value.__context__ is None or caught.value.__suppress_context__)
    return str(caught.value)


def test_a_type_rule_speaks_at_the_operator():
    text = PLAIN.replace("sum %x {dims=[0,1], keepdim=true} : f32[1,1]", "sum %x {dims=[0], keepdim=false} : f32[3]")
    text = text.replace("mul %0, %1", "matmul %0, %x")
    assert message(text).startswith("f.tir:5:8: error: ")
    assert "matmul: f32[2,3] and f32[2,3]" in message(text)


def test_attributes_of_the_wrong_kind_are_parse_errors():
    for value in ['"abc"', "1.5", "none", "[[0]]", "[7]", "[-1]", "99999999999999999999", "complex(1.0,2.0)", '["a"]']:
        assert message(PLAIN.replace("[0,1]", value)).startswith("f.tir:4:")


def test_programs_are_defined_once():
    assert message(PLAIN + PLAIN[6:]).splitlines()[0] == "f.tir:8:9: error: program @f is defined twice"


def test_text_that_ends_early():
    for end in range(len(PLAIN.rstrip()) - 1):
        if PLAIN[:end].split() not in ([], ["tpc", "1"]):
            assert message(PLAIN[:end]).startswith("f.tir:")
    assert message(PLAIN[:-3]).startswith("f.tir:6:12: error: expected '}', not the end of the text")


def test_number_of_programs():
    with pytest.raises(ParseError, match="expected one program, found 2"):
        parse_program(TEXT)
    with pytest.raises(ParseError, match="expected one program, found 0"):
        parse_program("")


def test_absurd_input_is_refused_cleanly():
    assert "is no size of an axis" in message(PLAIN.replace("%h: f32[2,3]", f"%h: f32[{'9' * 100_000}]"))
    assert "digits does not fit into 64 bits" in message(PLAIN.replace("[0,1]", "9" * 100_000))
    assert "nested too deep" in message(PLAIN.replace("[0,1]", "[" * 100_000 + "]" * 100_000))
    assert "at most 64 axes" in message(PLAIN.replace("%h: f32[2,3]", f"%h: f32[{'1,' * 99}1]"))
    body = "%0 = fusion %x : f32[2,3] body (%x: f32[2,3]) { "
    text = "program @f (%x: f32[2,3]) -> (f32[2,3]) { " + body * 5000
    assert "nested too deep" in message(text)
    assert len(message(PLAIN.replace("sigmoid", "s" * 100_000))) < 1000
    assert len(message(PLAIN.replace("return %2", "return %" + "2" * 100_000))) < 1000
    assert "are refused" in message(" " * (MAX_CHARACTERS + 1))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_broken_text_gives_parse_errors_only(data):
    text = data.draw(st.sampled_from([PLAIN, TEXT]))
    for _ in range(data.draw(st.integers(1, 3))):
        at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 6))
        piece = st.sampled_from(["%", "}", "{", '"', "\\", "[", "-1", "nan", "@", "body", "f32[2]", "999", "//", "\n", "none", "%0", " "])
        text = text[:at] + data.draw(piece | st.text(max_size=3)) + text[at + length :]
    try:
        parse(text)
    except ParseError as error:
        assert str(error).startswith("<text>:")
