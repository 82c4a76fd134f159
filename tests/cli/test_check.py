"""`tpc check`: every kind of finding, arguments, exit codes, forms of output."""

from __future__ import annotations

import json

import pytest

HEAD = "import tpc\nfrom tpc.autograd.function import once_differentiable\n\n"


def write(path, name: str, forward: str, backward: str, before: str = "", above: str = "") -> str:
    """A file with one Function; bodies are single lines."""
    lines = [
        f"{before}\n\nclass {name}(tpc.autograd.Function):",
        f"    @staticmethod\n    def forward(ctx, {forward}",
        f"    @staticmethod{above}\n    def backward(ctx, {backward}\n",
    ]
    path.write_text(HEAD + "\n".join(lines))
    return str(path)


SQUARE = "x): ctx.save_for_backward(x); return x * x"
TWICE = "g): return g * 2 * ctx.saved_tensors[0]"
EXP = "x): e = x.exp(); ctx.save_for_backward(e); return e * 2"
STATE = "x): calls.append(1); ctx.k = len(calls); return x * ctx.k"
BARE = "x): ctx.set_materialize_grads(False); return x * 2, x * 3"
MASK = "x): ctx.save_for_backward(x); return x * x, (x > 0).double()"

KINDS = {
    "gradient": (SQUARE, "g): return g * 3 * ctx.saved_tensors[0]"),
    "count": ("x, k: int): return x * k", "g): return g"),
    "shape": ("x): return x * 2", "g): return g.sum(0, keepdim=True) * 2"),
    "dtype": ("x): return x * 2", "g): return (g * 2).float()"),
    "type": ("x): return x * 2", "g): return 2.0"),
    "none": ("x, y): return x * y", "g): return None, None"),
    "raises": ("x): return x * 2", "g): raise KeyError('mine')"),
    "ctx-attribute": ("x): ctx.x = x; return x * x", "g): return g * 2 * ctx.x"),
    "mark-dirty": ("x): return x.mul_(2)", "g): return g * 2"),
    "double-backward": (EXP, TWICE),
    "non-contiguous": ("x): return x * 2", "g): return g.view(-1).mul(2).view(g.shape)"),
    "writes-gradient": ("x): return x * 2", "g): return g.mul_(2)"),
    "writes-saved": (SQUARE, "g): return ctx.saved_tensors[0].mul_(2) * g"),
    "none-gradient": (BARE, "a, b): return a * 2 + b * 3"),
    "python-state": (STATE, "g): return g * ctx.k"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_is_found_and_nothing_else(tpc, tmp_path, kind):
    path = write(tmp_path / f"fault_{kind.replace('-', '_')}.py", "Faulty", *KINDS[kind], before="calls = []")
    result = tpc("check", path, "--json")
    assert result.code == 1, result.err
    (found,) = json.loads(result.out)["functions"]
    assert {f["kind"] for f in found["findings"]} == {kind}
    assert {f["level"] for f in found["findings"]} == {"wrong"}


COSTS = {
    "unused": ("x): ctx.save_for_backward(x, x.exp()); return x * x", TWICE),
    "mark-non-differentiable": (MASK, "g, h): return g * 2 * ctx.saved_tensors[0]"),
}


@pytest.mark.parametrize("kind", COSTS)
def test_what_costs_is_said_and_is_no_fault(tpc, tmp_path, kind):
    path = write(tmp_path / f"cost_{kind.replace('-', '_')}.py", "Costly", *COSTS[kind])
    result = tpc("check", path, "--json")
    assert result.code == 0, result.err
    (found,) = json.loads(result.out)["functions"]
    assert [(f["level"], f["kind"]) for f in found["findings"]] == [("cost", kind)]


def test_bytes_are_those_of_the_types_that_were_given(tpc, tmp_path):
    path = write(tmp_path / "costly.py", "Costly", *COSTS["unused"])
    assert "saved tensor 1 (200,704 bytes)" in tpc("check", f"{path}:Costly", "--input", "f32[64,784]").out


RIGHT = {
    "plain": (SQUARE, TWICE, ""),
    "dirty": ("x): ctx.mark_dirty(x); return x.mul_(2)", "g): return g * 2", ""),
    "once": (EXP, TWICE, "\n    @once_differentiable"),
    "mask": ("x): ctx.save_for_backward(x > 0); return x.clamp(min=0)", "g): return g * ctx.saved_tensors[0]", ""),
    "marked": ("x): m = x * 0; ctx.mark_non_differentiable(m); return x * 2, m", "g, h): return g * 2", ""),
    "random": ("x): m = tpc.rand_like(x); ctx.save_for_backward(m); return x * m", "g): return g * ctx.saved_tensors[0]", ""),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_have_no_findings(tpc, tmp_path, name):
    forward, backward, above = RIGHT[name]
    path = write(tmp_path / f"right_{name}.py", "Right", forward, backward, above=above)
    result = tpc("check", path)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{path}:6 Right on f64[3,4]\n  ok     nothing found\n"


def test_arguments_are_guessed_until_forward_takes_them(tpc, tmp_path):
    product = "g): x, w = ctx.saved_tensors; return g @ w.t(), x.t() @ g"
    path = write(tmp_path / "product.py", "Product", "x, w): ctx.save_for_backward(x, w); return x @ w", product)
    assert "Product on f64[4,4], f64[4,4]" in tpc("check", path).out
    assert "Product on f32[2,3], f32[3,5]" in tpc("check", path, "--input", "f32[2,3]", "--input", "f32[3,5]").out


def test_a_function_that_takes_no_guess_is_said_to_be_unchecked(tpc, tmp_path):
    path = write(tmp_path / "picky.py", "Picky", "x): raise ValueError('no')", "g): return g")
    result = tpc("check", path)
    assert result.code == 1
    assert "open   not-checked" in result.out
    assert "give --input or --args" in result.out
    result = tpc("check", path, "--input", "f32[3]")
    assert (result.code, "Picky.forward raised ValueError: no" in result.err) == (3, True)


def test_inputs_without_elements(tpc, model):
    result = tpc("check", f"{model}:Swish", "--input", "f32[2,0]")
    assert result.code == 0
    assert "wrong" not in result.out.replace("0 of them wrong", "")


def test_all_functions_of_a_file_or_one(tpc, model):
    result = tpc("check", model, "--json")
    assert [f["name"] for f in json.loads(result.out)["functions"]] == ["Swish", "NoForward"]
    result = tpc("check", f"{model}:Swish", "--args", f"{model}:example")
    assert "Swish on f32[3,4]" in result.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((":Swsh",), "defines no Function 'Swsh'; it defines Swish, NoForward"),
        (("", "--input", "f32[2]"), "name one of Swish, NoForward"),
        ((":Swish", "--input", "f32[2]", "--args", "m.py:f"), "not both"),
        ((":Swish", "--input", "f32[2"), "neither a type"),
    ],
)
def test_wrong_usage(tpc, model, words, said):
    name, *more = words
    result = tpc("check", f"{model}{name}", *more)
    assert result.code == 2
    assert said in result.err


def test_files_without_functions_and_no_files(tpc, tmp_path):
    (tmp_path / "empty_file.py").write_text("x = 1\n")
    assert "defines no Functions" in tpc("check", tmp_path / "empty_file.py").err
    assert tpc("check", tmp_path / "missing.py").code == 2


def test_colours(tpc, tmp_path, monkeypatch):
    path = write(tmp_path / "wrong.py", "Wrong", *KINDS["gradient"])
    assert "\033[31mwrong" in tpc("check", path, "--color", "always").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in tpc("check", path).out


def test_help_has_examples(tpc):
    result = tpc("check", "--help")
    assert result.code == 0
    assert "tpc check swish.py:Swish --input 'f32[64,784]'" in result.out
