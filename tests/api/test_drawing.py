"""Drawings: which boxes and edges there are, that they render, and what happens where they cannot."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings

import tpc
from tests.api.drawn import Block, Swish, network, training_step
from tests.ir.programs import programs
from tpc.drawing import RenderError, draw, rendering
from tpc.drawing.pictures import MAX_BOXES, picture
from tpc.drawing.rendering import render
from tpc.drawing.scene import scenes
from tpc.ir.parser import parse

SPEC = "f32[4,8]"


def laid_out(dot: str) -> dict:
    """The graph as Graphviz understands it: labels of nodes, edges as (tail label, head label), clusters."""
    graph = json.loads(render(dot, "json"))
    names = {o["_gvid"]: plain_label(o.get("label", "")) for o in graph.get("objects", ()) if "nodes" not in o and "subgraphs" not in o}
    clusters = [plain_label(o.get("label", "")) for o in graph.get("objects", ()) if o["name"].startswith("cluster")]
    edges = []
    for edge in graph.get("edges", ()):
        ends = names[edge["tail"]], names[edge["head"]]
        edges.append((*(reversed(ends) if edge.get("dir") == "back" else ends), edge))
    return {"nodes": list(names.values()), "edges": edges, "clusters": clusters}


def plain_label(label: str) -> str:
    return re.sub(r"<[^>]*>", " ", label.replace("<br/>", "|")).strip().partition("|")[0].replace(" ", "")


@pytest.fixture(scope="module")
def step() -> tpc.trace:
    return tpc.trace(training_step(2), tpc.spec(SPEC))


def test_one_box_for_each_application_and_backward_node(step):
    drawn = laid_out(draw(step, stage="recorded"))
    boxes = [n for n in drawn["nodes"] if re.fullmatch(r"[A-Z]\w+#\d+", n)]
    pairs = [f"{name}{back}#{i}" for name in ("Linear", "Swish") for back in ("", "Backward") for i in (0, 1)]
    assert sorted(b for b in boxes if "Sum" not in b) == sorted(pairs)
    assert drawn["clusters"] == ["forward", "backward", "afterbackward"]


def test_backward_edges_are_laid_out_upwards(step):
    drawn = laid_out(draw(step, stage="recorded"))
    (edge,) = [e for a, b, e in drawn["edges"] if (a, b) == ("LinearBackward#1", "SwishBackward#0")]
    assert edge["dir"] == "back"
    assert "f32[4,8]" in edge["label"]
    assert "128 B" in edge["label"]
    (edge,) = [e for a, b, e in drawn["edges"] if (a, b) == ("Linear#0", "Swish#0")]
    assert "dir" not in edge


def test_saved_values_stand_between_maker_and_readers(step):
    dot = draw(step, stage="recorded")
    drawn = laid_out(dot)
    assert ("Swish#0", "f32[4,8],128B") in [(a, b) for a, b, _ in drawn["edges"]]
    assert ("f32[4,8],128B", "SwishBackward#0") in [(a, b) for a, b, _ in drawn["edges"]]
    assert dot.count("shape=cylinder") == 6  # each Linear's product, each sigmoid, what Linear#1 takes, and the gradient to begin with
    assert "kept: sigmoid, drawn.py:" in dot
    assert "read by SwishBackward#0" in dot
    assert "read by backward: LinearBackward#0" in dot


def test_outputs_say_what_they_are(step):
    nodes = laid_out(draw(step))["nodes"]
    assert {"output0", "%weights.0.grad", "new%weights.0"} <= set(nodes)
    nodes = laid_out(draw(tpc.trace(network(1)[0], tpc.spec(SPEC))))["nodes"]
    assert {"output0", "gradientof%weights.0"} <= set(nodes)


def test_fused_groups_are_clusters_of_the_optimized_stage(step):
    assert "fused:" not in draw(step, stage="recorded")
    drawn = laid_out(draw(step))
    assert len([c for c in drawn["clusters"] if c.startswith("fused:")]) == len(step.report().fused)


def test_values_that_are_not_kept_look_so():
    traced = tpc.trace(training_step(1), tpc.spec(SPEC), memory_budget=0.0)
    dot = draw(traced, stage="recorded")
    assert "not kept, computed again: sigmoid" in dot
    assert "computed again for" in draw(traced)


def test_a_pair_that_was_printed_and_parsed_draws_alike():
    traced = tpc.trace(network(2)[0], tpc.spec(SPEC))
    parsed = laid_out(draw(parse(str(traced))))
    direct = laid_out(draw(traced, stage="joint"))
    assert {n for n in direct["nodes"] if "#" in n} == {n for n in parsed["nodes"] if "#" in n}
    assert "kept for backward" in draw(parse(str(traced)))


def test_a_program_without_backward_has_no_columns():
    drawn = laid_out(draw(tpc.trace(lambda x: (x + 1).exp(), tpc.spec(SPEC)), stage="recorded"))
    assert drawn["clusters"] == []
    assert [n for n in drawn["nodes"] if n in ("add", "exp")] == ["add", "exp"]


def test_nested_applications_collapse_by_depth():
    def loss(x, w):
        return Block.apply(x, w).sum()

    traced = tpc.trace(loss, tpc.spec(SPEC), tpc.spec("f32[8,8] grad"))
    assert {"Block#0", "Linear#0", "Swish#0"} & set(laid_out(draw(traced, stage="joint"))["nodes"]) == {"Linear#0", "Swish#0"}
    assert {"Block#0", "Linear#0", "Swish#0"} & set(laid_out(draw(traced, stage="joint", collapse=1))["nodes"]) == {"Block#0"}
    with pytest.raises(ValueError, match="collapse"):
        draw(traced, collapse=-1)


def test_several_programs_share_a_picture():
    text = "tpc 1\nprogram @{} (%x: f32[3]) -> (f32[3]) {{\n  %0 = exp %x : f32[3]\n  return %0\n}}\n"
    module = parse(text.format("f") + text.format("g").removeprefix("tpc 1\n"))
    assert laid_out(draw(module))["clusters"] == ["@f", "@g"]


def test_names_cannot_break_the_dot_text():
    evil = r'"evil\" <b> & \\N {rank=same} %n"'
    op = f"%0 = exp %x : f32[3]  @{evil}  loc({evil}:1 in {evil})"
    text = f"tpc 1\nprogram @{evil} (%x: f32[3]) -> (f32[3]) {{\n  {op}\n  return %0\n}}\n"
    drawn = laid_out(draw(parse(text)))
    assert len(drawn["nodes"]) == 3


@settings(max_examples=30, deadline=None)
@given(programs())
def test_any_program_draws(case):
    program, _ = case
    laid_out(draw(program))


def test_two_hundred_boxes_are_drawn_in_seconds():
    traced = tpc.trace(training_step(24), tpc.spec(SPEC))
    for stage in ("recorded", "optimized"):
        begin = time.perf_counter()
        drawn = laid_out(draw(traced, stage=stage))
        assert time.perf_counter() - begin < 20
        assert len(drawn["nodes"]) <= MAX_BOXES


def test_large_programs_are_collapsed_until_they_are_readable():
    traced = tpc.trace(training_step(150), tpc.spec(SPEC))
    (scene,) = scenes(traced.stage("recorded"))
    boxes = picture(scene).boxes
    assert len(boxes) <= MAX_BOXES
    assert any("150 applications" in note for box in boxes for note in box.notes)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "begin"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".dot", b"digraph"), (".gv", b"digraph")])
def test_the_suffix_says_how(step, tmp_path, suffix, begin):
    text = step.draw(str(tmp_path / f"out{suffix}"))
    assert text.startswith("digraph")
    assert (tmp_path / f"out{suffix}").read_bytes().startswith(begin)
    assert [p.name for p in tmp_path.iterdir()] == [f"out{suffix}"]


def test_an_unknown_suffix_is_refused_before_anything_is_done(step, tmp_path):
    with pytest.raises(ValueError, match="must end in"):
        step.draw(str(tmp_path / "out.txt"))
    assert list(tmp_path.iterdir()) == []


def test_without_a_renderer_the_dot_text_is_beside(step, tmp_path, monkeypatch):
    monkeypatch.setattr(rendering, "_programs", lambda: iter(()))
    with pytest.raises(RenderError, match="pip install graphviz-pure") as caught:
        step.draw(str(tmp_path / "out.svg"))
    assert str(tmp_path / "out.dot") in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["out.dot"]
    assert step._repr_svg_() is None


def test_layout_has_a_time_limit(step, tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 20\n")
    slow.chmod(0o755)
    monkeypatch.setattr(rendering, "_programs", lambda: iter([str(slow)]))
    begin = time.perf_counter()
    with pytest.raises(RenderError, match=r"took longer than 0\.2 seconds"):
        step.draw(str(tmp_path / "out.svg"), timeout=0.2)
    assert time.perf_counter() - begin < 5
    assert (tmp_path / "out.dot").exists()


def test_a_renderer_that_fails_says_why(tmp_path, monkeypatch):
    failing = tmp_path / "dot"
    failing.write_text("#!/bin/sh\necho 'Error: no good' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(rendering, "_programs", lambda: iter([str(failing)]))
    with pytest.raises(RenderError, match="dot failed: Error: no good"):
        render("digraph {}", "svg")


def test_notebooks_get_svg():
    svg = tpc.trace(Swish, tpc.spec(SPEC))._repr_svg_()
    assert svg is not None
    assert "<svg" in svg


def test_drawing_is_repeatable(step):
    assert draw(step) == draw(step)
    assert draw(tpc.trace(Swish, tpc.spec(SPEC))) == draw(tpc.trace(Swish, tpc.spec(SPEC)))


def test_write_leaves_the_old_file_when_it_fails(tmp_path: Path, monkeypatch):
    import os

    from tpc.files import write_file

    target = tmp_path / "old.txt"
    target.write_text("old")
    target.chmod(0o640)
    write_file(target, "new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640

    def refuse(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        write_file(target, "newer")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["old.txt"]


def test_a_missing_folder_is_said_by_the_name_that_was_given(tmp_path):
    from tpc.files import write_file

    target = tmp_path / "missing" / "x.dot"
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*missing/x.dot'"):
        write_file(target, "new")
