"""Section Q: Functions under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tpc
from tests.contract.modes import Mode, Square, leaf, plain
from tpc.func import grad, jvp, vmap


class Scaled(tpc.autograd.Function):
    """x * factor, with a vmap of its own that notes what it is given."""

    seen: list = []

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None

    @staticmethod
    def vmap(info, in_dims, x, factor):
        Scaled.seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape), factor))
        return Scaled.apply(x, factor), in_dims[0]


class Product(tpc.autograd.Function):
    """a * b, batched by a rule generated from its methods."""

    generate_vmap_rule = True
    shapes: list = []

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b = inputs
        Product.shapes.append((tuple(a.shape), tuple(b.shape)))
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    @staticmethod
    def jvp(ctx, ta, tb):
        a, b = ctx.saved_tensors
        return ta * b + a * tb


def split(vmap: Callable[..., Any] | None = None, **members: Any) -> Any:
    """A split-style Function that doubles, with this vmap."""
    body: dict[str, Any] = {
        "forward": staticmethod(lambda x: x * 2),
        "setup_context": staticmethod(lambda ctx, inputs, output: None),
        "backward": staticmethod(lambda ctx, g: g * 2),
    }
    if vmap is not None:
        body["vmap"] = staticmethod(vmap)
    return type("Custom", (tpc.autograd.Function,), body | members)


MATRIX = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def matrix() -> Any:
    return tpc.tensor(MATRIX)


# --- the vmap static method ---------------------------------------------------------------------


def test_183_vmap_is_told_the_batch(mode: Mode):
    Scaled.seen.clear()
    out = mode.call(lambda x: vmap(lambda row: Scaled.apply(row, 10.0))(x), matrix())
    assert out.tolist() == [[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]
    assert Scaled.seen[0] == (3, "error", (0, None), (3, 2), 10.0)


def test_183_the_batch_dimension_stays_where_it_was(mode: Mode):
    Scaled.seen.clear()
    out = mode.call(lambda x: vmap(lambda column: Scaled.apply(column, 10.0), in_dims=1, out_dims=1)(x), matrix())
    assert out.tolist() == [[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]
    assert Scaled.seen[0] == (2, "error", (1, None), (3, 2), 10.0)


def test_183_randomness_is_passed_on(mode: Mode):
    Scaled.seen.clear()
    mode.call(lambda x: vmap(lambda row: Scaled.apply(row, 1.0), randomness="different")(x), matrix())
    assert Scaled.seen[0][1] == "different"


def test_183_containers_have_their_dims_inside(mode: Mode):
    seen = []

    def rule(info, in_dims, pair):
        seen.append(in_dims)
        return pair[0] + pair[1], 0

    Sum = split(rule, forward=staticmethod(lambda pair: pair[0] + pair[1]))
    out = mode.call(lambda x, y: vmap(lambda row: Sum.apply([row, y]))(x), matrix(), plain(1.0, 1.0))
    assert out.tolist() == [[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert seen[0] == ([0, None],)


def test_184_out_dims_may_be_one_for_all(mode: Mode):
    Two = split(lambda info, dims, x: ((x * 2, x * 3), 0), forward=staticmethod(lambda x: (x * 2, x * 3)))
    a, b = mode.call(lambda x: vmap(Two.apply)(x), plain(1.0, 2.0))
    assert (a.tolist(), b.tolist()) == ([2.0, 4.0], [3.0, 6.0])


def test_184_out_dims_may_differ_and_be_none(mode: Mode):
    Two = split(lambda info, dims, x: ((x.t() * 2, x.sum(0)), (1, None)), forward=staticmethod(lambda x: (x * 2, x)))
    a, b = mode.call(lambda x: vmap(Two.apply)(x), matrix())
    assert a.tolist() == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]
    assert b.tolist() == [[9.0, 12.0]] * 3


@pytest.mark.parametrize("returned", ["one", "three"])
def test_185_vmap_returns_two_things(mode: Mode, returned: str):
    Wrong = split(lambda info, dims, x: x if returned == "one" else (x, 0, 0))
    with pytest.raises(RuntimeError, match="to have two returns"):
        mode.call(lambda x: vmap(Wrong.apply)(x), matrix())


def test_185_out_dims_fit_the_output(mode: Mode):
    Wrong = split(lambda info, dims, x: ((x, x), (0, 0, 0)))
    with pytest.raises(RuntimeError, match="returned an incompatible"):
        mode.call(lambda x: vmap(Wrong.apply)(x), matrix())


def test_186_some_rule_is_needed(mode: Mode):
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        mode.call(lambda x: vmap(split().apply)(x), matrix())


def test_186_two_rules_are_too_many(mode: Mode):
    Both = split(lambda info, dims, x: (x, 0), generate_vmap_rule=True)
    with pytest.raises(RuntimeError, match="generate_vmap_rule=True and an overridden vmap staticmethod"):
        mode.call(lambda x: vmap(Both.apply)(x), matrix())


def test_186_ctx_style_cannot_be_batched(mode: Mode):
    with pytest.raises(RuntimeError, match="must override the setup_context"):
        mode.call(lambda x: vmap(Square.apply)(x), matrix())


# --- the generated rule -------------------------------------------------------------------------


def test_187_setup_context_sees_one_sample(mode: Mode):
    Product.shapes.clear()
    out = mode.call(lambda a, b: vmap(Product.apply, in_dims=(0, None))(a, b), matrix(), plain(10.0, 100.0))
    assert out.tolist() == [[10.0, 200.0], [30.0, 400.0], [50.0, 600.0]]
    assert Product.shapes[0] == ((2,), (2,))


def test_187_backward_sums_over_the_batch_for_unbatched_inputs(mode: Mode):
    a, b = matrix().requires_grad_(), leaf(10.0, 100.0)
    mode.backward(lambda a, b: vmap(Product.apply, in_dims=(0, None))(a, b), a, b)
    assert a.grad.tolist() == [[10.0, 100.0]] * 3
    assert b.grad.tolist() == [9.0, 12.0]


def test_187_jvp_is_batched_too(mode: Mode):
    def run(a, ta, b):
        return jvp(lambda a: vmap(Product.apply, in_dims=(0, None))(a, b), (a,), (ta,))[1]

    out = mode.call(run, matrix(), tpc.ones(3, 2), plain(10.0, 100.0))
    assert out.tolist() == [[10.0, 100.0]] * 3


def test_187_needs_input_grad_inside(mode: Mode):
    seen = []

    def setup_context(ctx, inputs, output):
        seen.append(ctx.needs_input_grad)

    Watched = split(setup_context=staticmethod(setup_context), generate_vmap_rule=True)
    x = matrix().requires_grad_()
    mode.backward(lambda x: vmap(Watched.apply)(x), x)
    assert seen[0] == (True,)
    assert x.grad.tolist() == [[2.0, 2.0]] * 3


def test_187_a_wrong_number_of_gradients_is_noticed(mode: Mode):
    """Difference: in PyTorch a surplus gradient is lost in silence."""
    Wrong = split(backward=staticmethod(lambda ctx, g: (g, g)), generate_vmap_rule=True)
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 1, got 2\)"):
        mode.backward(lambda x: vmap(Wrong.apply)(x), matrix().requires_grad_())


def test_188_the_rule_is_skipped_where_nothing_is_batched(mode: Mode):
    Scaled.seen.clear()
    out = mode.call(lambda x, y: vmap(lambda row: row + Scaled.apply(y, 10.0))(x), matrix(), plain(1.0, 2.0))
    assert out.tolist() == [[11.0, 22.0], [13.0, 24.0], [15.0, 26.0]]
    assert Scaled.seen == []


def test_188_no_rule_is_needed_then(mode: Mode):
    """Difference: PyTorch insists on a rule even where nothing is batched."""
    out = mode.call(lambda x, y: vmap(lambda row: row + split().apply(y))(x), matrix(), plain(1.0, 2.0))
    assert out.tolist() == [[3.0, 6.0], [5.0, 8.0], [7.0, 10.0]]


# --- together with the other transforms ---------------------------------------------------------


def test_189_vmap_over_grad(mode: Mode):
    def run(a, b):
        return vmap(grad(lambda a, b: Product.apply(a, b).sum()), in_dims=(0, None))(a, b)

    assert mode.call(run, matrix(), plain(10.0, 100.0)).tolist() == [[10.0, 100.0]] * 3


def test_189_grad_over_vmap(mode: Mode):
    def run(b, a):
        return grad(lambda b: vmap(Product.apply, in_dims=(0, None))(a, b).sum())(b)

    assert mode.call(run, plain(10.0, 100.0), matrix()).tolist() == [9.0, 12.0]


def test_189_ordinary_backward_through_a_rule_of_ones_own(mode: Mode):
    x = matrix().requires_grad_()
    mode.backward(lambda x: vmap(lambda row: Scaled.apply(row, 10.0).sum())(x), x)
    assert x.grad.tolist() == [[10.0, 10.0]] * 3


def test_189_vmap_of_vmap(mode: Mode):
    Scaled.seen.clear()
    x = tpc.arange(24.0).reshape(2, 3, 4)
    out = mode.call(lambda x: vmap(vmap(lambda row: Scaled.apply(row, 2.0), in_dims=1, out_dims=1))(x), x)
    assert tpc.equal(out, x * 2)
    assert tpc.equal(mode.call(lambda x, y: vmap(vmap(Product.apply, in_dims=(0, None)), in_dims=(0, None))(x, y), x, x[0, 0]), x * x[0, 0])


def test_189_per_sample_gradients_of_second_order(mode: Mode):
    def run(a):
        return vmap(grad(lambda a: grad(lambda a: Product.apply(a, Product.apply(a, a)).sum())(a).sum()))(a)

    assert mode.call(run, matrix()).tolist() == [[6 * x for x in row] for row in MATRIX]


def test_189_jvp_over_vmap_and_vmap_over_jvp(mode: Mode):
    b = plain(10.0, 100.0)
    over = lambda a, t: jvp(lambda a: vmap(lambda a: Product.apply(a, b))(a), (a,), (t,))[1]
    under = lambda a, t: vmap(lambda a, t: jvp(lambda a: Product.apply(a, b), (a,), (t,))[1])(a, t)
    for run in (over, under):
        assert mode.call(run, matrix(), tpc.ones(3, 2)).tolist() == [[10.0, 100.0]] * 3


# --- arguments of vmap itself -------------------------------------------------------------------


def test_189_chunks(mode: Mode):
    Scaled.seen.clear()
    out = mode.call(lambda x: vmap(lambda row: Scaled.apply(row, 2.0), chunk_size=2)(x), matrix())
    assert out.tolist() == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]
    assert [seen[0] for seen in Scaled.seen[:2]] == [2, 1]


def test_189_randomness_flags(mode: Mode):
    def noisy(row):
        return row * 0 + tpc.rand(2)

    with pytest.raises(RuntimeError, match="random"):
        mode.call(lambda x: vmap(noisy)(x), matrix())
    same = mode.call(lambda x: vmap(noisy, randomness="same")(x), matrix())
    different = mode.call(lambda x: vmap(noisy, randomness="different")(x), matrix())
    assert tpc.equal(same[0], same[1])
    assert not tpc.equal(different[0], different[1])
