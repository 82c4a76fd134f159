"""The text format: how programs look, and that they read back exactly."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.programs import programs
from tpc.ir.builder import Builder
from tpc.ir.compare import same_module, same_program
from tpc.ir.names import at_name, quoted, unquoted
from tpc.ir.parser import parse, parse_program
from tpc.ir.printer import print_module, print_program
from tpc.ir.program import Loc, Module
from tpc.ir.types import tensor_type
from tpc.ir.verify import verify

X = tensor_type("f32", (2, 3))

TEXT = """\
tpc 1

program @step.reverse (%x: f32[2,3], %h: f32[2,3]) -> (i64[2,3], f32[2,3] into %x) {
  %0 = sigmoid %h : f32[2,3]        @SwishBackward#0                    loc("swish.py":12 in "backward")
  %1, %2 = sort %0 {dim=1, descending=false, stable=true} : f32[2,3], i64[2,3]
  %3 = fusion %1, %x : f32[2,3]     @SwishBackward#0, @Other#1/Inner#0  loc("swish.py":13)
    body @fused (%a: f32[2,3], %b: f32[2,3]) {
      %0 = mul %a, %b : f32[2,3]    @Other#1/Inner#0
      %1 = add %0, %a : f32[2,3]
      return %1
    }
  return %2, %3
}

program @identity (%arg0: f32[]) -> (f32[]) {
  return %arg0
}
"""


def test_text_reads_back_exactly():
    module = parse(TEXT)
    verify(module)
    assert print_module(module) == TEXT
    program = module["step.reverse"]
    assert program.writes == (None, 0)
    assert program.ops[0].loc == Loc("swish.py", 12, "backward")
    assert program.ops[2].scopes == ("SwishBackward#0", "Other#1/Inner#0")
    assert program.ops[2].body is not None and program.ops[2].body.name == "fused"


def test_layout_is_free_and_comments_are_skipped():
    text = """
    // no version line
    program @f(%x:f32[ 2 , 3 ])->(f32[2,3]){ // the head
      %dead = exp %x : f32[2,3]
      %y=mul %x,%x:f32[2,3]@S#0 loc("a.py":1) return %y // all on one line
    }"""
    assert print_program(parse_program(text)) == (
        'program @f (%x: f32[2,3]) -> (f32[2,3]) {\n  %0 = mul %x, %x : f32[2,3]    @S#0    loc("a.py":1)\n  return %0\n}'
    )


def test_attributes_of_every_kind_are_exact():
    b = Builder("f")
    values = [
        b.constant(value, dtype)
        for value, dtype in [(float("nan"), "f32"), (-0.0, "f64"), (float("-inf"), "f32"), (1e-300, "f64"), (2**64 - 1, "u64")]
        + [(True, "bool"), (complex(-0.0, float("inf")), "c64"), (-7, "i8")]
    ]
    program = b.finish(values)
    text = print_program(program)
    for written in ["nan", "-0.0", "-inf", "1e-300", "18446744073709551615", "true", "complex(-0.0,inf)", "-7"]:
        assert f"value={written}, " in text
    assert same_program(program, parse_program(text)) is None


def test_input_names_become_valid_and_unique():
    b = Builder("f")
    inputs = [b.input(X, name) for name in ["x", "x", None, "3 d", "x_1", "größe", "a.b", "", "%"]]
    program = b.finish(inputs)
    head = print_program(program).splitlines()[0]
    names = [part.split(":")[0] for part in head.split("%")[1:]]
    assert names == ["x", "x_1", "arg2", "_3_d", "x_1_1", "größe", "a.b", "arg7", "arg8"]
    again = parse_program(print_program(program))
    assert [v.name for v in again.inputs] == names
    assert print_program(again) == print_program(program)


def test_locations_can_be_left_out():
    text = print_program(parse(TEXT)["step.reverse"], locs=False)
    assert "loc(" not in text
    assert "@SwishBackward#0, @Other#1/Inner#0\n" in text


def test_colours_change_nothing_but_colour():
    import re

    program = parse(TEXT)["step.reverse"]
    coloured = print_program(program, colour=True)
    assert coloured != print_program(program)
    assert re.sub(r"\x1b\[\d*m", "", coloured) == print_program(program)


def test_long_lines_do_not_push_the_columns():
    b = Builder("f")
    x = b.input(X)
    many = b.emit("cat", *[x] * 40, dim=0, scopes=("Long#0",))
    y = b.emit("exp", x, scopes=("Short#0",))
    lines = print_program(b.finish([many, y])).splitlines()
    assert lines[1].endswith("f32[80,3]  @Long#0")
    assert lines[2] == "  %1 = exp %arg0 : f32[2,3]     @Short#0"


@given(st.text(st.characters(codec=None)))
def test_any_string_survives_quotes(text):
    assert unquoted(quoted(text)) == text
    assert "\n" not in quoted(text)


@given(name=st.text(), scopes=st.lists(st.text(), max_size=3), file=st.text(), function=st.text(), input_name=st.text())
@settings(max_examples=50, deadline=None)
def test_names_may_hold_anything(name, scopes, file, function, input_name):
    b = Builder(name)
    y = b.emit("exp", b.input(X, input_name), scopes=tuple(scopes), loc=Loc(file, 3, function))
    module = Module([b.finish([y])])
    again = parse(print_module(module))
    assert same_module(module, again, origin=True) is None


def test_comment_signs_in_names_are_quoted():
    assert at_name("a//b") == '@"a//b"'
    assert at_name("<lambda>.f#0/G-1") == "@<lambda>.f#0/G-1"
    assert at_name("") == '@""'


@given(programs())
@settings(max_examples=100, deadline=None)
def test_random_programs_read_back_exactly(case):
    program, _ = case
    verify(program)
    text = print_program(program)
    again = parse_program(text)
    verify(again)
    assert same_program(program, again, origin=True) is None
    assert print_program(again) == text or any(v.name is None or not v.name.isidentifier() for v in program.inputs)
    assert print_program(parse_program(print_program(again))) == print_program(again)
