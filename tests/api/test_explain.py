"""`tpc.explain`: programs, guards, effects, and why a function is not compiled."""

from __future__ import annotations

import pytest

import tpc

X = tpc.tensor([1.0, 2.0], requires_grad=True)


def test_guards_name_their_lines():
    def function(x):
        if x.sum() > 0:
            return x.exp()
        return x

    found = tpc.explain(function, X)
    ((where, value),) = found.guards
    assert "test_explain.py:" in where
    assert value == "True"
    text = str(found)
    assert "@function is compiled to 2 programs on 1 argument and no tensors from outside" in text
    assert "recorded again where one of these is another" in text
    assert "what backward needs of forward" in text


def test_effects_are_told_and_not_made():
    w = tpc.tensor([1.0, 2.0], requires_grad=True)
    opt = tpc.optim.SGD([w], lr=0.1)

    @tpc.compile
    def step(x):
        loss = (w * x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    text = str(tpc.explain(step, tpc.ones(2)))
    assert "@step is compiled to 1 program on 1 argument and " in text
    assert "written at each call" in text
    assert "guards: none" in text
    assert w.grad is None
    assert w.tolist() == [1, 2]


def test_why_it_is_not_compiled():
    def function(x):
        return tpc.tensor(sorted(x.tolist()))

    found = tpc.explain(function, tpc.rand(100))
    assert found.traced is None
    assert "@function runs in deferred mode, not compiled" in str(found)
    assert "test_explain.py:" in found.reason
    with pytest.raises(RuntimeError, match=r"test_explain\.py:") as caught:
        tpc.compile(function, fullgraph=True)(tpc.rand(100))
    assert str(caught.value) in found.reason


def test_specs_and_errors_of_the_function():
    assert "1 argument" in str(tpc.explain(lambda x: x * 2, tpc.spec("f32[3]")))
    assert "asked for at" in tpc.explain(lambda x: x if x.sum() > 0 else -x, tpc.spec("f32[3]")).reason
    with pytest.raises(ZeroDivisionError):
        tpc.explain(lambda x: x / (1 // 0), X)
