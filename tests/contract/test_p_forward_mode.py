"""Section P: forward mode, by the user's `jvp`."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, custom, leaf, plain

fwad = tpc.autograd.forward_ad


class Square(tpc.autograd.Function):
    """x * x with both derivatives."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * 2 * x


def pushed(function, *pairs):
    """The tangents of what a function returns, for arguments given as (value, tangent) or as plain values."""
    with fwad.dual_level():
        args = [fwad.make_dual(*p) if isinstance(p, tuple) else p for p in pairs]
        result = function(*args)
        spread = result if isinstance(result, tuple) else (result,)
        tangents = tuple(fwad.unpack_dual(r).tangent if isinstance(r, tpc.Tensor) else None for r in spread)
    return tangents if isinstance(result, tuple) else tangents[0]


# --- when it runs -------------------------------------------------------------------------------


def test_174_jvp_runs_right_after_forward(mode: Mode):
    order = []

    def forward(ctx, x):
        order.append("forward")
        return x * 3

    def jvp(ctx, t):
        order.append("jvp")
        return t * 3

    Triple = custom(forward=forward, jvp=jvp)

    def run(x, t):
        def called(x):
            y = Triple.apply(x)
            order.append("after")
            return y

        return pushed(called, (x, t))

    assert mode.call(run, plain(1.0), plain(5.0)).tolist() == [15.0]
    assert order[:3] == ["forward", "jvp", "after"]


def test_174_jvp_does_not_run_without_a_tangent(mode: Mode):
    def jvp(ctx, t):
        raise AssertionError("nothing to push")

    Triple = custom(forward=lambda ctx, x: x * 3, jvp=jvp)

    def run(x):
        with fwad.dual_level():
            return Triple.apply(x)

    assert mode.call(run, plain(1.0)).tolist() == [3.0]


def test_174_tangents_go_through_built_in_operations_and_functions(mode: Mode):
    def run(x, t):
        return pushed(lambda x: Square.apply(x * 3).sin(), (x, t))

    x, t = plain(0.5), plain(1.0)
    expected = 18 * 0.5 * tpc.cos(plain(2.25))
    assert tpc.allclose(mode.call(run, x, t), expected)


def test_174_a_split_style_function(mode: Mode):
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    def jvp(ctx, ta, tb):
        a, b = ctx.saved_tensors
        return ta * b + a * tb

    Product = custom(forward=lambda a, b: a * b, setup_context=setup_context, jvp=jvp)
    run = lambda a, ta, b, tb: pushed(Product.apply, (a, ta), (b, tb))
    assert mode.call(run, plain(2.0), plain(10.0), plain(3.0), plain(1.0)).tolist() == [32.0]


# --- what jvp is given --------------------------------------------------------------------------


def tangents_given(mode: Mode, materialize: bool) -> list:
    """What jvp is given for: a number, a tensor with a tangent, one without, an integer tensor."""
    seen = []

    def forward(ctx, n, x, y, i):
        ctx.set_materialize_grads(materialize)
        return x * n + y + i

    def jvp(ctx, *given):
        seen.append([g.tolist() if isinstance(g, tpc.Tensor) else g for g in given] if mode.name == "deferred" else given)
        return given[1] * 2

    Mixed = custom(forward=forward, jvp=jvp)
    run = lambda x, t, y, i: pushed(lambda x: Mixed.apply(2, x, y, i), (x, t))
    assert mode.call(run, plain(1.0), plain(5.0), plain(1.0), tpc.tensor([3])).tolist() == [10.0]
    return seen[0]


def test_175_missing_tangents_are_zeros(mode: Mode):
    n, x, y, i = tangents_given(mode, True)
    assert (n, i) == (None, None)
    assert x is not None
    assert y == [0.0] if mode.name == "deferred" else y.shape == (1,)


def test_175_or_none_with_materialisation_off(mode: Mode):
    n, x, y, i = tangents_given(mode, False)
    assert (n, y, i) == (None, None, None)
    assert x is not None


def test_176_save_for_forward_is_what_jvp_sees(mode: Mode):
    def forward(ctx, x):
        doubled = x * 2
        ctx.save_for_backward(x)
        ctx.save_for_forward(doubled)
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 200

    def jvp(ctx, t):
        (doubled,) = ctx.saved_tensors
        return doubled * t

    Apart = custom(forward=forward, backward=backward, jvp=jvp)
    x = leaf(3.0)

    def run(x, t):
        with fwad.dual_level():
            y = Apart.apply(fwad.make_dual(x, t))
            (gx,) = tpc.autograd.grad(y, x, tpc.ones(1))
            return fwad.unpack_dual(y).tangent.detach(), gx

    pushed_forward, pulled_back = mode.call(run, x, plain(1.0))
    assert (pushed_forward.tolist(), pulled_back.tolist()) == ([6.0], [600.0])


def test_176_save_for_backward_alone_saves_nothing_for_jvp():
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def jvp(ctx, t):
        seen.append(ctx.saved_tensors)
        return t * 2

    pushed(custom(forward=forward, jvp=jvp).apply, (plain(1.0), plain(1.0)))
    assert seen == [()]


def test_176_only_tensors_are_saved_for_forward():
    def forward(ctx, x):
        ctx.save_for_forward(x, 3)
        return x

    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        custom(forward=forward).apply(plain(1.0))


def test_176_attributes_of_ctx_are_there_in_jvp(mode: Mode):
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    Times = custom(forward=forward, jvp=lambda ctx, t, _: t * ctx.factor)
    assert mode.call(lambda x, t: pushed(lambda x: Times.apply(x, 4.0), (x, t)), plain(1.0), plain(1.0)).tolist() == [4.0]


# --- what jvp must return -----------------------------------------------------------------------


def test_177_without_jvp_a_tangent_is_an_error(mode: Mode):
    Plain = custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        mode.call(lambda x, t: pushed(Plain.apply, (x, t)), plain(1.0), plain(1.0))
    assert mode.call(lambda x: pushed(Plain.apply, x), plain(1.0)) is None


def refused(mode: Mode, words: str, jvp, forward=lambda ctx, x: x * 2, error=RuntimeError):
    with pytest.raises(error, match=words):
        mode.call(lambda x, t: pushed(custom(forward=forward, jvp=jvp).apply, (x, t)), plain(1.0, 2.0), plain(1.0, 1.0))


def test_178_one_tangent_per_output(mode: Mode):
    refused(mode, r"invalid number of forward gradients \(expected 1 but got 2\)", lambda ctx, t: (t, t))
    refused(mode, r"invalid number of forward gradients \(expected 2 but got 1\)", lambda ctx, t: t, lambda ctx, x: (x * 2, x * 3))


def test_178_surplus_tangents_are_an_error_even_if_none(mode: Mode):
    refused(mode, "invalid number of forward gradients", lambda ctx, t: (t, None))


def test_178_a_tangent_is_a_tensor_of_the_outputs_size(mode: Mode):
    refused(mode, r"expected Variable or None \(got float\)", lambda ctx, t: 1.0)
    refused(mode, "different size", lambda ctx, t: t.sum())


def test_179_outputs_without_gradient_have_no_tangent(mode: Mode):
    def marked(ctx, x):
        out = x * 2
        ctx.mark_non_differentiable(out)
        return out, x * 3

    assert mode.call(
        lambda x, t: pushed(custom(forward=marked, jvp=lambda ctx, t: (None, t * 3)).apply, (x, t))[1], plain(1.0), plain(1.0)
    ).tolist() == [3.0]
    refused(mode, "You should return None at that position instead", lambda ctx, t: (t, t * 3), marked)
    refused(mode, "You should return None at that position instead", lambda ctx, t: (t, t * 3), lambda ctx, x: (x.long(), x * 3))


def test_179_nor_have_outputs_that_are_no_tensors(mode: Mode):
    """Difference: PyTorch drops a tangent that is returned for such an output."""
    refused(mode, "You should return None at that position instead", lambda ctx, t: (t, t * 3), lambda ctx, x: ("text", x * 3))


def test_179_none_for_a_differentiable_output(mode: Mode):
    """Difference: a RuntimeError that says so; in PyTorch an internal assertion fails."""
    refused(mode, "jvp returned None for output 0, which is differentiable", lambda ctx, t: None)


def test_180_a_view_has_a_view_of_the_tangent(mode: Mode):
    View = custom(forward=lambda ctx, x: x.view(1, -1), jvp=lambda ctx, t: t.view(1, -1))
    assert mode.call(lambda x, t: pushed(View.apply, (x, t)), plain(1.0), plain(5.0)).tolist() == [[5.0]]
    refused(mode, "not returning a view", lambda ctx, t: t.view(1, -1).clone(), lambda ctx, x: x.view(1, -1))


def test_180_a_returned_input_has_a_view_of_the_tangent(mode: Mode):
    Same = custom(forward=lambda ctx, x: x, jvp=lambda ctx, t: t.view_as(t))
    assert mode.call(lambda x, t: pushed(Same.apply, (x, t)), plain(1.0), plain(5.0)).tolist() == [5.0]
    refused(mode, "not returning a view", lambda ctx, t: t * 1, lambda ctx, x: x)


def doubled(ctx, x):
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


def test_180_what_is_written_in_place_has_its_tangent_written_in_place(mode: Mode):
    Doubled = custom(forward=doubled, jvp=lambda ctx, t: t.mul_(2))

    def run(x, t):
        def called(x):
            y = x * 1
            Doubled.apply(y)
            return y

        return pushed(called, (x, t))

    assert mode.call(run, plain(1.0), plain(5.0)).tolist() == [10.0]


def test_180_otherwise_it_is_an_error():
    with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
        pushed(lambda x: custom(forward=doubled, jvp=lambda ctx, t: t * 2).apply(x * 1), (plain(1.0), plain(1.0)))


# --- recording ----------------------------------------------------------------------------------


def test_181_inside_forward_and_jvp_tensors_have_no_tangents():
    seen = []

    def forward(ctx, x):
        seen.append(fwad.unpack_dual(x).tangent)
        ctx.save_for_forward(x)
        return x * 2

    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        seen.append(fwad.unpack_dual(x).tangent)
        return t * 2

    pushed(custom(forward=forward, jvp=jvp).apply, (plain(1.0), plain(1.0)))
    assert seen == [None, None]


def test_181_what_jvp_computes_is_recorded(mode: Mode):
    """Reverse over forward: the tangent 2 x t is differentiated with respect to t and x."""

    def run(x, t):
        with fwad.dual_level():
            y = Square.apply(fwad.make_dual(x, t))
            tangent = fwad.unpack_dual(y).tangent
            return tpc.autograd.grad(tangent, [x, t], tpc.ones(1))

    gx, gt = mode.call(run, leaf(3.0), leaf(5.0))
    assert (gx.tolist(), gt.tolist()) == ([10.0], [6.0])


def test_181_backward_under_a_dual_input(mode: Mode):
    """Forward over reverse: the gradient 2 x carries the tangent 2 t."""

    def run(x, t):
        with fwad.dual_level():
            y = Square.apply(fwad.make_dual(x, t))
            (gx,) = tpc.autograd.grad(y, x, tpc.ones(1), create_graph=True)
            return gx.detach(), fwad.unpack_dual(gx).tangent

    gx, tangent = mode.call(run, leaf(3.0), plain(5.0))
    assert (gx.tolist(), tangent.tolist()) == ([6.0], [10.0])


def test_182_no_grad_leaves_forward_mode_on(mode: Mode):
    def run(x, t):
        with tpc.no_grad():
            return pushed(Square.apply, (x, t))

    assert mode.call(run, leaf(3.0), plain(1.0)).tolist() == [6.0]


def test_182_tangents_end_with_their_level(mode: Mode):
    def run(x, t):
        with fwad.dual_level():
            y = Square.apply(fwad.make_dual(x, t))
        return y, fwad.unpack_dual(y).tangent

    y, tangent = mode.call(run, plain(3.0), plain(1.0))
    assert (y.tolist(), tangent) == ([9.0], None)


def test_182_levels_do_not_nest():
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        with fwad.dual_level(), fwad.dual_level():
            pass


def test_182_there_is_no_dual_without_a_level():
    with pytest.raises(RuntimeError, match="no level exists"):
        fwad.make_dual(plain(1.0), plain(1.0))
    with pytest.raises(RuntimeError, match=r"no level exists|level"):
        fwad.exit_dual_level()


def test_182_what_make_dual_refuses():
    with fwad.dual_level():
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            fwad.make_dual(tpc.tensor([1]), plain(1.0))
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
            fwad.make_dual(plain(1.0), tpc.tensor([1]))
        with pytest.raises(RuntimeError):
            fwad.make_dual(plain(1.0, 2.0), plain(1.0))


def test_182_unpack_dual_gives_a_named_pair(mode: Mode):
    def run(x, t):
        with fwad.dual_level():
            pair = fwad.unpack_dual(fwad.make_dual(x, t))
            assert pair.tangent is pair[1]
            assert fwad.unpack_dual(pair.primal).tangent is None
            return pair.primal, pair.tangent

    primal, tangent = mode.call(run, plain(3.0), plain(5.0))
    assert (primal.tolist(), tangent.tolist()) == ([3.0], [5.0])


def test_182_levels_by_hand(mode: Mode):
    def run(x, t):
        level = fwad.enter_dual_level()
        try:
            return fwad.unpack_dual(Square.apply(fwad.make_dual(x, t))).tangent
        finally:
            fwad.exit_dual_level(level=level)

    assert mode.call(run, plain(3.0), plain(1.0)).tolist() == [6.0]


def test_182_writing_a_dual_in_place(mode: Mode):
    def run(x, t):
        def called(x):
            y = x * 1
            y.mul_(3)
            y[0] = 7.0
            return y

        return pushed(called, (x, t))

    assert mode.call(run, plain(1.0, 2.0), plain(5.0, 6.0)).tolist() == [0.0, 18.0]
