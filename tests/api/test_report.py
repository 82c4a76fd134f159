"""`Traced.report()`: what backward needs, how it gets it, and what that costs."""

from __future__ import annotations

import json

import tpc
from tests.api.drawn import Swish, network, training_step


def test_each_saved_value_names_its_maker_its_line_and_its_readers():
    report = tpc.trace(training_step(1), tpc.spec("f32[4,8]")).report()
    made = {(s.made_by, s.scopes, s.decision) for s in report.saved if s.decision != "recomputed"}
    assert ("sigmoid", ("Swish#0",), "kept") in made
    assert ("x", (), "input") in made
    (sigmoid,) = [s for s in report.saved if s.made_by == "sigmoid"]
    assert sigmoid.loc is not None
    assert sigmoid.loc.file.endswith("drawn.py")
    assert {r.scopes for r in sigmoid.readers} == {("SwishBackward#0",)}
    assert report.held_bytes == sum(s.nbytes for s in report.saved if s.decision == "kept") > 0


def test_budget_decides_between_kept_and_recomputed():
    most = tpc.trace(Swish, tpc.spec("f32[64,784]")).report()
    least = tpc.trace(Swish, tpc.spec("f32[64,784]"), memory_budget=0.0).report()
    assert most.held_bytes == 64 * 784 * 4
    assert least.held_bytes == 0
    assert "recomputed" in least.totals()
    assert "and to compute some of these again:" in str(least)


def test_memory_and_fusions_of_all_programs():
    report = tpc.trace(network(2)[0], tpc.spec("f32[4,8]")).report()
    assert list(report.memory) == ["loss.forward", "loss.reverse"]
    assert all(m.after <= m.before for m in report.memory.values())
    assert report.fused
    assert all(f.ops for f in report.fused)


def test_text_is_a_table_that_fits_a_terminal():
    for traced in (tpc.trace(training_step(3), tpc.spec("f32[4,8]")), tpc.trace(Swish, tpc.spec("f32[64,784]"), memory_budget=0.0)):
        text = str(traced.report())
        assert text.startswith(f"@{traced.name}: what backward needs of forward")
        assert "planned peak" in text
        assert max(map(len, text.splitlines())) <= 120


def test_first_and_last_reader_are_named():
    text = str(tpc.trace(training_step(2), tpc.spec("f32[4,8]")).report())
    (line,) = [at for at, line in enumerate(text.splitlines()) if " to sub drawn.py" in line][:1]
    assert "LinearBackward#" in text.splitlines()[line - 1]


def test_nothing_saved():
    report = tpc.trace(lambda x: x * 2, tpc.spec("f32[3]")).report()
    assert report.saved == ()
    assert "there is no backward" in str(report)


def test_json_holds_everything_and_is_json():
    report = tpc.trace(training_step(1), tpc.spec("f32[4,8]")).report()
    data = json.loads(json.dumps(report.to_json()))
    assert data["held_bytes"] == report.held_bytes
    assert len(data["saved"]) == len(report.saved)
    assert {"type", "bytes", "decision", "reason", "made_by", "readers"} <= data["saved"][0].keys()
    assert data["memory"]["step"]["after"] == report.memory["step"].after
