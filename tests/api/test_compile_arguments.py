"""Compiled functions called with tensors that stand in another relation to the function than those it was recorded with."""

from __future__ import annotations

import tpc


def test_an_argument_that_the_function_also_captures():
    w = tpc.tensor([2.0, 3.0])
    scaled = tpc.compile(lambda x: x * w)
    other = tpc.tensor([10.0, 100.0])
    for _ in range(2):
        assert scaled(w).tolist() == [4.0, 9.0]
        assert scaled(other).tolist() == [20.0, 300.0]


def test_gradients_of_an_argument_that_the_function_also_captures():
    w, other = tpc.tensor([2.0, 3.0], requires_grad=True), tpc.tensor([10.0, 100.0], requires_grad=True)
    total = tpc.compile(lambda x: (x * w).sum())
    total(w).backward()
    assert w.grad.tolist() == [4.0, 6.0]
    w.grad = None
    total(other).backward()
    assert (w.grad.tolist(), other.grad.tolist()) == ([10.0, 100.0], [2.0, 3.0])


def test_a_view_of_what_the_function_captures_is_recorded_once():
    w = tpc.tensor([2.0, 3.0])
    part, other = w[:1], tpc.tensor([10.0])[:1]
    scaled = tpc.compile(lambda x: x * w[:1])
    for _ in range(12):
        assert (scaled(part).tolist(), scaled(other).tolist()) == ([4.0], [20.0])
    assert sum(len(known) for known in scaled.variants.values()) <= 2


def test_a_captured_tensor_that_comes_as_an_argument_later():
    a = tpc.tensor([1.0], requires_grad=True)

    @tpc.compile
    def step(x):
        (x * 2).sum().backward(inputs=[a])

    step(tpc.tensor([5.0], requires_grad=True))
    assert a.grad is None
    step(a)
    assert a.grad.tolist() == [2.0]


def test_a_view_in_order_after_a_tensor_of_its_own():
    double = tpc.compile(lambda x: x * 2)
    assert double(tpc.ones(2, 3)).shape == (2, 3)
    assert double(tpc.ones(6).reshape(2, 3)).shape == (2, 3)
