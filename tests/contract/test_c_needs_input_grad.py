"""Section C: `ctx.needs_input_grad`."""

from __future__ import annotations

import tpc
from tests.contract.modes import Mode, custom, leaf, plain

seen: list = []


class Flags(tpc.autograd.Function):
    """Writes down the flags wherever they can be read."""

    @staticmethod
    def forward(a, b, n=1):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        seen.append(("setup_context", ctx.needs_input_grad))
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def backward(ctx, g):
        seen.append(("backward", ctx.needs_input_grad))
        a, b = ctx.saved_tensors
        return g * b, g * a, None

    @staticmethod
    def jvp(ctx, ta, tb, _):
        seen.append(("jvp", ctx.needs_input_grad))
        a, b = ctx.saved_tensors
        return ta * b + tb * a


def test_035_one_flag_for_each_slot(mode: Mode):
    flags = []

    def forward(ctx, *args):
        flags.append(ctx.needs_input_grad)
        return args[0] * 2

    Watched = custom(forward=forward, backward=lambda ctx, g: (g, *[None] * 4))
    mode.call(lambda x: Watched.apply(x, plain(1.0), plain(1), 3, None), leaf(1.0))
    assert flags[-1] == (True, False, False, False, False)
    assert all(type(f) is bool for f in flags[-1])


def test_036_flags_are_readable_everywhere(mode: Mode):
    seen.clear()
    a, b = leaf(2.0), plain(3.0)
    mode.backward(Flags.apply, a, b)
    assert {where for where, flags in seen if flags == (True, False, False)} == {"setup_context", "backward"}
    assert all(flags == (True, False, False) for _, flags in seen)


def test_036_flags_are_readable_in_jvp(mode: Mode):
    seen.clear()

    def directional(a, b):
        with tpc.autograd.forward_ad.dual_level():
            out = Flags.apply(tpc.autograd.forward_ad.make_dual(a, tpc.ones_like(a)), b)
            return tpc.autograd.forward_ad.unpack_dual(out).tangent

    assert mode.call(directional, leaf(2.0), plain(3.0)).tolist() == [3.0]
    assert ("jvp", (True, False, False)) in seen


def test_037_flags_do_not_depend_on_the_grad_mode(mode: Mode):
    seen.clear()
    with tpc.no_grad():
        mode.call(Flags.apply, leaf(2.0), plain(3.0))
    assert seen[-1] == ("setup_context", (True, False, False))


def test_038_flags_do_not_depend_on_what_is_asked_for(mode: Mode):
    seen.clear()
    a, b = leaf(2.0), leaf(3.0)
    out = mode.call(lambda a, b: Flags.apply(a, b), a, b)
    (ga,) = tpc.autograd.grad(out, [a], retain_graph=True)
    assert ga.tolist() == [3.0]
    mode.backward(Flags.apply, a, b, inputs=[a])
    assert (a.grad.tolist(), b.grad) == ([3.0], None)
    assert all(flags == (True, True, False) for _, flags in seen)


def test_039_gradients_for_untracked_slots_are_dropped(mode: Mode):
    a, b = leaf(2.0), plain(3.0)
    mode.backward(Flags.apply, a, b)
    assert (a.grad.tolist(), b.grad) == ([3.0], None)


def test_039_none_for_a_tracked_slot_is_allowed(mode: Mode):
    Half = custom(forward=lambda ctx, a, b: a * b, backward=lambda ctx, g: (g, None))
    a, b = leaf(2.0), leaf(3.0)
    mode.backward(Half.apply, a, b)
    assert (a.grad.tolist(), b.grad) == ([1.0], None)


def test_040_under_func_grad_only_the_differentiated_argument_is_flagged(mode: Mode):
    seen.clear()
    a, b = plain(2.0), plain(3.0)
    got = mode.call(lambda a, b: tpc.func.grad(lambda a, b: Flags.apply(a, b).sum(), argnums=1)(a, b), a, b)
    assert got.tolist() == [2.0]
    assert ("setup_context", (False, True, False)) in seen
    assert [flags for where, flags in seen if where == "backward"][-1] == (False, True, False)


def test_041_assigning_the_flags_changes_nothing_for_the_engine(mode: Mode):
    def forward(ctx, a, b):
        ctx.needs_input_grad = (False, False)
        return a * b

    Assigned = custom(forward=forward, backward=lambda ctx, g: (g * 5, g * 7))
    a, b = leaf(2.0), leaf(3.0)
    mode.backward(Assigned.apply, a, b)
    assert (a.grad.tolist(), b.grad.tolist()) == ([5.0], [7.0])
