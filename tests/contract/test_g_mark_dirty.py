"""Section G, second part: `mark_dirty`."""

from __future__ import annotations

import itertools
import warnings

import pytest

import tpc
from tests.contract.modes import Mode, custom, leaf, plain


def _doubling(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


Doubling = custom("Doubling", forward=_doubling, backward=lambda ctx, g: g * 2)


def _adding(ctx, x, w):
    ctx.mark_dirty(x)
    return x.add_(w)


Adding = custom("Adding", forward=_adding, backward=lambda ctx, g: (g, g * 5))


def test_088_the_returned_object_is_the_input_with_the_new_history(mode: Mode):
    seen = []

    def look(w):
        x = w * 1
        before = x._version
        y = Doubling.apply(x)
        seen.append((y is x, type(x.grad_fn).__name__, x._version - before))
        return x * 10

    w = leaf(1.0, 2.0)
    assert mode.backward(look, w).tolist() == [20.0, 40.0]
    assert (seen[-1], w.grad.tolist()) == ((True, "DoublingBackward", 2), [20.0, 20.0])


def test_088_an_argument_that_is_written_is_returned_as_itself(mode: Mode):
    w = leaf(1.0, 2.0)
    x = w * 1
    y = mode.call(Doubling.apply, x)
    assert (y is x, x.tolist()) == (True, [2.0, 4.0])
    x.backward(tpc.ones(2))
    assert w.grad.tolist() == [2.0, 2.0]


def test_089_an_untracked_tensor_becomes_tracked(mode: Mode):
    w, x = leaf(3.0), plain(1.0)
    y = mode.call(Adding.apply, x, w)
    assert (y is x, x.requires_grad, x.is_leaf, x.tolist()) == (True, True, False, [4.0])
    y.backward(tpc.ones(1))
    assert w.grad.tolist() == [5.0]


def test_089_so_do_views_and_bases_of_it(mode: Mode):
    def through_view(w):
        x = tpc.zeros(2)
        v = x[:1]
        Adding.apply(v, w)
        return x

    w = leaf(3.0)
    assert mode.backward(through_view, w).tolist() == [3.0, 0.0]
    assert w.grad.tolist() == [5.0]


def test_090_a_leaf_that_requires_grad_cannot_be_dirty(mode: Mode):
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        mode.call(Doubling.apply, x)
    if mode.name == "deferred":
        assert x.tolist() == [2.0]


def test_090_nor_a_view_of_one(mode: Mode):
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        mode.call(lambda x: Doubling.apply(x[:1]), leaf(1.0, 2.0))


def test_091_a_dirty_input_must_be_returned(mode: Mode):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x * 1

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned as output"):
        mode.call(lambda w: custom(forward=forward).apply(w * 1), leaf(1.0))


def test_091_inside_an_inner_container_does_not_count(mode: Mode):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 1, [x.mul_(2)]

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned as output"):
        mode.call(lambda w: custom(forward=forward).apply(w * 1), leaf(1.0))


def test_091_in_a_list_that_is_spread_it_does(mode: Mode):
    """Difference: PyTorch does not spread lists (27), so that a dirty input in one counts as not returned."""

    def forward(ctx, x):
        ctx.mark_dirty(x)
        return [x.mul_(2), x + 1]

    w = leaf(1.0)
    mode.backward(lambda w: custom(forward=forward, backward=lambda ctx, g, h: g * 2 + h * 2).apply(w * 1)[0], w)
    assert w.grad.tolist() == [2.0]


def test_092_marking_what_is_no_input_warns(mode: Mode):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        mode.call(custom(forward=forward, backward=lambda ctx, g: g * 2).apply, leaf(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mode.call(custom(forward=forward).apply, plain(1.0))


def test_092_marking_a_view_that_is_no_input_is_an_error(mode: Mode):
    def forward(ctx, x):
        y = x[:1]
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError):
        mode.call(lambda w: custom(forward=forward, backward=lambda ctx, g: g).apply(w * 1), leaf(1.0, 2.0))


def test_093_what_is_no_tensor_cannot_be_marked(mode: Mode):
    def forward(ctx, x):
        ctx.mark_dirty(3)
        return x

    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        mode.call(custom(forward=forward).apply, leaf(1.0))


def test_093_the_last_call_wins(mode: Mode):
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        ctx.mark_dirty(b)
        return a.mul_(2), b.mul_(3)

    seen = []

    def look(w):
        a, b = w * 1, w * 1
        ra, rb = custom(forward=forward, backward=lambda ctx, g, h: (g * 2, h * 3)).apply(a, b)
        seen.append((ra is a, rb is b))
        return ra, rb

    w = leaf(1.0)
    mode.backward(look, w)
    assert (seen[-1], w.grad.tolist()) == ((False, True), [5.0])


def test_094_writing_a_view_re_links_its_base_and_the_other_views(mode: Mode):
    seen = []

    def written(w):
        x = w * 1
        v, other = x[:1], x[:2]
        y = Doubling.apply(v)
        seen.append((y is v, v._version))
        return x * 10, other

    w = leaf(1.0, 2.0)
    x, other = mode.backward(written, w)
    assert (x.tolist(), other.tolist(), seen[-1]) == ([20.0, 20.0], [2.0, 2.0], (True, 2))
    assert w.grad.tolist() == [22.0, 11.0]


def test_095_only_with_a_single_output(mode: Mode):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2), x * 3

    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view"):
        mode.call(lambda w: custom(forward=forward, backward=lambda ctx, g, h: g).apply((w * 1)[:1]), leaf(1.0, 2.0))


@pytest.mark.parametrize("apart", [lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.chunk(2)], ids=["unbind", "split", "chunk"])
def test_095_parts_from_one_call_cannot_be_dirty(mode: Mode, apart):
    with pytest.raises(RuntimeError, match="returns multiple views"):
        mode.call(lambda w: Doubling.apply(apart(w * 1)[0]), leaf(1.0, 2.0))


def test_096_earlier_saves_of_the_input_fail_on_reading(mode: Mode):
    def saved(w):
        x = w * 1
        y = x * x
        Doubling.apply(x)
        return y

    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 2; expected version 0 instead"):
        mode.backward(saved, leaf(1.0))


def test_096_what_did_not_save_it_is_fine(mode: Mode):
    def unsaved(w):
        x = w * 1
        y = x + 1
        return y + Doubling.apply(x)

    w = leaf(1.0)
    mode.backward(unsaved, w)
    assert w.grad.tolist() == [3.0]


@pytest.mark.parametrize("order", list(itertools.permutations(["mark", "save", "write"])), ids="-".join)
def test_097_the_order_of_marking_saving_and_writing_does_not_matter(mode: Mode, order: tuple):
    def forward(ctx, x):
        steps = {"mark": lambda: ctx.mark_dirty(x), "save": lambda: ctx.save_for_backward(x), "write": lambda: x.mul_(3)}
        for step in order:
            steps[step]()
        return x

    w = leaf(2.0)
    mode.backward(lambda w: custom(forward=forward, backward=lambda ctx, g: g * ctx.saved_tensors[0]).apply(w * 1), w)
    assert w.grad.tolist() == [6.0]


def test_098_a_write_without_mark_is_not_detected(mode: Mode):
    seen = []
    Unmarked = custom("Unmarked", forward=lambda ctx, x: x.mul_(3), backward=lambda ctx, g: g * 100)

    def look(w):
        x = w * 1
        before = x._version
        y = Unmarked.apply(x)
        seen.append((y is x, type(x.grad_fn).__name__, type(y.grad_fn).__name__, x._version - before))
        return x * 1, y.detach()

    w = leaf(2.0)
    x, y = mode.backward(look, w)
    assert seen[-1] == (False, "MulBackward0", "UnmarkedBackward", 1)
    assert (x.tolist(), y.tolist(), w.grad.tolist()) == ([6.0], [6.0], [1.0])


def test_099_one_fresh_tensor_in_two_slots(mode: Mode):
    def forward(ctx, x):
        y = x * 2
        return y, y

    same = []

    def weighted(x):
        a, b = custom(forward=forward, backward=lambda ctx, g, h: g * 1000 + h).apply(x)
        same.append(a is b)
        return a * 10 + b

    x = leaf(1.0)
    mode.backward(weighted, x)
    assert (same[-1], x.grad.tolist()) == (True, [11.0])


def test_099_an_input_returned_twice_gives_two_aliases(mode: Mode):
    same = []

    def weighted(x):
        a, b = custom(forward=lambda ctx, x: (x, x), backward=lambda ctx, g, h: g * 1000 + h).apply(x)
        same.append((a is b, a.output_nr, b.output_nr))
        return a * 10 + b

    x = leaf(1.0)
    mode.backward(weighted, x)
    assert (same[-1], x.grad.tolist()) == ((False, 0, 1), [10001.0])


def test_100_under_no_grad_a_tracked_dirty_input_comes_back_detached(mode: Mode):
    w = leaf(1.0)
    x, u = w * 1, plain(1.0)
    before = x._version
    with tpc.no_grad():
        rx, ru = mode.call(Doubling.apply, x), mode.call(Doubling.apply, u)
    assert (rx is x, rx.requires_grad, x.requires_grad, ru is u) == (False, False, True, True)
    assert (rx.tolist(), x.tolist(), u.tolist(), x._version - before) == ([2.0], [2.0], [2.0], 2)


def test_101_hooks_stay_with_the_history_they_were_set_on(mode: Mode):
    def hooked(w):
        x = w * 1
        x.register_hook(lambda g: g * 10)
        Doubling.apply(x)
        x.register_hook(lambda g: g + 1)
        return x * 3

    w = leaf(1.0)
    mode.backward(hooked, w)
    assert w.grad.tolist() == [80.0]  # (3 + 1) * 2 by backward, then * 10


def test_101_retain_grad_moves_to_the_new_history(mode: Mode):
    def retained(w):
        x = w * 1
        x.retain_grad()
        Doubling.apply(x)
        y = x * 3
        (y * 1).backward(tpc.ones(1))
        return x.grad * 1

    assert mode.call(retained, leaf(1.0)).tolist() == [3.0]


@pytest.mark.parametrize("write", [lambda x: x.mul_(2), lambda x: x[:1].mul_(2)], ids=["itself", "through a view"])
def test_101_retain_grad_moves_with_built_in_writes_too(mode: Mode, write):
    def retained(w):
        x = w * 1
        x.retain_grad()
        write(x)
        (x * 3).sum().backward()
        return x.grad * 1

    assert mode.call(retained, leaf(1.0, 2.0)).tolist() == [3.0, 3.0]
