"""Section D: what `save_for_backward` keeps, and what reading it gives."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, Square, custom, leaf, plain

SECOND_TIME = r"Trying to backward through the graph a second time.*retain_graph=True"


class Exponential(tpc.autograd.Function):
    """exp(x), saving its output."""

    @staticmethod
    def forward(ctx, x):
        y = tpc.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


def test_042_saved_tensors_come_back_in_order(mode: Mode):
    seen = []

    def forward(ctx, a, b):
        ctx.save_for_backward(b, None, a, b)
        return a * b

    def backward(ctx, g):
        saved = ctx.saved_tensors
        seen.append((type(saved), saved[0] is b, saved[1], saved[2] is a, saved[3] is b))
        return g * saved[0], g * saved[2]

    a, b = leaf(2.0), leaf(3.0)
    mode.backward(custom(forward=forward, backward=backward).apply, a, b)
    assert seen[-1] == (tuple, True, None, True, True)
    assert (a.grad.tolist(), b.grad.tolist()) == ([3.0], [2.0])


def test_042_nothing_saved_is_an_empty_tuple(mode: Mode):
    seen = []

    def backward(ctx, g):
        seen.append(ctx.saved_tensors)
        return g

    mode.backward(custom(forward=lambda ctx, x: x * 1, backward=backward).apply, leaf(1.0))
    assert seen[-1] == ()


def test_043_the_last_call_wins_and_takes_effect_after_forward(mode: Mode):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x * 100)
        ctx.save_for_backward(x)
        seen.append(ctx.saved_tensors)
        return x * x

    Last = custom(forward=forward, backward=lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    x = leaf(3.0)
    mode.backward(Last.apply, x)
    assert (seen[-1], x.grad.tolist()) == ((), [6.0])


@pytest.mark.parametrize(("what", "kind"), [(3, "int"), ([1.0], "list"), ("text", "str")])
def test_044_only_tensors_can_be_saved(mode: Mode, what: object, kind: str):
    def forward(ctx, x):
        ctx.save_for_backward(x, what)
        return x * 2

    Saving = custom(forward=forward, backward=lambda ctx, g: g * 2)
    with pytest.raises(TypeError, match=f"save_for_backward can only save variables, but argument 1 is of type {kind}"):
        mode.call(Saving.apply, leaf(1.0))
    assert mode.call(Saving.apply, plain(1.0)).tolist() == [2.0]


def test_045_saving_in_backward_has_no_effect(mode: Mode):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.save_for_backward(x * 100)
        return g * 2 * x

    Late = type("Late", (Square,), {"backward": staticmethod(backward)})
    x = leaf(3.0)
    out = mode.backward(Late.apply, x, retain_graph=True)
    out.backward(tpc.ones(1)) if mode.name == "deferred" else mode.backward(Late.apply, x)
    assert x.grad.tolist() == [12.0]


def test_046_a_saved_input_is_the_very_object(mode: Mode):
    seen = []

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.y = y
        return x * y

    def backward(ctx, g):
        (x, y), (again, _) = ctx.saved_tensors, ctx.saved_tensors
        seen.append((x is given, again is given, y is ctx.y))
        return g * y, g * x

    Saving = custom(forward=forward, backward=backward)
    given = leaf(3.0)
    mode.backward(lambda x: Saving.apply(x, x * 2), given)
    assert seen[-1] == (True, True, True)
    assert given.grad.tolist() == [12.0]


def test_047_a_saved_output_is_a_new_tensor_on_the_node(mode: Mode):
    seen = []

    def look(x):
        y = Exponential.apply(x)
        (saved,) = y.grad_fn.saved_tensors
        seen.append((saved is y, saved.grad_fn is y.grad_fn, saved.requires_grad))
        return y

    mode.backward(look, leaf(0.0))
    assert seen[-1] == (False, True, True)


def test_048_a_saved_intermediate_is_untracked(mode: Mode):
    seen = []

    def forward(ctx, x):
        middle = x * x
        ctx.save_for_backward(middle)
        return middle * x

    def backward(ctx, g):
        (middle,) = ctx.saved_tensors
        seen.append((middle.requires_grad, middle.grad_fn))
        return g * 3 * middle

    x = leaf(2.0)
    mode.backward(custom(forward=forward, backward=backward).apply, x)
    assert seen[-1] == (False, None)
    assert x.grad.tolist() == [12.0]


WRITES = {
    "itself": lambda x, y: x.add_(1),
    "nothing added": lambda x, y: x.add_(0),
    "a view": lambda x, y: x[:1].mul_(2),
    "a detached alias": lambda x, y: x.detach().add_(1),
    "unrecorded": lambda x, y: tpc.no_grad()(x.add_)(1),
}


@pytest.mark.parametrize("write", WRITES)
def test_049_version_check_on_read(mode: Mode, write: str):
    def written(w):
        x = w * 1
        y = Square.apply(x)
        WRITES[write](x, y)
        return y

    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0 instead"):
        mode.backward(written, leaf(1.0, 2.0))


def test_049_writing_the_base_of_a_saved_view(mode: Mode):
    def written(w):
        x = w * 1
        y = Square.apply(x[:1])
        x.add_(1)
        return y

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        mode.backward(written, leaf(1.0, 2.0))


def test_049_the_message_names_type_shape_and_maker(mode: Mode):
    def written(w):
        x = w * 1
        y = Square.apply(x)
        x.add_(1)
        return y

    with pytest.raises(RuntimeError, match=r"FloatTensor \[2\].*which is output 0 of .*Hint: .*anomaly detection"):
        mode.backward(written, leaf(1.0, 2.0))


def test_050_a_backward_that_does_not_read_does_not_complain(mode: Mode):
    class Unread(Square):
        @staticmethod
        def backward(ctx, g):
            return g * 7

    def written(w):
        x = w * 1
        y = Unread.apply(x)
        x.add_(1)
        return y

    w = leaf(1.0)
    mode.backward(written, w)
    assert w.grad.tolist() == [7.0]


def test_051_a_leaf_changed_between_forward_and_backward(mode: Mode):
    def change(x):
        y = Square.apply(x)
        with tpc.no_grad():
            x.mul_(2)
        return y

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        mode.backward(change, leaf(1.0))


def test_051_a_leaf_changed_after_the_call(mode: Mode):
    x = leaf(1.0)
    y = mode.call(Square.apply, x)
    with tpc.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(tpc.ones(1))


def test_051_a_saved_output_changed_in_the_function(mode: Mode):
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        mode.backward(lambda x: Exponential.apply(x).mul_(2), leaf(1.0))


def test_051_a_saved_output_changed_after_the_call(mode: Mode):
    y = mode.call(Exponential.apply, leaf(1.0))
    y.add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(tpc.ones(1))


def test_051_writes_through_data_are_not_seen(mode: Mode):
    def change(w):
        x = w * 1
        y = Square.apply(x)
        x.data.mul_(5)
        return y

    w = leaf(2.0)
    mode.backward(change, w)
    assert w.grad.tolist() == [20.0]


def test_052_writes_in_forward_after_the_save_are_fine(mode: Mode):
    def forward(ctx, x):
        middle = x * 1
        ctx.save_for_backward(middle)
        middle.add_(10)
        return middle * x

    x = leaf(2.0)
    mode.backward(custom(forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0]).apply, x)
    assert x.grad.tolist() == [12.0]


def test_053_attributes_are_not_checked(mode: Mode):
    def forward(ctx, x):
        ctx.x = x
        return x * x

    Attribute = custom(forward=forward, backward=lambda ctx, g: g * 2 * ctx.x.detach())

    def written(w):
        x = w * 1
        y = Attribute.apply(x)
        x.add_(10)
        return y

    w = leaf(2.0)
    mode.backward(written, w)
    assert w.grad.tolist() == [24.0]
