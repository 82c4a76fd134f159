"""Users, last uses and producers of values; structural comparison."""

from __future__ import annotations

from tpc.ir.compare import same_module, same_program
from tpc.ir.parser import parse, parse_program
from tpc.ir.uses import last_uses, producers, users

TEXT = """
program @f (%x: f32[2,3], %unused: f32[]) -> (f32[2,3], i64[2,3]) {
  %0 = exp %x : f32[2,3]
  %1 = mul %0, %0 : f32[2,3]
  %2, %3 = sort %1 {dim=0, descending=true, stable=true} : f32[2,3], i64[2,3]
  %4 = add %0, %x : f32[2,3]
  return %4, %3
}
"""


def test_users_and_last_uses():
    program = parse_program(TEXT)
    x, unused = program.inputs
    exp, mul, sort, add = program.ops
    assert users(program) == {
        x: [exp, add],
        unused: [],
        exp.result: [mul, add],
        mul.result: [sort],
        sort.results[0]: [],
        sort.results[1]: [],
        add.result: [],
    }
    assert last_uses(program) == {
        x: add,
        unused: None,
        exp.result: add,
        mul.result: sort,
        sort.results[0]: sort,
        sort.results[1]: None,
        add.result: None,
    }
    assert producers(program)[unused] == -1
    assert [producers(program)[op.results[-1]] for op in program.ops] == [0, 1, 2, 3]


def test_names_do_not_count_in_comparison():
    renamed = TEXT.replace("%x", "%y").replace("%4", "%sum").replace("%2,", "%sorted,").replace("@f", "@g")
    assert same_program(parse_program(TEXT), parse_program(renamed)) is None
    assert same_module(parse(TEXT), parse(renamed)) == "programs f and g"


def test_first_difference():
    program = parse_program(TEXT)
    cases = {
        "unused: f32[]": ("unused: f64[]", "inputs: (f32[2,3], f32[]) and (f32[2,3], f64[])"),
        "mul %0, %0": ("mul %0, %x", "op 1: other operands: `%1 = mul %0, %0 : f32[2,3]` and `%1 = mul %0, %x : f32[2,3]`"),
        "exp %x": ("tanh %x", "op 0: other operators: `%0 = exp %x : f32[2,3]` and `%0 = tanh %x : f32[2,3]`"),
        "descending=true": ("descending=false", "op 2: descending is true and false: "),
        "return %4": ("return %0", "4 and 3 ops"),
        "(f32[2,3],": ("(f32[2,3] into %x,", "outputs are written into inputs (None, None) and (0, None)"),
    }
    for old, (new, message) in cases.items():
        other = parse_program(TEXT.replace(old, new, 1))
        assert (same_program(program, other) or "").startswith(message)
        assert same_program(other, program) is not None


def test_outputs_are_compared_in_order():
    text = "program @f (%x: f32[], %y: f32[]) -> (f32[]) { return %x }"
    a, b = parse_program(text), parse_program(text.replace("return %x", "return %y"))
    assert same_program(a, b) == "output 0: %x and %y"


def test_origin_counts_only_when_asked():
    program = parse_program(TEXT)
    other = parse_program(TEXT.replace("exp %x : f32[2,3]", 'exp %x : f32[2,3] @S#0 loc("a.py":1)'))
    assert same_program(program, other) is None
    assert "from () None and ('S#0',) a.py:1" in (same_program(program, other, origin=True) or "")


def test_bodies_are_compared():
    text = """program @f (%x: f32[2]) -> (f32[2]) {
      %0 = fusion %x : f32[2]
        body @fused (%a: f32[2]) { %0 = exp %a : f32[2] return %0 }
      return %0
    }"""
    a, b, c = (parse_program(text.replace("exp", name).replace("fused", name)) for name in ("exp", "exp", "tanh"))
    assert same_program(a, b) is None
    assert "bodies differ (op 0: other operators" in (same_program(a, c) or "")
