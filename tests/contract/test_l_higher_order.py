"""Section L: what a backward connects, and what it loses, when it is differentiated itself."""

from __future__ import annotations

import warnings

import pytest

import tpc
from tests.contract.modes import Mode, Product, Square, custom, leaf, plain


def second(mode: Mode, function, *args):
    """Gradients of the sum of squares of the first gradients, with respect to the arguments; both derivatives outside, or all inside."""

    def from_output(out, args):
        firsts = tpc.autograd.grad(out, list(args), tpc.ones_like(out), create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in firsts if g is not None)
        return firsts, tpc.autograd.grad(total, list(args), allow_unused=True) if total.requires_grad else None

    if mode.name == "joint":
        return mode.call(lambda *args: from_output(function(*args), args), *args)
    return from_output(mode.call(function, *args), args)


def items(tensors):
    return None if tensors is None else [None if t is None else t.item() for t in tensors]


def test_139_backward_records_iff_create_graph(mode: Mode):
    seen = []

    class Watching(Square):
        @staticmethod
        def backward(ctx, g):
            seen.append(tpc.is_grad_enabled())
            return Square.backward(ctx, g)

    def first(x, create_graph):
        return tpc.autograd.grad(Watching.apply(x), x, tpc.ones(1), create_graph=create_graph)[0]

    for create_graph in (False, True):
        seen.clear()
        gx = mode.call(lambda x, c=create_graph: first(x, c), leaf(3.0))
        assert (gx.item(), gx.requires_grad, seen[0]) == (6.0, create_graph, create_graph)


class ByOutput(tpc.autograd.Function):
    """exp(x) by its saved output."""

    @staticmethod
    def forward(ctx, x):
        y = tpc.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class InputAttribute(tpc.autograd.Function):
    """x ** 3 by an input kept as an attribute."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.x * ctx.x


class OutputAttribute(tpc.autograd.Function):
    """exp(x) by the output object kept as an attribute."""

    @staticmethod
    def forward(ctx, x):
        ctx.y = tpc.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y


def test_140_saved_inputs_are_connected(mode: Mode):
    (first,), (gx,) = second(mode, Square.apply, leaf(3.0))  # (2x)^2
    assert (first.item(), gx.item()) == (6.0, 24.0)


def test_140_several_saved_inputs_are_connected(mode: Mode):
    _, grads = second(mode, Product.apply, leaf(2.0), leaf(3.0))  # b^2 + a^2
    assert items(grads) == [4.0, 6.0]


@pytest.mark.parametrize("function", [ByOutput, OutputAttribute])
def test_140_saved_outputs_are_connected(mode: Mode, function):
    _, (gx,) = second(mode, function.apply, leaf(1.0))  # exp(2x)
    assert gx.item() == pytest.approx(2 * 7.389056, rel=1e-6)


def test_140_input_attributes_are_connected(mode: Mode):
    _, (gx,) = second(mode, InputAttribute.apply, leaf(2.0))  # 9 x^4
    assert gx.item() == 36 * 8


def test_140_the_incoming_gradient_is_connected(mode: Mode):
    def wrt_seed(x, seed):
        (gx,) = tpc.autograd.grad(Square.apply(x), x, seed, create_graph=True)
        return gx

    x, seed = leaf(3.0), leaf(5.0)
    mode.backward(wrt_seed, x, seed)
    assert (seed.grad.item(), x.grad.item()) == (6.0, 10.0)


def test_140_third_order(mode: Mode):
    def third(x):
        (a,) = tpc.autograd.grad(InputAttribute.apply(x), x, tpc.ones(1), create_graph=True)
        (b,) = tpc.autograd.grad(a, x, tpc.ones(1), create_graph=True)
        return b

    x = leaf(2.0)
    assert mode.backward(third, x).item() == 12.0
    assert x.grad.item() == 6.0


def by_intermediate(keep):
    """x ** 3 by an intermediate x ** 2 that `keep(ctx, middle)` keeps and backward gets back from `keep.read(ctx)`."""

    def forward(ctx, x):
        middle = x * x
        keep[0](ctx, middle)
        return middle * x

    return custom(forward=forward, backward=lambda ctx, g: g * 3 * keep[1](ctx))


KEPT = {
    "saved": (lambda ctx, m: ctx.save_for_backward(m), lambda ctx: ctx.saved_tensors[0]),
    "attribute": (lambda ctx, m: setattr(ctx, "m", m), lambda ctx: ctx.m),
    "requiring grad": (lambda ctx, m: ctx.save_for_backward(m.requires_grad_()), lambda ctx: ctx.saved_tensors[0]),
}


@pytest.mark.parametrize("kept", ["saved", "attribute"])
def test_141_intermediates_are_not_connected(mode: Mode, kept: str):
    (first,), grads = second(mode, by_intermediate(KEPT[kept]).apply, leaf(2.0))
    assert (first.item(), first.requires_grad, grads) == (12.0, False, None)


def test_141_making_them_require_grad_does_not_help(mode: Mode):
    (first,), grads = second(mode, by_intermediate(KEPT["requiring grad"]).apply, leaf(2.0))
    assert (first.item(), items(grads)) == (12.0, [None])


def test_141_part_of_the_gradient_is_silently_missing(mode: Mode):
    def forward(ctx, x):
        middle = x * x
        ctx.save_for_backward(x, middle)
        return middle * x

    def backward(ctx, g):
        x, middle = ctx.saved_tensors
        return g * (middle + 2 * x * x)

    _, (gx,) = second(mode, custom(forward=forward, backward=backward).apply, leaf(2.0))
    assert gx.item() == 2 * 12 * 8  # d(3x^2)/dx is 12, without the intermediate 8


class Cured(tpc.autograd.Function):
    """(x ** 3, x ** 2): the intermediate is an output, saved, and its gradient is handled."""

    @staticmethod
    def forward(ctx, x):
        middle = x * x
        ctx.save_for_backward(x, middle)
        return middle * x, middle

    @staticmethod
    def backward(ctx, g, gm):
        x, middle = ctx.saved_tensors
        return g * 3 * middle + gm * 2 * x


def test_142_an_intermediate_that_is_an_output_is_connected(mode: Mode):
    _, (gx,) = second(mode, lambda x: Cured.apply(x)[0], leaf(2.0))
    assert gx.item() == 2 * 12 * 12


def test_142_to_any_order(mode: Mode):
    def third(x):
        (a,) = tpc.autograd.grad(Cured.apply(x)[0], x, tpc.ones(1), create_graph=True)
        (b,) = tpc.autograd.grad(a, x, tpc.ones(1), create_graph=True)
        return b

    x = leaf(2.0)
    mode.backward(third, x)
    assert x.grad.item() == 6.0


class SineBackward(tpc.autograd.Function):
    """g * cos(x), with a backward of its own."""

    @staticmethod
    def forward(ctx, g, x):
        ctx.save_for_backward(g, x)
        return g * tpc.cos(x)

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        return gg * tpc.cos(x), gg * g * -tpc.sin(x) * 100  # * 100 shows that this rule is the one in use


class Sine(tpc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tpc.sin(x)

    @staticmethod
    def backward(ctx, g):
        return SineBackward.apply(g, ctx.saved_tensors[0])


def test_143_backward_may_call_other_functions(mode: Mode):
    x = leaf(0.0)
    mode.backward(Sine.apply, x)
    assert x.grad.item() == 1.0


def test_143_higher_orders_go_through_their_backward(mode: Mode):
    def first(x):
        return tpc.autograd.grad(Sine.apply(x), x, tpc.ones(1), create_graph=True)[0]

    x = leaf(1.0)
    mode.backward(first, x)
    assert x.grad.item() == pytest.approx(-84.147098, rel=1e-6)


def test_144_a_gradient_penalty_through_functions_and_parameters(mode: Mode):
    """f = (a x)^2; penalty (df/dx)^2 = 4 a^4 x^2, so d/da = 16 a^3 x^2 and d/dx = 8 a^4 x."""

    def penalty(a, x):
        (gx,) = tpc.autograd.grad(Square.apply(Product.apply(a, x)), x, tpc.ones(1), create_graph=True)
        return gx * gx

    a, x = leaf(2.0), leaf(3.0)
    assert mode.backward(penalty, a, x).item() == 4 * 16 * 9
    assert (a.grad.item(), x.grad.item()) == (16 * 8 * 9, 8 * 16 * 3)


def test_144_mixed_second_derivatives(mode: Mode):
    def mixed(a, x):
        (ga,) = tpc.autograd.grad(Square.apply(Product.apply(a, x)), a, tpc.ones(1), create_graph=True)  # 2 a x^2
        (gax,) = tpc.autograd.grad(ga, x, tpc.ones(1), create_graph=True)  # 4 a x
        return gax

    a, x = leaf(2.0), leaf(3.0)
    assert mode.backward(mixed, a, x).item() == 24.0
    assert (a.grad.item(), x.grad.item()) == (12.0, 8.0)


def test_144_a_penalty_outside_the_compiled_function(mode: Mode):
    a, x = leaf(2.0), leaf(3.0)
    y = mode.call(lambda a, x: Square.apply(Product.apply(a, x)), a, x)
    (gx,) = tpc.autograd.grad(y, x, tpc.ones(1), create_graph=True)
    (gx * gx).backward(tpc.ones(1))
    assert (a.grad.item(), x.grad.item()) == (16 * 8 * 9, 8 * 16 * 3)


def test_145_no_grad_in_backward_cuts_what_is_computed_there(mode: Mode):
    class Cut(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with tpc.no_grad():
                constant = x * x
            return g * 2 * x + 0 * constant + (constant - x.detach() * x.detach())

    (first,), (gx,) = second(mode, Cut.apply, leaf(3.0))
    assert (first.item(), gx.item()) == (6.0, 24.0)


def test_145_a_backward_wholly_under_no_grad(mode: Mode):
    class Cut(Square):
        @staticmethod
        def backward(ctx, g):
            with tpc.no_grad():
                return Square.backward(ctx, g)

    (first,), grads = second(mode, Cut.apply, leaf(3.0))
    assert (first.item(), first.requires_grad, grads) == (6.0, False, None)


def test_146_backward_with_create_graph_warns_and_leaves_a_tracked_gradient(mode: Mode):
    x = leaf(3.0)
    with pytest.warns(UserWarning, match="reference cycle"):
        mode.backward(Square.apply, x, create_graph=True)
    assert (x.grad.item(), x.grad.requires_grad) == (6.0, True)
    gradient, x.grad = x.grad, None
    (second,) = tpc.autograd.grad(gradient, x, tpc.ones(1))
    assert second.item() == 2.0


def test_146_the_tracked_gradient_can_be_used_in_the_same_function(mode: Mode):
    def twice(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Square.apply(x).backward(tpc.ones(1), create_graph=True)
        gradient = x.grad
        x.grad = None
        gradient.backward(tpc.ones(1))
        return plain(0.0)

    x = leaf(3.0)
    mode.call(twice, x)
    assert x.grad.item() == 2.0
