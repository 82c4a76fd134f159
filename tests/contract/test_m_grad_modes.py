"""Section M: apply and backward under the grad modes."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref

import pytest

import tpc
from tests.contract.modes import Mode, Square, back_propagate, custom, leaf, plain


def test_147_under_no_grad_the_output_is_an_untracked_leaf(mode: Mode):
    def run(x):
        with tpc.no_grad():
            return Square.apply(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = mode.call(run, leaf(3.0))
    assert y.tolist() == [9.0]
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)


def test_147_under_no_grad_the_ctx_is_dropped():
    kept = []

    def forward(ctx, x):
        kept.append(weakref.ref(ctx))
        ctx.save_for_backward(x)
        return x * x

    Watched = custom(forward=forward, backward=lambda ctx, g: g)
    gc.disable()
    try:
        with tpc.no_grad():
            y = Watched.apply(leaf(3.0))
        assert y.tolist() == [9.0]
        assert kept[0]() is None
    finally:
        gc.enable()


class Recomputed(tpc.autograd.Function):
    """x * x * x; backward differentiates a graph that it builds itself."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with tpc.enable_grad():
            inner = x.detach().requires_grad_()
            y = inner * inner * inner
        (gx,) = tpc.autograd.grad(y, inner, g)
        return gx


def test_148_backward_may_build_a_graph_and_differentiate_it(mode: Mode):
    x = leaf(2.0, 3.0)
    mode.backward(Recomputed.apply, x)
    assert x.grad.tolist() == [12.0, 27.0]


class Private(tpc.autograd.Function):
    """sin(x) * x, with the graph built in forward and differentiated in backward."""

    @staticmethod
    def forward(ctx, x):
        with tpc.enable_grad():
            ctx.inner = x.detach().requires_grad_()
            ctx.graph = ctx.inner * ctx.inner
        return ctx.graph

    @staticmethod
    def backward(ctx, g):
        (gx,) = tpc.autograd.grad(ctx.graph, ctx.inner, g)
        return gx


def test_148_forward_may_build_a_private_graph(mode: Mode):
    class Returned(Private):
        @staticmethod
        def forward(ctx, x):
            return Private.forward(ctx, x).detach()

    x = leaf(2.0, 3.0)
    mode.backward(Returned.apply, x)
    assert x.grad.tolist() == [4.0, 6.0]


def test_148_what_it_returns_is_relabelled():
    y = Private.apply(leaf(2.0))
    assert y.grad_fn.name() == "PrivateBackward"


def test_149_in_inference_mode_the_output_is_an_inference_tensor():
    class Everything(Square):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            y = x * x
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x)
            ctx.mark_non_differentiable(y)
            return y

    with tpc.inference_mode():
        y = Everything.apply(leaf(3.0))
        assert tpc.is_inference_mode_enabled()
    assert not tpc.is_inference_mode_enabled()
    assert y.tolist() == [9.0]
    assert (y.is_inference(), y.requires_grad, y.grad_fn) == (True, False, None)


def test_149_inference_mode_inside_a_function(mode: Mode):
    def run(x):
        with tpc.inference_mode():
            return Square.apply(x)

    y = mode.call(run, leaf(3.0))
    assert y.tolist() == [9.0]
    assert (y.is_inference(), y.requires_grad) == (True, False)


def test_149_a_compiled_function_called_in_inference_mode(mode: Mode):
    x = leaf(3.0)
    assert mode.backward(Square.apply, x).tolist() == [9.0]
    with tpc.inference_mode():
        y = mode.call(Square.apply, x)
    assert (y.tolist(), y.is_inference(), y.requires_grad) == ([9.0], True, False)


def test_149_tensors_made_before_stay_ordinary():
    x = plain(1.0)
    with tpc.inference_mode():
        view, made = x[:1], x + 1
        assert not x.is_inference()
        assert not view.is_inference()
        assert made.is_inference()
        x.add_(1)
        made.add_(1)
    assert (x.tolist(), made.tolist()) == ([2.0], [3.0])


def test_149_what_inference_tensors_refuse_outside():
    with tpc.inference_mode():
        made = plain(1.0) + 1
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        made.add_(1)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        made.requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        leaf(1.0) * made
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        made._version
    assert (made * 2).is_inference() is False
    assert made.clone().requires_grad_().requires_grad


def test_149_inference_mode_is_a_decorator_and_can_be_left(mode: Mode):
    @tpc.inference_mode()
    def run(x):
        assert tpc.is_inference_mode_enabled()
        with tpc.inference_mode(False):
            assert not tpc.is_inference_mode_enabled()
            assert tpc.is_grad_enabled()
        return x * 2

    assert mode.call(run, leaf(3.0)).requires_grad is False


def test_150_backward_under_no_grad(mode: Mode):
    def run(x):
        y = Square.apply(x)
        with tpc.no_grad():
            back_propagate(y)
        return y.detach()

    x = leaf(3.0)
    mode.call(run, x)
    assert x.grad.tolist() == [6.0]


def test_150_backward_of_a_compiled_call_under_no_grad(mode: Mode):
    x = leaf(3.0)
    y = mode.call(Square.apply, x)
    with tpc.no_grad():
        back_propagate(y)
    assert x.grad.tolist() == [6.0]


def test_150_create_graph_records_whatever_the_mode_of_the_caller(mode: Mode):
    seen = []

    class Watched(Square):
        @staticmethod
        def backward(ctx, g):
            seen.append(tpc.is_grad_enabled())
            return Square.backward(ctx, g)

    def run(x):
        y = Watched.apply(x)
        with tpc.no_grad():
            (first,) = tpc.autograd.grad(y, x, tpc.ones_like(y), create_graph=True)
            assert not tpc.is_grad_enabled()
        (second,) = tpc.autograd.grad(first, x, tpc.ones_like(first))
        return first.detach(), second

    first, second = mode.call(run, leaf(3.0))
    assert (first.tolist(), second.tolist()) == ([6.0], [2.0])
    assert seen[0] is True


def test_150_grad_without_create_graph_does_not_record(mode: Mode):
    def run(x):
        y = Square.apply(x)
        (first,) = tpc.autograd.grad(y, x, tpc.ones_like(y))
        return first

    assert mode.call(run, leaf(3.0)).requires_grad is False


def test_151_the_mode_belongs_to_a_thread(mode: Mode):
    seen = []

    def work():
        x = leaf(3.0)
        y = mode.call(Square.apply, x)
        seen.append((tpc.is_grad_enabled(), y.requires_grad))

    with tpc.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not tpc.is_grad_enabled()
    assert seen == [(True, True)]


def test_151_modes_are_decorators_of_functions_and_generators():
    @tpc.no_grad()
    def function():
        return tpc.is_grad_enabled()

    @tpc.no_grad
    def bare():
        return tpc.is_grad_enabled()

    @tpc.no_grad()
    def generator():
        yield tpc.is_grad_enabled()
        yield tpc.is_grad_enabled()

    @tpc.set_grad_enabled(False)
    def switched():
        return tpc.is_grad_enabled()

    assert (function(), bare(), switched()) == (False, False, False)
    running = generator()
    assert next(running) is False
    assert tpc.is_grad_enabled()
    assert next(running) is False


def test_151_an_exception_restores_the_mode(mode: Mode):
    def run(x):
        with tpc.no_grad():
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        mode.call(run, leaf(1.0))
    assert tpc.is_grad_enabled()
