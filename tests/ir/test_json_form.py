"""Programs as JSON: exact both ways, and refused with the path to what is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.programs import programs
from tests.ir.test_text_form import TEXT
from tpc.ir.compare import same_module
from tpc.ir.errors import ParseError
from tpc.ir.json_form import dumps, from_json, loads, to_json
from tpc.ir.parser import parse
from tpc.ir.program import Module
from tpc.ir.verify import verify


@given(programs())
@settings(max_examples=60, deadline=None)
def test_random_programs_survive(case):
    module = Module([case[0]])
    again = loads(dumps(module))
    verify(again)
    assert same_module(module, again, origin=True) is None
    assert [v.name for v in again.programs[case[0].name].inputs] == [v.name for v in case[0].inputs]
    assert to_json(again) == to_json(module)


def test_several_results_are_numbered_in_order():
    """They once were not: the second result took a number too many."""
    module = parse(TEXT)
    data = to_json(module)["programs"][0]
    assert [op["operands"] for op in data["ops"]] == [[1], [2], [3, 0]]
    assert data["outputs"] == [4, 5]
    assert same_module(module, loads(dumps(module)), origin=True) is None


def test_form():
    text = """program @f (%x: f32[3]) -> (f32[3] into %x) {
      %0 = constant {value=nan, dtype="f32"} : f32[]
      %1 = mul %x, %0 : f32[3]  @S#0  loc("a.py":3 in "f")
      return %1
    }"""
    assert to_json(parse(text)) == {
        "tpc": 1,
        "programs": [
            {
                "name": "f",
                "inputs": [{"name": "x", "type": "f32[3]"}],
                "ops": [
                    {"op": "constant", "operands": [], "types": ["f32[]"], "attrs": {"value": {"float": "nan"}, "dtype": "f32"}},
                    {"op": "mul", "operands": [0, 1], "types": ["f32[3]"], "scopes": ["S#0"], "loc": ["a.py", 3, "f"]},
                ],
                "outputs": [2],
                "writes": [0],
            }
        ],
    }


def test_numbers_survive_readers_that_know_no_floats():
    """JavaScript turns 1.0 into 1 and -0.0 into 0; both are other attributes."""
    text = """program @f () -> (f32[], f64[], c64[]) {
      %0 = constant {value=1.0, dtype="f32"} : f32[]
      %1 = constant {value=-0.0, dtype="f64"} : f64[]
      %2 = constant {value=complex(-0.0,inf), dtype="c64"} : c64[]
      return %0, %1, %2
    }"""
    module = parse(text)
    assert not any(isinstance(item, float) for item in _leaves(to_json(module)))
    assert same_module(module, from_json(dumps(module))) is None


def _leaves(data):
    if isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _leaves(item)
    else:
        yield data


WRONG = {
    ("tpc",): {2: "tpc: this file has version 2", "1": "tpc: expected int, not str", True: "tpc: expected int, not bool"},
    ("programs",): {None: "programs: expected list, not NoneType", (3,): r"programs\[0\]: expected an object, not int"},
    ("programs", 0, "name"): {
        None: r"programs\[0\].name: expected str",
        "identity": r"programs\[1\].name: program 'identity' is defined twice",
    },
    ("programs", 0, "inputs", 0, "type"): {
        "f31[2]": r"programs\[0\].inputs\[0\]: unknown element type 'f31'; did you mean 'f32'\?",
        "f32": r"inputs\[0\]: 'f32' is no type",
        "f32[2], f32[2]": "is no type",
        "f32[2,3": "is no type",
    },
    ("programs", 0, "ops", 0, "op"): {"sigmoyd": r"programs\[0\].ops\[0\]: unknown operator 'sigmoyd'; did you mean 'sigmoid'\?"},
    ("programs", 0, "ops", 0, "operands"): {
        (7,): r"ops\[0\]: value 7 is not defined",
        (-1,): "value -1 is not defined",
        ("x",): "expected int",
    },
    ("programs", 0, "ops", 0, "types"): {
        ("f32[3]",): r"ops\[0\]: sigmoid gives f32\[2,3\], not f32\[3\]",
        (): "sigmoid has 1 result, not 0",
    },
    ("programs", 0, "ops", 0, "scopes"): {"S": "scopes: expected list, not str", (1,): r"scopes\[0\]: expected str, not int"},
    ("programs", 0, "ops", 0, "loc"): {("a",): r"loc: expected \[file, line, function\]", ("a", "b", "c"): "loc: expected int, not str"},
    ("programs", 0, "ops", 1, "attrs", "dim"): {1.0: "attrs.dim: a float is written", 2**64: "does not fit into 64 bits", 9: r"ops\[1\]: "},
    ("programs", 0, "ops", 2, "bodies", 0, "outputs"): {(99,): r"programs\[0\].ops\[2\].bodies\[0\].outputs: value 99 is not defined"},
    ("programs", 0, "ops", 2, "bodies", 0, "writes"): {(0,): "a body writes into nothing"},
    ("programs", 0, "outputs"): {(99, 0): r"programs\[0\].outputs: value 99", (): "writes: 2 entries for 0 outputs"},
    ("programs", 0, "writes"): {
        (9, None): "writes: value 9 is not defined",
        (None, True): r"writes\[1\]: expected int or NoneType, not bool",
    },
}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in WRONG.items() for value in values])
def test_errors_name_the_path(path, value):
    data = json.loads(dumps(parse(TEXT)))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = list(value) if isinstance(value, tuple) else value
    with pytest.raises(ParseError, match=f"^f.json: error: .*{WRONG[path][value]}"):
        from_json(data, "f.json")


def test_text_that_is_no_json():
    for text, message in {
        '{"tpc": 1,\n  oops}': "^f.json:2:3: error: ",
        '{"tpc": NaN}': "NaN is not JSON",
        "[" * 100_000: "nested too deep|error: ",
        "[" + "9" * 10_000 + "]": "error: ",
        "[]": "top level: expected an object, not list",
    }.items():
        with pytest.raises(ParseError, match=message):
            loads(text, "f.json")


def test_tuples_nested_too_deep():
    data = json.loads(dumps(parse(TEXT)))
    deep: list = []
    for _ in range(500):
        deep = [deep]
    data["programs"][0]["ops"][1]["attrs"]["dim"] = deep
    with pytest.raises(ParseError, match="nested too deep"):
        from_json(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_broken_data_gives_parse_errors_only(data):
    document = json.loads(dumps(parse(TEXT)))
    place = document
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 4)) == 0:
            break
        place = place[key]
    junk = st.none() | st.booleans() | st.integers(-2, 99) | st.text(max_size=3) | st.just(0.5)
    place[key] = data.draw(
        junk | st.lists(junk, max_size=3) | st.dictionaries(st.sampled_from(["float", "complex", "x"]), junk, max_size=2)
    )
    try:
        from_json(document)
    except ParseError as error:
        assert str(error).startswith("<json>: error: ")
