"""``tpc opt``, ``run``, ``diff``, ``verify`` and ``draw``: commands on IR files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import TEXT
from tpc.ir.parser import parse, parse_program

BROKEN = TEXT.replace("mul %2, %y", "mul %2, %g")


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "broken.tir"
    path.write_text(BROKEN)
    return str(path)


@pytest.fixture
def arrays(tmp_path):
    x, y = np.array([0, 1, 2], "f4"), np.array([1, -1, 0.5], "f4")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    return x, y


# --- opt ----------------------------------------------------------------------------------------


def test_opt_runs_the_passes_asked_for_in_order(tpc, text):
    assert [op.name for op in parse_program(tpc("opt", text, "--passes", "cse").out).ops] == ["exp", "add", "mul"]
    assert [op.name for op in parse_program(tpc("opt", text, "--passes", "simplify,cse,fuse").out).ops] == ["fusion"]
    assert tpc("opt", text, "--passes", "none").out == tpc("opt", text, "--passes", "").out == TEXT
    assert parse_program(tpc("opt", text).out).ops[0].name == "fusion"


def test_opt_formats(tpc, text, tmp_path):
    assert json.loads(tpc("opt", text, "--format", "json").out)["tpc"] == 1
    assert tpc("opt", text, "--passes", "none", "-o", tmp_path / "out.json").code == 0
    assert tpc("opt", tmp_path / "out.json", "--passes", "none").out == TEXT


def test_opt_prints_after_a_pass(tpc, text):
    done = tpc("opt", text, "--passes", "cse,fuse", "--print-after", "cse")
    assert done.err.startswith("// after cse: @f\ntpc 1")
    assert parse(done.out).programs
    assert tpc("opt", text, "--passes", "cse", "--print-after", "fuse").code == 2


def test_opt_refuses(tpc, text, broken, tmp_path):
    done = tpc("opt", text, "--passes", "dce")
    assert (done.code, done.out) == (2, "")
    assert "there are simplify, cse, partition, fuse, schedule" in done.err
    done = tpc("opt", broken, "-o", tmp_path / "out.tir")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"{broken}:7:16: error: %g is not defined\n  %3 = mul %2, %g : f32[3]\n               ^\n"
    assert not (tmp_path / "out.tir").exists()
    assert tpc("opt", text, "-o", tmp_path / "out.svg").code == 2


def test_output_replaces_the_input_only_when_all_is_well(tpc, text, broken):
    assert tpc("opt", text, "--passes", "cse", "-o", text).code == 0
    assert "%3" not in Path(text).read_text()
    assert tpc("opt", broken, "-o", broken).code == 1
    assert Path(broken).read_text() == BROKEN


# --- run ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [(), ("--interpreter",)])
def test_run_writes_outputs(tpc, text, arrays, tmp_path, how):
    done = tpc("run", text, "--input", tmp_path / "x.npy", "--input", tmp_path / "y.npy", "-o", tmp_path / "out.npz", *how)
    assert (done.code, done.out) == (0, ""), done.err
    x, y = arrays
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["0"], 2 * np.exp(x) * y, rtol=1e-6)
    assert tpc("run", text, "-i", tmp_path / "x.npy", "-i", tmp_path / "y.npy", "-o", tmp_path / "out.npy").code == 0
    assert np.load(tmp_path / "out.npy").shape == (3,)


def test_run_summarises(tpc, text, arrays, tmp_path):
    words = ("run", text, "-i", f"y={tmp_path}/y.npy", "-i", tmp_path / "x.npy")
    done = tpc(*words)
    assert done.out.startswith("0: f32[3]  min -5.43656  max 7.38906  mean 1.3175  [2, -5.43656, 7.38906]")
    assert json.loads(tpc(*words, "--json").out)[0]["type"] == "f32[3]"


def test_run_takes_npz_by_name_and_any_byte_order(tpc, text, tmp_path):
    np.savez(tmp_path / "in.npz", y=np.ones(3, "f4"), x=np.zeros(3, ">f4"))
    assert "[2, 2, 2]" in tpc("run", text, "-i", tmp_path / "in.npz").out


def test_run_tells_of_numbers_that_are_not_finite(tpc, text, tmp_path):
    np.savez(tmp_path / "in.npz", y=np.ones(3, "f4"), x=np.array([np.nan, np.inf, 0], "f4"))
    assert "2 not finite" in tpc("run", text, "-i", tmp_path / "in.npz").out
    assert json.loads(tpc("run", text, "-i", tmp_path / "in.npz", "--json").out)[0]["max"] == "nan"


def test_run_names_outputs_after_the_inputs_they_replace(tpc, tmp_path):
    (tmp_path / "w.tir").write_text("tpc 1\nprogram @f (%w: f32[2]) -> (f32[2] into %w) {\n  %0 = neg %w : f32[2]\n  return %0\n}\n")
    np.save(tmp_path / "w.npy", np.ones(2, "f4"))
    assert tpc("run", tmp_path / "w.tir", "-i", tmp_path / "w.npy").out.startswith("w: f32[2]")


WRONG_RUNS = {
    "too few": (("x.npy",), "there is none for %y: f32[3]"),
    "too many": (("x.npy", "y.npy", "x.npy"), "1 of those given is left over"),
    "no file": (("none.npy", "y.npy"), "cannot read"),
    "no array": (("in.tir", "y.npy"), "no .npy or .npz file of plain arrays"),
    "cut off": (("cut.npy", "y.npy"), "no .npy or .npz file of plain arrays"),
    "objects": (("objects.npy", "y.npy"), "no .npy or .npz file of plain arrays"),
    "shape": (("long.npy", "y.npy"), "input x of @f is f32[3], but the array given is f32[4]"),
    "dtype": (("double.npy", "y.npy"), "input x of @f is f32[3], but the array given is f64[3]"),
    "text": (("words.npy", "y.npy"), "can't convert"),
    "no such input": (("z=x.npy", "x.npy"), "has no input %z; it has %x, %y"),
}


@pytest.mark.parametrize("name", WRONG_RUNS)
def test_run_checks_inputs(tpc, text, arrays, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    np.save("long.npy", np.ones(4, "f4"))
    np.save("double.npy", np.ones(3))
    np.save("words.npy", np.array(["a", "b", "c"]))
    np.save("objects.npy", np.array([{}, [], 1], dtype=object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:90])
    files, message = WRONG_RUNS[name]
    done = tpc("run", "in.tir", *[word for file in files for word in ("--input", file)], "-o", "out.npz")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out.npz").exists()


def test_run_that_fails_is_1(tpc, tmp_path):
    (tmp_path / "i.tir").write_text(
        "tpc 1\nprogram @f (%x: f32[3], %i: i64[2]) -> (f32[2]) {\n"
        '  %0 = index %x, %i {axes=[0]} : f32[2]  loc("user.py":7)\n  return %0\n}\n'
    )
    np.save(tmp_path / "x.npy", np.ones(3, "f4"))
    np.save(tmp_path / "i.npy", np.array([0, 9]))
    done = tpc("run", tmp_path / "i.tir", "-i", tmp_path / "x.npy", "-i", tmp_path / "i.npy")
    assert (done.code, done.out) == (1, "")
    assert "out of bounds" in done.err
    assert "user.py:7" in done.err
    assert done.err.count("\n") == 1


def test_run_needs_to_know_which_program(tpc, text, tmp_path):
    two = tmp_path / "two.tir"
    two.write_text(TEXT + TEXT.replace("tpc 1\n", "").replace("@f", "@g"))
    assert "it has @f, @g" in tpc("run", two, "--program", "h").err
    assert "choose one with --program" in tpc("run", two).err


# --- diff ---------------------------------------------------------------------------------------


def test_diff(tpc, text, broken, tmp_path):
    renamed = tmp_path / "renamed.tir"
    renamed.write_text(TEXT.replace("%x", "%other").replace("@f", "@g").replace("%0", "%first"))
    done = tpc("diff", text, renamed)
    assert (done.code, done.out) == (0, "the same\n")
    other = tmp_path / "other.tir"
    other.write_text(TEXT.replace("add", "sub"))
    done = tpc("diff", text, other)
    assert done.code == 1
    assert done.out.startswith("@f: op 2: other operators: `%2 = add %0, %1 : f32[3]`")
    assert tpc("diff", text, other, "--quiet").out == ""
    assert json.loads(tpc("diff", text, other, "--json").out)["same"] is False
    assert tpc("diff", text, broken).code == 2
    assert tpc("diff", text, tmp_path / "none.tir").code == 2
    assert tpc("diff", "-", "-").code == 2


def test_diff_of_modules(tpc, tmp_path):
    body = TEXT.replace("tpc 1\n", "")
    (tmp_path / "a.tir").write_text(TEXT + body.replace("@f", "@g") + body.replace("@f", "@h"))
    (tmp_path / "b.tir").write_text(TEXT + body.replace("@f", "@g").replace("exp", "sin"))
    done = tpc("diff", tmp_path / "a.tir", tmp_path / "b.tir")
    assert done.code == 1
    assert [line.partition(":")[0] for line in done.out.splitlines()] == ["@g", "@h"]
    assert tpc("diff", tmp_path / "a.tir", tmp_path / "b.tir", "--program", "f").code == 0


def test_diff_of_origin(tpc, text, tmp_path):
    (tmp_path / "b.tir").write_text(TEXT.replace("mul %2, %y : f32[3]", "mul %2, %y : f32[3]  @Swish#0"))
    assert tpc("diff", text, tmp_path / "b.tir").code == 0
    assert tpc("diff", text, tmp_path / "b.tir", "--origin").code == 1


# --- verify, draw -------------------------------------------------------------------------------


def test_verify(tpc, text, broken, tmp_path):
    assert tpc("verify", text).out == f"{text}: valid: @f (2 inputs, 4 ops, 1 output)\n"
    done = tpc("verify", text, broken)
    assert done.code == 1
    assert "broken.tir:7:16: error" in done.err
    (tmp_path / "types.tir").write_text(TEXT.replace("mul %2, %y : f32[3]", "mul %2, %y : f32[4]"))
    assert "types.tir:7:" in tpc("verify", tmp_path / "types.tir").err
    (tmp_path / "op.tir").write_text(TEXT.replace("mul", "mull"))
    assert "mull" in tpc("verify", tmp_path / "op.tir").err
    (tmp_path / "bytes.tir").write_bytes(b"\xff\xfe\x00")
    assert tpc("verify", tmp_path / "bytes.tir").code == 1
    (tmp_path / "bad.json").write_text('{"tpc": 1, "programs": 3}')
    assert tpc("verify", tmp_path / "bad.json").code == 1


def test_huge_text_is_refused(tpc, tmp_path, monkeypatch):
    monkeypatch.setattr("tpc.cli.streams.MAX_CHARACTERS", 100)
    monkeypatch.setattr("tpc.ir.parser.MAX_CHARACTERS", 100)
    (tmp_path / "huge.tir").write_text("tpc 1\n" + " " * 1000)
    done = tpc("verify", tmp_path / "huge.tir")
    assert done.code == 1
    assert "are refused" in done.err


def test_draw(tpc, text, tmp_path):
    assert tpc("draw", text).out.startswith("digraph")
    for name, begin in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.gv", b"digraph")):
        assert tpc("draw", text, "-o", tmp_path / name).code == 0
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert tpc("draw", text, "-o", tmp_path / "a.tir").code == 2
    assert tpc("draw", text, "--collapse", "-1").code == 2
    assert tpc("draw", text, "--program", "g").code == 2
    assert tpc("draw", text, "--timeout", "nan").code == 2
