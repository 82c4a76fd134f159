"""Python values around a compiled function: a call that finds others is recorded again."""

from __future__ import annotations

import argparse
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import tpc

ONE = tpc.ones(1)
RATE = 1.0


def scaled(a):
    return a * RATE


def inner(a):
    return scaled(a) + 0


@pytest.mark.parametrize("function", [scaled, inner], ids=["read", "read by a function that is called"])
def test_a_global(monkeypatch, function):
    run = tpc.compile(function)
    assert run(ONE).item() == 1
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert run(ONE).item() == 5
    monkeypatch.setitem(globals(), "RATE", 1.0)
    assert run(ONE).item() == 1


def test_a_variable_of_an_enclosing_function():
    k = 1.0
    run = tpc.compile(lambda a: a * k)
    assert run(ONE).item() == 1
    k = 5.0
    assert run(ONE).item() == 5


@pytest.mark.parametrize(("held", "at", "function"), [([1.0], 0, lambda v, a: a * v[0]), ({"k": 1.0}, "k", lambda v, a: a * v["k"])])
def test_what_is_in_a_container(held, at, function):
    run = tpc.compile(lambda a: function(held, a))
    assert run(ONE).item() == 1
    held[at] = 5.0
    assert run(ONE).item() == 5


def test_how_many_there_are():
    held = {"a": 1}
    run = tpc.compile(lambda a: a * len(held))
    assert run(ONE).item() == 1
    held["b"] = 2
    assert run(ONE).item() == 2


def test_an_attribute_of_an_object():
    class Trainer:
        rate = 1.0

        def step(self, a):
            return a * self.rate

    trainer = Trainer()
    run = tpc.compile(trainer.step)
    assert run(ONE).item() == 1
    trainer.rate = 4.0
    assert run(ONE).item() == 4


def test_an_attribute_of_a_function_class():
    class Quantised(tpc.autograd.Function):
        bits = 2

        @staticmethod
        def forward(ctx, x):
            return x * Quantised.bits

        @staticmethod
        def backward(ctx, g):
            return g * Quantised.bits

    x = tpc.ones(1, requires_grad=True)
    run = tpc.compile(lambda x: Quantised.apply(x))
    run(x).backward()
    Quantised.bits = 8
    y = run(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (8, 10)


def test_a_dict_in_a_module():
    class Scaling(tpc.nn.Module):
        def __init__(self):
            super().__init__()
            self.settings = {"by": 1.0}

        def forward(self, a):
            return a * self.settings["by"]

    model = Scaling()
    run = tpc.compile(model)
    assert run(ONE).item() == 1
    model.settings["by"] = 3.0
    assert run(ONE).item() == 3


def test_another_tensor_of_the_name():
    w = tpc.ones(1)
    run = tpc.compile(lambda a: a * w)
    assert run(ONE).item() == 1
    w = tpc.full((1,), 7.0)
    assert run(ONE).item() == 7


def test_values_that_keep_changing_are_followed_without_recordings():
    k = 0
    run = tpc.compile(lambda a: a * k)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for value in range(12):
            k = value
            assert run(ONE).item() == value
    assert [str(w.message) for w in caught] == [
        "<lambda> runs in deferred mode, not compiled: Python values that the code reads keep changing: k"
    ]


def test_a_state_of_before_needs_no_new_recording():
    recorded = []
    k = 1.0

    def function(a):
        recorded.append(k)
        return a * k

    run = tpc.compile(function)
    for k in (1.0, 2.0, 1.0, 2.0, 1.0):
        run(ONE)
    assert recorded == [1.0, 2.0]


def test_the_default_dtype():
    run = tpc.compile(lambda: tpc.ones(1))
    assert run().dtype == tpc.float32
    tpc.set_default_dtype(tpc.float64)
    try:
        assert run().dtype == tpc.float64
    finally:
        tpc.set_default_dtype(tpc.float32)
    assert run().dtype == tpc.float32


def test_deep_containers():
    held = {"a": [1.0, {"b": (2.0,)}], 3: {4}}
    run = tpc.compile(lambda a: a * held["a"][1]["b"][0])
    assert run(ONE).item() == 2
    held["a"][1]["b"] = (5.0,)
    assert run(ONE).item() == 5


def test_a_variable_that_comes_later():
    def function(a, late=False):
        return a * k if late else a

    run = tpc.compile(function)
    assert run(ONE).item() == 1
    k = 3.0
    assert run(ONE, late=True).item() == 3


@pytest.mark.parametrize("held", [SimpleNamespace(rate=np.float32(1)), argparse.Namespace(rate=1)])
def test_attributes_of_a_namespace(held):
    run = tpc.compile(lambda a: a * float(held.rate))
    assert run(ONE).item() == 1
    held.rate = np.float32(5)
    assert run(ONE).item() == 5


def test_attributes_that_the_code_does_not_name_need_no_recording():
    recorded = []

    class Trainer:
        rate, count = 2.0, 0

        def step(self, a):
            recorded.append(1)
            return a * self.rate

    trainer = Trainer()
    run = tpc.compile(trainer.step)
    for _ in range(12):
        trainer.last = run(ONE)
        trainer.count += 1
    assert len(recorded) == 1


def test_what_a_base_class_and_a_layer_inside_hold():
    class Scaling(tpc.nn.Module):
        by = 1.0

        def __init__(self):
            super().__init__()
            self.settings = {"by": 1.0}

        def forward(self, a):
            return a * self.settings["by"] * self.by

    class Derived(Scaling):
        pass

    model = tpc.nn.Sequential(Derived())
    run = tpc.compile(model)
    assert run(ONE).item() == 1
    model[0].settings["by"] = 3.0
    assert run(ONE).item() == 3
    Scaling.by = 2.0
    assert run(ONE).item() == 6


def test_a_function_that_cannot_be_recorded_gives_up_on_values_that_keep_changing():
    k = 0
    run = tpc.compile(lambda a: tpc.from_numpy(a.numpy() * k))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for value in range(20):
            k = value
            assert run(tpc.ones(100)).sum().item() == 100 * value
    assert len(caught) < 12
