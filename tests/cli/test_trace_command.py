"""``tpc trace``: what it prints, and how it ends where something is wrong."""

from __future__ import annotations

import json

import pytest

from tpc.ir.json_form import from_json
from tpc.ir.parser import parse


def test_prints_text_that_parses(tpc, model):
    done = tpc("trace", f"{model}:square", "--input", "f32[3]")
    assert done.code == 0
    program = parse(done.out)["square"]
    assert [op.name for op in program.ops] == ["mul", "sum"]
    assert "printed while traced" in done.err  # stdout is for the program alone


def test_function_class_gives_forward_and_reverse(tpc, model):
    done = tpc("trace", f"{model}:Swish", "--input", "f32[64,784]")
    assert done.code == 0
    assert list(parse(done.out).programs) == ["Swish.forward", "Swish.reverse"]


def test_json(tpc, model):
    done = tpc("trace", f"{model}:square", "--input", "f32[3]", "--format", "json")
    assert list(from_json(json.loads(done.out)).programs) == ["square"]


@pytest.mark.parametrize("stage", ["recorded", "joint", "forward", "reverse", "optimized"])
def test_stages_are_text(tpc, model, stage):
    done = tpc("trace", f"{model}:Swish", "--input", "f32[8]", "--stage", stage)
    assert done.code == 0
    assert parse(done.out).programs


def test_plan(tpc, model):
    done = tpc("trace", f"{model}:square", "--input", "f32[3]", "--stage", "plan")
    assert done.out.startswith("plan @square: arena")


def test_callable_object_and_default_argument(tpc, model):
    assert "mul" in tpc("trace", f"{model}:twice", "--input", "f32[3]").out
    assert "pow" in tpc("trace", f"{model}:power", "--input", "f32[3]", "--input", "3").out


def test_args_from_functions(tpc, model):
    assert "@step" in tpc("trace", f"{model}:step", "--args", f"{model}:example").out
    assert "f32[5]" in tpc("trace", f"{model}:power", "--args", f"{model}:named").out


def test_dotted_module(tpc, model, monkeypatch, tmp_path):
    (tmp_path / "for_dotted_names.py").write_text("def same(x):\n    return x + 1\n")
    monkeypatch.chdir(tmp_path)
    assert tpc("trace", "for_dotted_names:same", "--input", "f32[3]").code == 0


def test_a_file_may_be_called_as_a_module_of_python(tpc, tmp_path):
    (tmp_path / "random.py").write_text("def same(x):\n    return x + 1\n")
    assert tpc("trace", f"{tmp_path}/random.py:same", "--input", "f32[3]").code == 0
    import random

    assert random.random() >= 0


def test_output_by_suffix(tpc, model, tmp_path):
    for name, begin in (("a.tir", b"tpc 1"), ("a.json", b"{"), ("a.dot", b"digraph"), ("a.svg", b"<?xml"), ("a.png", b"\x89PNG")):
        done = tpc("trace", f"{model}:Swish", "--input", "f32[8]", "-o", tmp_path / name)
        assert (done.code, done.out) == (0, ""), done.err
        assert (tmp_path / name).read_bytes().startswith(begin)


def test_report(tpc, model, tmp_path):
    words = ("trace", f"{model}:Swish", "--input", "f32[64,784]", "--report")
    done = tpc(*words)
    assert "kept" in done.out
    assert "planned peak" in done.out
    assert json.loads(tpc(*words, "--format", "json").out)["held_bytes"] == 64 * 784 * 4
    done = tpc(*words, "-o", tmp_path / "swish.tir")
    assert "planned peak" in done.out
    assert parse((tmp_path / "swish.tir").read_text()).programs


def test_report_follows_the_budget(tpc, model):
    words = ("trace", f"{model}:Swish", "--input", "f32[64,784]", "--report", "--format", "json", "--memory-budget")
    assert json.loads(tpc(*words, "0").out)["held_bytes"] == 0


def test_print_after(tpc, model):
    done = tpc("trace", f"{model}:step", "--input", "f32[3,4]", "--print-after", "all")
    assert parse(done.out).programs
    assert "// before all passes: @step" in done.err
    assert "// after schedule: @step" in done.err
    done = tpc("trace", f"{model}:Swish", "--input", "f32[8]", "--print-after", "fuse")
    assert done.err.count("// after fuse") == 2
    assert "// after cse" not in done.err


def test_colour(tpc, model):
    words = ("trace", f"{model}:square", "--input", "f32[3]")
    assert "\x1b[" not in tpc(*words).out
    assert "\x1b[" in tpc(*words, "--color", "always").out
    assert "\x1b[" not in tpc(*words, "--color", "never").out


# --- what can go wrong --------------------------------------------------------------------------

USAGE = {
    "no target": (("square",), "is no target"),
    "no file": (("{folder}/none.py:f",), "there is no file"),
    "no module": (("no_such_module_here:f",), "there is no module 'no_such_module_here'"),
    "no name": (("{model}:sqare",), "did you mean square"),
    "a number": (("{model}:number",), "cannot be called"),
    "a class": (("{model}:Scale",), "is a class"),
    "unknown dtype": (("{model}:square", "--input", "f3[2]"), "did you mean 'f32'?"),
    "half a spec": (("{model}:square", "--input", "f32[2"), "neither a type such as f32[64,784]"),
    "no spec": (("{model}:square", "--input", "x"), "neither a type such as f32[64,784]"),
    "overflow": (("{model}:square", "--input", "f32[99999999,99999999,99999999]"), "too large"),
    "gradient of integers": (("{model}:square", "--input", "i64[3] grad"), "can require grad"),
    "too few": (("{model}:square",), "missing a required argument: 'x'"),
    "too many": (("{model}:square", "--input", "f32[1]", "--input", "f32[1]"), "too many positional arguments"),
    "ctx is no argument": (("{model}:Swish", "--input", "f32[1]", "--input", "f32[1]"), "takes (x)"),
    "both": (("{model}:square", "--input", "f32[1]", "--args", "{model}:example"), "not both"),
    "args that cannot be called": (("{model}:square", "--args", "{model}:number"), "cannot be called"),
    "args with arguments": (("{model}:square", "--args", "{model}:boom"), "missing a required argument"),
    "budget nan": (("{model}:square", "--memory-budget", "nan"), "between 0.0 and 1.0, not 'nan'"),
    "budget 2": (("{model}:square", "--memory-budget", "2"), "between 0.0 and 1.0"),
    "no reverse": (("{model}:square", "--input", "f32[3]", "--stage", "reverse"), "has no reverse program"),
    "plan as json": (("{model}:square", "--input", "f32[3]", "--stage", "plan", "--format", "json"), "no JSON form"),
    "no pass": (("{model}:square", "--input", "f32[3]", "--print-after", "dce"), "no pass is called 'dce'"),
    "no folder": (("{model}:square", "--input", "f32[3]", "-o", "{folder}/none/x.tir"), "there is no folder"),
    "output is a folder": (("{model}:square", "--input", "f32[3]", "-o", "{folder}"), "it is a folder"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_one_line_and_2(tpc, model, tmp_path, name):
    words, message = USAGE[name]
    before = sorted(tmp_path.iterdir())
    done = tpc("trace", *[word.format(model=model, folder=tmp_path) for word in words])
    assert (done.code, done.out) == (2, "")
    lines = [line for line in done.err.splitlines() if line != "printed while traced"]
    assert len(lines) == 1
    assert lines[0].startswith("tpc trace: error: ")
    assert message in lines[0]
    assert [p for p in sorted(tmp_path.iterdir()) if p.name != "__pycache__"] == before


def test_what_the_user_raises_is_3_with_their_frames(tpc, model, tmp_path):
    done = tpc("trace", f"{model}:boom", "--input", "f32[3]", "-o", tmp_path / "out.tir")
    assert (done.code, done.out) == (3, "")
    assert [line.strip().split(", ")[-1] for line in done.err.splitlines() if line.startswith("  File")] == ["in boom", "in inner"]
    assert done.err.endswith('KeyError: "the user\'s own"\n')
    assert not (tmp_path / "out.tir").exists()


def test_an_error_of_an_operator_shows_the_users_line(tpc, model):
    done = tpc("trace", f"{model}:step", "--input", "f32[3,5]")
    assert done.code == 3
    assert "loss = Swish.apply(x @ weight).sum()" in done.err
    assert "/tpc/" not in done.err.replace(model, "")


def test_a_branch_on_a_value_says_what_to_do(tpc, model):
    done = tpc("trace", f"{model}:branches", "--input", "f32[3]")
    assert done.code == 3
    assert "tpc.where" in done.err


def test_other_ways_to_fail_in_user_code(tpc, model, tmp_path):
    assert tpc("trace", f"{model}:leaves", "--input", "f32[3]").err.strip().endswith("exit code 7 while it was traced")
    assert tpc("trace", f"{model}:NoForward", "--input", "f32[3]").code == 3
    (tmp_path / "wrong.py").write_text("def f(x:\n")
    done = tpc("trace", f"{tmp_path}/wrong.py:f", "--input", "f32[3]")
    assert done.code == 3
    assert "SyntaxError" in done.err
    (tmp_path / "imports.py").write_text("import no_such_module_anywhere\n")
    done = tpc("trace", f"{tmp_path}/imports.py:f")
    assert done.code == 3
    assert "ModuleNotFoundError: No module named 'no_such_module_anywhere'" in done.err


def test_a_fault_of_tpc_is_4_and_asks_for_a_report(tpc, model, monkeypatch):
    from tpc.trace import Traced

    monkeypatch.setattr(Traced, "report", lambda self: {}["missing"])
    done = tpc("trace", f"{model}:square", "--input", "f32[3]", "--report")
    assert (done.code, done.out) == (4, "")
    assert "KeyError: 'missing'" in done.err
    assert f"the command:  tpc trace {model}:square" in done.err
    assert "TPC_DUMP=dump" in done.err


def test_a_fault_in_a_pass_is_not_blamed_on_the_user(tpc, model, monkeypatch):
    def broken(program):
        raise ValueError("a pass is wrong")

    monkeypatch.setattr("tpc.passes.cse.Rewriter", broken)
    done = tpc("trace", f"{model}:square", "--input", "f32[3]")
    assert done.code == 4
    assert "a pass is wrong" in done.err
    assert "this is a fault of tpc" in done.err


def test_no_renderer_leaves_dot(tpc, model, tmp_path, monkeypatch):
    monkeypatch.setattr("tpc.drawing.rendering._programs", lambda: iter(()))
    done = tpc("trace", f"{model}:Swish", "--input", "f32[8]", "-o", tmp_path / "out.svg")
    assert done.code == 1
    assert "pip install graphviz-pure" in done.err
    assert (tmp_path / "out.dot").read_text().startswith("digraph")
    assert not (tmp_path / "out.svg").exists()
    done = tpc("trace", f"{model}:Swish", "--input", "f32[8]", "--format", "svg")
    assert (done.code, done.out) == (1, "")
    assert "--format dot" in done.err
