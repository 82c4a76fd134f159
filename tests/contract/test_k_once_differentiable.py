"""Section K: `once_differentiable`."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, Square, leaf, plain

once_differentiable = tpc.autograd.function.once_differentiable

TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class Once(tpc.autograd.Function):
    """x * y, whose backward may only be differentiated once."""

    modes: list = []

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        Once.modes.append(tpc.is_grad_enabled())
        return g * y, None


def first(x):
    """The gradient of `Once`, recorded, from a gradient without history."""
    (gx,) = tpc.autograd.grad(Once.apply(x, plain(3.0)), x, tpc.ones(1), create_graph=True)
    return gx


def first_tracked(x):
    """The same, from a gradient that has a history (that of x)."""
    (gx,) = tpc.autograd.grad(Once.apply(x, plain(3.0)), x, x * 1, create_graph=True)
    return gx


def test_134_backward_runs_unrecorded(mode: Mode):
    Once.modes.clear()
    mode.call(first, leaf(2.0))
    assert Once.modes
    assert not any(Once.modes)
    assert Once.backward.__name__ == "backward"


def test_135_results_are_plain_without_a_tracked_gradient(mode: Mode):
    gx = mode.call(first, leaf(2.0))
    assert (gx.item(), gx.requires_grad) == (3.0, False)


def test_136_results_claim_to_be_tracked_with_one(mode: Mode):
    gx = mode.call(first_tracked, leaf(2.0))
    assert (gx.item(), gx.requires_grad) == (6.0, True)


def test_136_and_differentiating_them_is_an_error(mode: Mode):
    with pytest.raises(RuntimeError, match=TWICE):
        mode.backward(first_tracked, leaf(2.0))


def test_136_the_error_comes_behind_other_operations_too(mode: Mode):
    with pytest.raises(RuntimeError, match=TWICE):
        mode.backward(lambda x: (first_tracked(x) * 2).sum(), leaf(2.0))


def test_136_also_where_the_call_itself_is_differentiated_outside(mode: Mode):
    x, seed = leaf(2.0), leaf(1.0)
    y = mode.call(lambda x: Once.apply(x, plain(3.0)), x)
    (gx,) = tpc.autograd.grad(y, x, seed, create_graph=True)
    assert gx.item() == 3.0
    with pytest.raises(RuntimeError, match=TWICE):
        gx.backward(tpc.ones(1))


def test_136_none_results_stay_none(mode: Mode):
    def none_for_second(x, y):
        return tpc.autograd.grad(Once.apply(x, y), [x, y], x * 1, create_graph=True, allow_unused=True)

    gx, gy = mode.call(none_for_second, leaf(2.0), leaf(3.0))
    assert (gx.item(), gy) == (6.0, None)


def test_137_a_direct_double_backward_finds_no_history(mode: Mode):
    def double(x):
        first(x).backward(tpc.ones(1))

    with pytest.raises(RuntimeError, match="does not require grad"):
        mode.call(double, leaf(2.0))


def test_137_nested_func_grad_gives_zero(mode: Mode):
    class OnceSquare(tpc.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    nested = lambda x: tpc.func.grad(tpc.func.grad(OnceSquare.apply))(x[0])
    assert mode.call(nested, plain(3.0)).item() == 0.0


def test_138_first_order_use_is_unaffected(mode: Mode):
    x = leaf(2.0)
    mode.backward(lambda x: Square.apply(Once.apply(x, plain(3.0))), x)
    assert x.grad.item() == 36.0
