"""Sections E and F: missing gradients, and outputs that carry none."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, custom, leaf


@pytest.mark.parametrize("position", [0, 1])
def test_073_a_missing_gradient_is_zeros_of_the_outputs_type(mode: Mode, position: int):
    seen = []

    def backward(ctx, g, h):
        seen.append([(t.shape, t.dtype) for t in (g, h)])
        return g * 2 + h.sum() * 3

    Two = custom(forward=lambda ctx, x: (x * 2, tpc.cat([x, x]).to(tpc.float64)), backward=backward)
    x = leaf(1.0, 1.0)
    mode.backward(lambda x: Two.apply(x)[position], x)
    assert seen[-1] == [((2,), tpc.float32), ((4,), tpc.float64)]
    assert x.grad.tolist() == ([2.0, 2.0] if position == 0 else [12.0, 12.0])


def test_074_without_materialising_it_is_none(mode: Mode):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append((g is None, h is None))
        return g * 2

    x = leaf(1.0)
    mode.backward(lambda x: custom(forward=forward, backward=backward).apply(x)[0], x)
    assert (seen[-1], x.grad.item()) == ((False, True), 2.0)


@pytest.mark.parametrize("value", [0, "yes", None])
def test_074_set_materialize_grads_takes_a_bool(mode: Mode, value: object):
    def forward(ctx, x):
        ctx.set_materialize_grads(value)
        return x

    with pytest.raises(TypeError):
        mode.call(custom(forward=forward).apply, leaf(1.0))


class ValuesAndMask(tpc.autograd.Function):
    """(2x, x > 1 as a float, marked)."""

    @staticmethod
    def forward(ctx, x):
        mask = (x > 1).to(x.dtype)
        ctx.mark_non_differentiable(mask)
        return x * 2, mask

    @staticmethod
    def backward(ctx, g, gm):
        return g * 2 + gm * 100


def test_075_marked_outputs_are_untracked(mode: Mode):
    x = leaf(1.0, 2.0)
    values, mask = mode.backward(ValuesAndMask.apply, x)
    assert (values.requires_grad, mask.requires_grad, mask.grad_fn, mask.is_leaf) == (True, False, None, True)
    assert (mask.tolist(), x.grad.tolist()) == ([0.0, 1.0], [2.0, 2.0])


def test_075_backward_from_a_marked_output_is_an_error(mode: Mode):
    def from_mask(x):
        ValuesAndMask.apply(x)[1].sum().backward()

    with pytest.raises(RuntimeError, match="does not require grad"):
        mode.call(from_mask, leaf(1.0))


@pytest.mark.parametrize(("materialize", "expected"), [(True, [0.0]), (False, None)])
def test_076_the_slot_of_a_marked_output_still_exists(mode: Mode, materialize: bool, expected: object):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        mask = x * 0
        ctx.mark_non_differentiable(mask)
        return mask, x * 2

    def backward(ctx, gm, g):
        seen.append(gm if gm is None else gm * 1)
        return g * 2 if gm is None else g * 2 + gm

    x = leaf(1.0)
    mode.backward(custom(forward=forward, backward=backward).apply, x)
    assert (seen[-1] is None) == (expected is None)
    assert x.grad.item() == 2.0


def test_076_none_for_just_the_marked_outputs(mode: Mode):
    seen = []

    def forward(ctx, x):
        ctx._materialize_non_diff_grads = False
        mask, unused = x * 0, x * 3
        ctx.mark_non_differentiable(mask)
        return mask, unused, x * 2

    def backward(ctx, gm, gu, g):
        seen.append((gm is None, gu is None))
        return g * 2 + gu

    x = leaf(1.0)
    mode.backward(lambda x: custom(forward=forward, backward=backward).apply(x)[2], x)
    assert (seen[-1], x.grad.item()) == ((True, False), 2.0)


@pytest.mark.parametrize("dtype", [tpc.int64, tpc.bool, tpc.int8])
def test_077_integer_and_bool_outputs_are_never_tracked(mode: Mode, dtype):
    seen = []

    def backward(ctx, g, gi):
        seen.append((gi.dtype, gi.shape))
        return g * 2

    Rounding = custom(forward=lambda ctx, x: (x * 2, x.to(dtype)), backward=backward)
    x = leaf(1.0, 0.0)
    _, integer = mode.backward(Rounding.apply, x)
    assert (integer.requires_grad, integer.grad_fn) == (False, None)
    assert seen[-1] == (dtype, (2,))
    assert x.grad.tolist() == [2.0, 2.0]


def test_078_the_last_call_replaces_earlier_ones(mode: Mode):
    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(a)
        ctx.mark_non_differentiable(b)
        return a, b

    a, b = mode.call(custom(forward=forward, backward=lambda ctx, g, h: g).apply, leaf(1.0))
    assert (a.requires_grad, b.requires_grad) == (True, False)


def test_078_what_is_no_output_is_ignored(mode: Mode):
    def forward(ctx, x):
        ctx.mark_non_differentiable(x * 3)
        return x * 2

    x = leaf(1.0)
    assert mode.backward(custom(forward=forward, backward=lambda ctx, g: g * 2).apply, x).requires_grad
    assert x.grad.item() == 2.0


def test_078_what_is_no_tensor_is_an_error(mode: Mode):
    def forward(ctx, x):
        ctx.mark_non_differentiable(3)
        return x * 2

    with pytest.raises(RuntimeError, match="only accepts variable arguments"):
        mode.call(custom(forward=forward, backward=lambda ctx, g: g).apply, leaf(1.0))


def test_079_a_marked_input_comes_back_as_a_detached_alias(mode: Mode):
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x, x * 2

    x = leaf(1.0)
    same, _ = mode.backward(custom(forward=forward, backward=lambda ctx, g, h: h * 2).apply, x)
    assert (same is x, same.requires_grad, x.requires_grad, x.is_leaf) == (False, False, True, True)
    assert (same.tolist(), x.grad.item()) == ([1.0], 2.0)
    with tpc.no_grad():
        x.add_(1)
    assert same.tolist() == [2.0]


def test_080_a_marked_output_acts_as_a_constant(mode: Mode):
    def straight_through(x):
        def forward(ctx, x):
            rounded = tpc.round(x)
            ctx.mark_non_differentiable(rounded)
            return rounded

        rounded = custom(forward=forward, backward=lambda ctx, g: g * 1000).apply(x)
        return x * rounded

    x = leaf(2.4)
    mode.backward(straight_through, x)
    assert x.grad.item() == 2.0


def test_080_a_marked_output_can_be_written(mode: Mode):
    def written(x):
        values, mask = ValuesAndMask.apply(x)
        mask.add_(5)
        return values * mask

    x = leaf(1.0, 2.0)
    mode.backward(written, x)
    assert x.grad.tolist() == [10.0, 12.0]
