"""Section G, first part: inputs that are returned, views, and what may be written in place."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, custom, leaf, plain

Same = custom("Same", forward=lambda ctx, x: x, backward=lambda ctx, g: g * 2)
FirstPart = custom("FirstPart", forward=lambda ctx, x: x[:1], backward=lambda ctx, g: tpc.cat([g * 5, tpc.zeros_like(g)]))
ViewAndFresh = custom(
    "ViewAndFresh", forward=lambda ctx, x: (x[:1], x * 3), backward=lambda ctx, g, h: h * 3 + tpc.cat([g, tpc.zeros_like(g)])
)
INSIDE = "This view was created inside a custom Function"
MULTIPLE = "output of a function that returns multiple views"
NO_GRAD = "A view was created in no_grad mode"


def test_081_a_returned_input_is_a_new_tensor_on_the_node(mode: Mode):
    seen = []

    def look(w):
        x = w * 1
        y = Same.apply(x)
        seen.append((y is x, type(y.grad_fn).__name__, type(x.grad_fn).__name__, y._base is x))
        return y

    w = leaf(1.0, 2.0)
    mode.backward(look, w)
    assert seen[-1] == (False, "SameBackward", "MulBackward0", True)
    assert w.grad.tolist() == [2.0, 2.0]


def test_081_a_leaf_that_is_returned_stays_a_leaf(mode: Mode):
    x = leaf(1.0, 2.0)
    y = mode.backward(Same.apply, x)
    assert (y is x, x.is_leaf, x.grad_fn, x.grad.tolist()) == (False, True, None, [2.0, 2.0])


def test_081_the_alias_shares_memory(mode: Mode):
    def written(w):
        x = w * 1
        y = Same.apply(x)
        with tpc.no_grad():
            x.mul_(10)
        return y.detach() * 1

    assert mode.call(written, leaf(1.0, 2.0)).tolist() == [10.0, 20.0]


def test_081_the_alias_of_an_argument_shares_memory_with_it(mode: Mode):
    x = leaf(1.0, 2.0)
    y = mode.call(Same.apply, x)
    with tpc.no_grad():
        x.mul_(10)
    assert y.tolist() == [10.0, 20.0]


def test_082_a_fresh_alias_without_any_tracking(mode: Mode):
    x = plain(1.0)
    y = mode.call(Same.apply, x)
    assert (y is x, y.requires_grad) == (False, False)
    x.add_(1)
    assert y.tolist() == [2.0]


def test_082_a_fresh_alias_under_no_grad(mode: Mode):
    x = leaf(1.0)
    with tpc.no_grad():
        y = mode.call(Same.apply, x)
    assert (y is x, y.requires_grad, x.requires_grad) == (False, False, True)


SAVES = {
    "the input": lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    "the output": lambda ctx, inputs, output: ctx.save_for_backward(output),
    "for forward mode": lambda ctx, inputs, output: ctx.save_for_forward(inputs[0]),
}


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("make", [leaf, plain])
def test_083_split_style_cannot_save_a_returned_input(mode: Mode, save: str, make):
    Saving = custom(forward=lambda x: x, setup_context=SAVES[save], backward=lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"An input that has been returned as-is.*save a view of the input instead"):
        mode.call(Saving.apply, make(1.0))


def test_083_a_view_may_be_saved(mode: Mode):
    Saving = custom(
        forward=lambda x: x.view_as(x),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
        backward=lambda ctx, g: g * ctx.saved_tensors[0],
    )
    x = leaf(3.0)
    mode.backward(Saving.apply, x)
    assert x.grad.tolist() == [3.0]


def test_083_a_dirty_input_may_be_saved(mode: Mode):
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(output)

    Doubling = custom(forward=lambda x: x.mul_(2), setup_context=setup_context, backward=lambda ctx, g: g * ctx.saved_tensors[0])
    w = leaf(3.0)
    mode.backward(lambda w: Doubling.apply(w * 1), w)
    assert w.grad.tolist() == [6.0]


@pytest.mark.parametrize("function", [Same, FirstPart])
def test_084_a_view_output_can_be_used(mode: Mode, function):
    w = leaf(1.0, 2.0)
    mode.backward(lambda w: function.apply(w * 1) * 10, w)
    assert w.grad.tolist() == ([20.0, 20.0] if function is Same else [50.0, 0.0])


@pytest.mark.parametrize("function", [Same, FirstPart])
def test_084_a_view_output_must_not_be_written(mode: Mode, function):
    with pytest.raises(RuntimeError, match=INSIDE):
        mode.call(lambda w: function.apply(w * 1).mul_(2), leaf(1.0, 2.0))


@pytest.mark.parametrize("function", [Same, FirstPart])
def test_084_nor_a_view_of_it(mode: Mode, function):
    with pytest.raises(RuntimeError, match=INSIDE):
        mode.call(lambda w: function.apply(w * 1)[:1].mul_(2), leaf(1.0, 2.0))


@pytest.mark.parametrize("function", [Same, FirstPart])
def test_084_nor_used_after_its_base_was_written(mode: Mode, function):
    """The history of the view would be that of the base, and the custom backward lost."""

    def written(w):
        x = w * 1
        y = function.apply(x)
        x.mul_(3)
        return y * 1

    with pytest.raises(RuntimeError, match=f"its base or another view of its base has been modified inplace. {INSIDE}"):
        mode.call(written, leaf(1.0, 2.0))


def test_084_a_view_output_must_not_be_written_after_the_call(mode: Mode):
    x = leaf(1.0, 2.0)
    y = mode.call(Same.apply, x)
    with pytest.raises(RuntimeError, match=INSIDE):
        y.mul_(2)


def test_085_with_two_outputs_the_views_say_so(mode: Mode):
    with pytest.raises(RuntimeError, match=MULTIPLE):
        mode.call(lambda w: ViewAndFresh.apply(w * 1)[0].mul_(2), leaf(1.0, 2.0))


def test_085_the_fresh_output_beside_a_view_may_be_written(mode: Mode):
    w = leaf(1.0, 2.0)
    mode.backward(lambda w: ViewAndFresh.apply(w * 1)[1].mul_(2), w)
    assert w.grad.tolist() == [6.0, 6.0]


def test_086_a_view_made_under_no_grad_counts_as_tracked(mode: Mode):
    def look(w):
        x = w * 1
        with tpc.no_grad():
            v, same = FirstPart.apply(x), Same.apply(x)
        seen.append((v.requires_grad, v.grad_fn, same.requires_grad))
        return x

    seen: list = []
    mode.call(look, leaf(1.0, 2.0))
    assert seen[-1] == (True, None, False)


def test_086_and_must_not_be_written_while_recording(mode: Mode):
    def written(w):
        x = w * 1
        with tpc.no_grad():
            v = FirstPart.apply(x)
        return v.mul_(2)

    with pytest.raises(RuntimeError, match=NO_GRAD):
        mode.call(written, leaf(1.0, 2.0))


def test_086_a_write_with_recording_off_is_fine(mode: Mode):
    def written(w):
        x = w * 1
        with tpc.no_grad():
            FirstPart.apply(x).mul_(2)
        return x

    w = leaf(1.0, 2.0)
    assert mode.backward(written, w).tolist() == [2.0, 2.0]
    assert w.grad.tolist() == [1.0, 1.0]


def test_087_a_fresh_output_may_be_written(mode: Mode):
    Twice = custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)

    def written(w):
        y = Twice.apply(w * 1)
        y.mul_(5)
        y[:1].mul_(2)
        return y

    w = leaf(1.0, 2.0)
    assert mode.backward(written, w).tolist() == [20.0, 20.0]
    assert w.grad.tolist() == [20.0, 10.0]
