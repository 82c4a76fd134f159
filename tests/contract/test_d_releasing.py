"""Section D: how long saved tensors live, and the other attributes of ctx."""

from __future__ import annotations

import math
import warnings

import pytest

import tpc
from tests.contract.modes import Double, Mode, Square, custom, leaf
from tests.contract.test_d_saving import SECOND_TIME, Exponential


def twice(mode: Mode, function, x, **options):
    """Back-propagates twice from one call of `function`."""

    def both(x):
        out = function(x)
        tpc.autograd.backward(out, tpc.ones_like(out), **options)
        tpc.autograd.backward(out, tpc.ones_like(out))

    if mode.name == "joint":
        mode.call(both, x)
        return
    out = mode.call(function, x)
    tpc.autograd.backward(out, tpc.ones_like(out), **options)
    tpc.autograd.backward(out, tpc.ones_like(out))


def test_054_a_second_pass_reads_freed_tensors(mode: Mode):
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        twice(mode, Square.apply, leaf(3.0))


def test_054_built_in_operations_too(mode: Mode):
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        twice(mode, lambda x: x * x, leaf(3.0))


def test_054_reading_saved_tensors_of_a_node_after_its_pass():
    y = Square.apply(leaf(3.0))
    y.backward(tpc.ones(1))
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.grad_fn.saved_tensors


def test_055_what_does_not_read_runs_again(mode: Mode):
    class Unread(Square):
        @staticmethod
        def backward(ctx, g):
            return g * 7

    for function in (Unread, Double):
        x = leaf(3.0)
        twice(mode, function.apply, x)
        assert x.grad.tolist() == [14.0 if function is Unread else 4.0]


def test_055_reading_what_was_never_filled_after_the_first_pass(mode: Mode):
    def backward(ctx, g):
        assert ctx.saved_tensors == ()
        return g

    with pytest.raises(RuntimeError, match=SECOND_TIME):
        twice(mode, custom(forward=lambda ctx, x: x * 2, backward=backward).apply, leaf(3.0))


@pytest.mark.parametrize("options", [{"retain_graph": True}, {"create_graph": True}])
def test_056_retain_graph_and_create_graph_keep_saved_tensors(mode: Mode, options: dict):
    x = leaf(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice(mode, Square.apply, x, **options)
    assert x.grad.tolist() == [12.0]


def test_057_only_nodes_that_ran_are_freed(mode: Mode):
    def partial(x):
        y = Square.apply(x)
        z = Square.apply(y)
        (gy,) = tpc.autograd.grad(z.sum(), y)
        return y, gy

    x = leaf(3.0)
    _, gy = mode.backward(partial, x)
    assert (gy.tolist(), x.grad.tolist()) == ([18.0], [6.0])


def test_057_outputs_of_one_call_can_be_back_propagated_one_by_one(mode: Mode):
    def both(x):
        return Square.apply(x), Exponential.apply(x)

    def one_by_one(x):
        for out in both(x):
            out.backward(tpc.ones(1))

    x = leaf(0.5)
    if mode.name == "joint":
        mode.call(one_by_one, x)
    else:
        for out in mode.call(both, x):
            out.backward(tpc.ones(1))
            with pytest.raises(RuntimeError, match=SECOND_TIME):
                out.backward(tpc.ones(1))
    assert x.grad.item() == pytest.approx(1.0 + math.exp(0.5))


class Fails(tpc.autograd.Function):
    """Raises the first time that backward runs, after it read its saved tensor."""

    times = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Fails.times += 1
        if Fails.times == 1:
            raise ArithmeticError("once")
        return g * 2 * x


def test_058_a_pass_that_raised_can_be_repeated():
    Fails.times = 0
    x, early = leaf(3.0), leaf(1.0)
    out = Fails.apply(x) + early
    with pytest.raises(ArithmeticError, match="once"):
        out.sum().backward()
    assert (x.grad, early.grad.tolist()) == (None, [1.0])
    out.sum().backward()
    assert (x.grad.tolist(), early.grad.tolist()) == ([6.0], [2.0])


def test_058_the_failing_nodes_saved_tensors_stay(mode: Mode):
    Fails.times = 0
    x = leaf(3.0)
    y = mode.call(Fails.apply, x)
    if mode.name == "deferred":
        with pytest.raises(ArithmeticError, match="once"):
            y.backward(tpc.ones(1))
    y.backward(tpc.ones(1))
    assert x.grad.tolist() == [6.0]


def test_059_attributes_survive_every_pass_and_may_be_set_in_backward():
    def backward(ctx, g):
        ctx.count = getattr(ctx, "count", 0) + 1
        return g * ctx.factor

    def forward(ctx, x):
        ctx.factor = 4
        return x * 4

    x = leaf(1.0)
    y = custom("Counting", forward=forward, backward=backward).apply(x)
    y.sum().backward()
    y.sum().backward()
    assert (y.grad_fn.count, y.grad_fn.factor) == (2, 4)
    with pytest.raises(AttributeError, match=r"CountingBackward.*missing"):
        y.grad_fn.missing


def test_059_attributes_carry_values_to_backward(mode: Mode):
    def forward(ctx, x, n):
        ctx.n, ctx.names, ctx.weight = n, ["a"], x.detach() * 10
        return x * n

    Carrying = custom(forward=forward, backward=lambda ctx, g: (g * ctx.n * len(ctx.names) * ctx.weight, None))
    x = leaf(2.0)
    mode.backward(lambda x: Carrying.apply(x, 3), x)
    assert x.grad.tolist() == [60.0]


def test_060_saved_variables_is_the_deprecated_name(mode: Mode):
    class Old(Square):
        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_variables[0]

    x = leaf(3.0)
    with pytest.warns(DeprecationWarning, match="saved_variables"):
        mode.backward(Old.apply, x)
    assert x.grad.tolist() == [6.0]


def test_061_to_save_may_be_set_instead(mode: Mode):
    def forward(ctx, x):
        ctx.to_save = (x,)
        return x * x

    x = leaf(3.0)
    mode.backward(custom(forward=forward, backward=lambda ctx, g: g * 2 * ctx.saved_tensors[0]).apply, x)
    assert x.grad.tolist() == [6.0]


def test_061_to_save_must_be_a_tuple(mode: Mode):
    def forward(ctx, x):
        ctx.to_save = [x]
        return x * x

    with pytest.raises(RuntimeError, match="to_save attribute is expected to be a tuple"):
        mode.call(custom(forward=forward, backward=lambda ctx, g: g).apply, leaf(3.0))


@pytest.mark.parametrize("name", ["saved_tensors", "next_functions", "metadata", "saved_variables"])
def test_062_results_of_the_node_are_read_only(mode: Mode, name: str):
    def forward(ctx, x):
        setattr(ctx, name, ())
        return x

    with pytest.raises(AttributeError):
        mode.call(custom(forward=forward).apply, leaf(1.0))


@pytest.mark.parametrize("retain", [False, True])
def test_063_maybe_clear_saved_tensors_frees_unless_the_pass_retains(retain: bool):
    seen = []

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.maybe_clear_saved_tensors()
        try:
            seen.append(len(ctx.saved_tensors))
        except RuntimeError as error:
            seen.append("freed" if "a second time" in str(error) else str(error))
        return g * 2 * x

    Clearing = type("Clearing", (Square,), {"backward": staticmethod(backward)})
    Clearing.apply(leaf(3.0)).sum().backward(retain_graph=retain)
    assert seen == [1 if retain else "freed"]


def test_063_maybe_clear_saved_tensors_leaves_the_gradients_as_they_are(mode: Mode):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.maybe_clear_saved_tensors()
        return g * 2 * x

    Clearing = type("Clearing", (Square,), {"backward": staticmethod(backward)})
    x = leaf(3.0)
    mode.backward(Clearing.apply, x)
    assert x.grad.tolist() == [6.0]


def test_064_saved_tensors_that_can_be_read_once(mode: Mode):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with pytest.raises(RuntimeError, match="can only be accessed once"):
            ctx.saved_tensors
        return g * 2 * x

    Once = type("Once", (Square,), {"clear_saved_tensors_on_access": True, "backward": staticmethod(backward)})
    x = leaf(3.0)
    mode.backward(Once.apply, x)
    assert x.grad.tolist() == [6.0]


def test_064_boxed_gradients_are_one_mutable_list(mode: Mode):
    seen = []

    def backward(ctx, grads):
        seen.append((type(grads), len(grads)))
        first = grads.pop(0)
        grads.clear()
        return first * 2

    Boxed = custom(forward=lambda ctx, x: (x * 2, x * 3), backward=backward, boxed_grads_call=True)
    x = leaf(3.0)
    mode.backward(Boxed.apply, x)
    assert (seen[-1], x.grad.tolist()) == ((list, 2), [2.0])


def test_065_inference_tensors_cannot_be_saved(mode: Mode):
    with tpc.inference_mode():
        constant = tpc.ones(1)

    def forward(ctx, x):
        ctx.save_for_backward(constant)
        return x * constant

    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        mode.call(custom(forward=forward, backward=lambda ctx, g: g).apply, leaf(1.0))


def test_063_release_saved_frees_at_once():
    """Difference: PyTorch has no `release_saved`."""
    y = Exponential.apply(leaf(1.0))
    y.grad_fn.release_saved()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.sum().backward()
