"""What a user's backward does to the world outside happens at each backward of a compiled call, as in deferred mode."""

from __future__ import annotations

import warnings

import pytest

import tpc
from tests.contract.modes import MODES, Mode, Product, Square, custom, leaf, plain


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> Mode:
    return MODES[request.param]


def passes(mode: Mode, function, x, count: int = 3) -> list:
    """Gradients of x from calls of one compiled function, each back-propagated."""

    def step(x):
        y = function(x)
        y.backward(tpc.ones_like(y))

    call = mode.compiled(step if mode.name == "joint" else function)
    got = []
    for _ in range(count):
        x.grad = None
        if mode.name == "joint":
            call(x)
        else:
            y = call(x)
            y.backward(tpc.ones_like(y))
        got.append(x.grad.tolist())
    return got


def test_backward_draws_new_random_numbers(mode: Mode):
    Noisy = custom(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: g * tpc.rand(1))
    tpc.manual_seed(0)
    expected = [tpc.rand(1).tolist() for _ in range(4)]
    tpc.manual_seed(0)
    assert passes(mode, Noisy.apply, leaf(1.0)) == expected[:3]
    assert tpc.rand(1).tolist() == expected[3]


def test_forward_and_backward_draw_from_one_stream(mode: Mode):
    Noisy = custom(forward=lambda ctx, x: x + tpc.rand(1), backward=lambda ctx, g: g * tpc.rand(1))
    tpc.manual_seed(0)
    numbers = [tpc.rand(1).tolist() for _ in range(6)]
    tpc.manual_seed(0)
    assert passes(mode, Noisy.apply, leaf(1.0)) == [numbers[1], numbers[3], numbers[5]]


def test_backward_counts_in_a_buffer(mode: Mode):
    count = tpc.zeros(1)

    def backward(ctx, g):
        count.add_(1)
        return g * count

    Counted = custom(forward=lambda ctx, x: x * 1, backward=backward)
    assert passes(mode, Counted.apply, leaf(1.0)) == [[1.0], [2.0], [3.0]]
    assert count.tolist() == [3.0]


def test_forward_and_backward_write_one_buffer(mode: Mode):
    count = tpc.zeros(1)

    def forward(ctx, x):
        count.add_(10)
        return x * count

    def backward(ctx, g):
        count.add_(1)
        return g * count

    Counted = custom(forward=forward, backward=backward)
    assert passes(mode, Counted.apply, leaf(1.0)) == [[11.0], [22.0], [33.0]]
    assert count.tolist() == [33.0]


def test_backward_writes_an_argument(mode: Mode):
    def forward(ctx, x, statistic):
        ctx.statistic = statistic
        return x * 2

    def backward(ctx, g):
        ctx.statistic.mul_(0.5).add_(g.sum())
        return g * 2, None

    Watching = custom(forward=forward, backward=backward)
    statistic = plain(8.0)
    call = mode.compiled(Watching.apply)
    for _ in range(2):
        y = call(leaf(1.0), statistic)
        y.backward(tpc.ones(1))
    assert statistic.tolist() == [3.5]


def test_an_attribute_is_what_it_is_when_backward_runs(mode: Mode):
    def forward(ctx, x):
        ctx.x = x
        return x * 1

    Attribute = custom(forward=forward, backward=lambda ctx, g: g * ctx.x.detach())
    for write in (lambda x: x.add_(10), lambda x: x.data.add_(10)):
        x = leaf(1.0)
        y = mode.call(Attribute.apply, x)
        with tpc.no_grad():
            write(x)
        y.backward(tpc.ones(1))
        assert x.grad.tolist() == [11.0]


def test_what_forward_computed_from_it_stays(mode: Mode):
    def forward(ctx, x):
        ctx.x = x
        ctx.doubled = x * 2
        return x * 1

    Attribute = custom(forward=forward, backward=lambda ctx, g: g * ctx.x.detach() * ctx.doubled)
    x = leaf(1.0)
    y = mode.call(Attribute.apply, x)
    with tpc.no_grad():
        x.add_(10)
    y.backward(tpc.ones(1))
    assert x.grad.tolist() == [22.0]


def test_a_captured_tensor_is_read_when_backward_runs(mode: Mode):
    scale = plain(2.0)
    Scaled = custom(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: g * scale)
    x = leaf(1.0)
    y = mode.call(Scaled.apply, x)
    scale.fill_(5.0)
    y.backward(tpc.ones(1))
    assert x.grad.tolist() == [5.0]


def inner_backward(function):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inner = x.detach().requires_grad_()
        with tpc.enable_grad():
            y = function(inner)
        tpc.autograd.backward(y, g)
        return inner.grad

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return function(x)

    return custom("Checkpointed", forward=forward, backward=backward).apply


def test_a_pass_inside_fills_leaves_from_outside(mode: Mode):
    w = leaf(10.0)
    assert passes(mode, inner_backward(lambda x: Product.apply(x, w)), leaf(3.0), 2) == [[10.0], [10.0]]
    assert w.grad.tolist() == [6.0]


def test_their_hooks_run_then(mode: Mode):
    w, seen = leaf(10.0), []
    w.register_hook(lambda g: g * 2)
    w.register_post_accumulate_grad_hook(lambda t: seen.append(1))
    passes(mode, inner_backward(lambda x: Product.apply(x, w)), leaf(3.0), 2)
    assert w.grad.tolist() == [12.0]
    assert len(seen) >= 1


def test_a_pass_inside_that_reaches_an_argument(mode: Mode):
    def run(x, w):
        return inner_backward(lambda x: Product.apply(x, w))(x) + w * 100

    x, w = leaf(3.0), leaf(10.0)
    call = mode.compiled(run)
    for k in (1.0, 2.0):
        w = leaf(10.0 * k)
        call(x, w).backward(tpc.ones(1))
        assert w.grad.tolist() == [103.0]
    assert x.grad.tolist() == [30.0]


def test_second_derivatives_with_effects(mode: Mode):
    count = tpc.zeros(1)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        count.add_(1)
        return g * 2 * x

    Counted = custom(forward=Square.forward, backward=backward)
    x = leaf(3.0)
    y = mode.call(Counted.apply, x)
    (first,) = tpc.autograd.grad(y, x, tpc.ones(1), create_graph=True)
    (second,) = tpc.autograd.grad(first, x, tpc.ones(1))
    assert (first.tolist(), second.tolist(), count.tolist()) == ([6.0], [2.0], [1.0])


def test_backward_that_looks_at_values_runs_deferred():
    def backward(ctx, g):
        return g / g.norm() if g.norm() > 1 else g

    Clipped = custom(forward=lambda ctx, x: x * 1, backward=backward)
    call = tpc.compile(Clipped.apply)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for scale, expected in ((0.5, 0.5), (4.0, 1.0)):
            x = leaf(1.0)
            call(x).backward(tpc.ones(1) * scale)
            assert x.grad.tolist() == [expected]
    assert any("runs in deferred mode, not compiled: backward looks at a value" in str(w.message) for w in caught)
