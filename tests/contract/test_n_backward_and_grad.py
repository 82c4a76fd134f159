"""Section N: what `backward` and `grad` take, give, and refuse."""

from __future__ import annotations

import warnings

import pytest

import tpc
from tests.contract.modes import Double, Mode, Product, Square, custom, leaf, plain


def inside(mode: Mode, function, *args):
    """Runs a function that calls `backward` or `grad` itself: deferred, or as one compiled program."""
    return mode.call(function, *args)


class Pair(tpc.autograd.Function):
    """(2x, 3x); `calls` counts runs of backward."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        Pair.calls += 1
        return a * 2 + b * 3


# --- roots --------------------------------------------------------------------------------------


def test_152_the_root_must_be_tracked(mode: Mode):
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        inside(mode, lambda x: x.sum().backward(), plain(1.0, 2.0))
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        inside(mode, lambda x, y: tpc.autograd.grad(x.sum(), y), plain(1.0, 2.0), leaf(1.0))


def test_152_a_root_with_several_elements_needs_a_gradient(mode: Mode):
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        inside(mode, lambda x: Double.apply(x).backward(), leaf(1.0, 2.0))


def test_152_one_element_counts_as_a_scalar(mode: Mode):
    def run(x):
        Double.apply(x).backward()

    x = leaf(1.0)
    inside(mode, run, x)
    assert x.grad.tolist() == [2.0]


def test_152_a_complex_root_needs_a_gradient():
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        (leaf(1.0) * 1j).sum().backward()


def test_153_the_gradient_has_the_shape_of_the_root(mode: Mode):
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of .*1.* and output\[0\] has a shape of .*2"):
        inside(mode, lambda x: Double.apply(x).backward(tpc.ones(1)), leaf(1.0, 2.0))


def test_153_the_message_counts_the_roots(mode: Mode):
    """Difference: PyTorch looks the gradient up by `==`, so that for the second root comparing the two gradients fails instead."""
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[1\]"):
        inside(
            mode,
            lambda x: tpc.autograd.backward([Double.apply(x), Double.apply(x)], [tpc.ones(2), tpc.ones(3)]),
            leaf(1.0, 2.0),
        )


def test_153_every_root_has_a_gradient(mode: Mode):
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        inside(mode, lambda x: tpc.autograd.backward([Double.apply(x), Double.apply(x)], [tpc.ones(1)]), leaf(1.0))


def test_153_no_gradient_is_left_over(mode: Mode):
    """Difference: PyTorch ignores surplus gradients."""
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        inside(mode, lambda x: tpc.autograd.backward([Double.apply(x)], [tpc.ones(1), tpc.ones(1)]), leaf(1.0))


def test_154_several_roots_of_one_node_reach_backward_together(mode: Mode):
    def run(x):
        a, b = Pair.apply(x)
        tpc.autograd.backward([a, b], [tpc.ones(2), tpc.ones(2) * 10])

    Pair.calls = 0
    x = leaf(1.0, 2.0)
    inside(mode, run, x)
    assert x.grad.tolist() == [32.0, 32.0]
    assert Pair.calls == 1


def test_154_a_root_given_twice_counts_twice(mode: Mode):
    def run(x):
        y = Double.apply(x)
        tpc.autograd.backward([y, y], [tpc.ones(1), tpc.ones(1) * 5])

    x = leaf(1.0)
    inside(mode, run, x)
    assert x.grad.tolist() == [12.0]


def test_154_a_scalar_root_may_have_none(mode: Mode):
    def run(x):
        a, b = Pair.apply(x)
        tpc.autograd.backward([a.sum(), b], [None, tpc.ones(2)])

    x = leaf(1.0, 2.0)
    inside(mode, run, x)
    assert x.grad.tolist() == [5.0, 5.0]


# --- order --------------------------------------------------------------------------------------


def named(order: list, name: str):
    """x + x, whose backward notes its name and what arrived."""

    def backward(ctx, g):
        order.append(name)
        return g * 2

    return custom(name, forward=lambda ctx, x: x + x, backward=backward).apply


def test_155_a_node_runs_once_after_all_its_consumers(mode: Mode):
    order = []
    root, left, right = named(order, "root"), named(order, "left"), named(order, "right")

    def run(x):
        h = root(x)
        return left(h) + right(h)

    x = leaf(1.0)
    mode.backward(run, x)
    assert order[:3] == ["right", "left", "root"]
    assert x.grad.tolist() == [8.0]


def test_155_ready_nodes_run_latest_created_first(mode: Mode):
    order = []
    functions = [named(order, str(i)) for i in range(4)]

    def run(x):
        return [f(x) for f in functions]

    mode.backward(lambda x: sum(run(x)), leaf(1.0))
    assert order[:4] == ["3", "2", "1", "0"]


def test_156_nodes_off_the_paths_do_not_run(mode: Mode):
    order = []
    towards, away = named(order, "towards"), named(order, "away")

    def run(x, y):
        return tpc.autograd.grad(towards(x) + away(y), x)

    (gx,) = inside(mode, run, leaf(1.0), leaf(1.0))
    assert gx.tolist() == [2.0]
    assert order == ["towards"]


def test_156_nor_do_they_for_backward_with_inputs(mode: Mode):
    order = []
    towards, away = named(order, "towards"), named(order, "away")

    def run(x, y):
        (towards(x) + away(y)).backward(inputs=[x])

    x, y = leaf(1.0), leaf(1.0)
    inside(mode, run, x, y)
    assert (x.grad.tolist(), y.grad, order) == ([2.0], None, ["towards"])


# --- backward(inputs=...) -----------------------------------------------------------------------


def test_157_only_the_inputs_accumulate(mode: Mode):
    def run(a, b):
        Product.apply(a, b).backward(inputs=a)

    a, b = leaf(2.0), leaf(3.0)
    inside(mode, run, a, b)
    assert (a.grad.tolist(), b.grad) == ([3.0], None)


def test_157_inputs_may_be_non_leaves(mode: Mode):
    def run(x):
        h = Double.apply(x)
        Square.apply(h).backward(inputs=[h, x])
        return h.grad

    x = leaf(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert inside(mode, run, x).tolist() == [12.0]
    assert x.grad.tolist() == [24.0]


def test_157_a_non_leaf_ends_the_pass_with_its_own_node(mode: Mode):
    """The gradient of a non-leaf is filled as by `retain_grad`, when its node runs; nothing behind that does."""
    order = []
    first, second = named(order, "first"), named(order, "second")

    def run(x):
        h = second(first(x))
        Square.apply(h).backward(inputs=[h])
        assert h.retains_grad
        return h.grad

    x = leaf(3.0)
    assert inside(mode, run, x).tolist() == [24.0]
    assert (x.grad, order) == (None, ["second"])


def test_157_what_cannot_be_reached_keeps_none(mode: Mode):
    def run(x, y):
        Square.apply(x).backward(inputs=[x, y])

    x, y = leaf(3.0), leaf(1.0)
    inside(mode, run, x, y)
    assert (x.grad.tolist(), y.grad) == ([6.0], None)


def test_157_inputs_must_not_be_empty(mode: Mode):
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        inside(mode, lambda x: Square.apply(x).backward(inputs=[]), leaf(1.0))


# --- grad ---------------------------------------------------------------------------------------


def test_158_grad_gives_a_tuple_and_touches_no_grad(mode: Mode):
    def run(x):
        got = tpc.autograd.grad(Square.apply(x), x)
        assert type(got) is tuple
        return got

    x = leaf(3.0)
    assert inside(mode, run, x)[0].tolist() == [6.0]
    assert x.grad is None


def test_158_inputs_of_grad_must_be_tracked(mode: Mode):
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        inside(mode, lambda x, y: tpc.autograd.grad(Square.apply(x), [x, y]), leaf(1.0), plain(1.0))


def test_158_grad_of_an_intermediate(mode: Mode):
    def run(x):
        h = Double.apply(x)
        return tpc.autograd.grad(Square.apply(h), [h, x])

    gh, gx = inside(mode, run, leaf(3.0))
    assert (gh.tolist(), gx.tolist()) == ([12.0], [24.0])


def test_159_an_unused_input_is_an_error(mode: Mode):
    with pytest.raises(RuntimeError, match=r"appears to not have been used in the graph. Set allow_unused=True"):
        inside(mode, lambda x, y: tpc.autograd.grad(Square.apply(x), [x, y]), leaf(1.0), leaf(1.0))


def test_159_with_allow_unused_it_is_none(mode: Mode):
    gx, gy = inside(mode, lambda x, y: tpc.autograd.grad(Square.apply(x), [x, y], allow_unused=True), leaf(3.0), leaf(1.0))
    assert (gx.tolist(), gy) == ([6.0], None)


def test_160_materialize_grads_gives_zeros(mode: Mode):
    gx, gy = inside(mode, lambda x, y: tpc.autograd.grad(Square.apply(x), [x, y], materialize_grads=True), leaf(3.0), leaf(1.0))
    assert (gx.tolist(), gy.tolist()) == ([6.0], [0.0])


def test_160_materialize_grads_contradicts_allow_unused_false():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        tpc.autograd.grad(Square.apply(x), x, materialize_grads=True, allow_unused=False)


# --- is_grads_batched ---------------------------------------------------------------------------


def test_161_a_batch_of_gradients_goes_through_one_backward(mode: Mode):
    seen = []

    class Watched(Square):
        @staticmethod
        def backward(ctx, g):
            seen.append(tuple(g.shape))
            return Square.backward(ctx, g)

    def run(x, directions):
        y = Watched.apply(x)
        return tpc.autograd.grad(y, x, directions, is_grads_batched=True)

    (rows,) = inside(mode, run, leaf(1.0, 2.0), tpc.eye(2))
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert set(seen) == {(2,)}
    assert len(seen) == 1


def test_161_several_outputs_and_unused_inputs(mode: Mode):
    def run(a, b, unused):
        outputs = [Product.apply(a, b), Square.apply(a)]
        batches = [tpc.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), tpc.zeros(3, 2)]
        return tpc.autograd.grad(outputs, [a, b, unused], batches, is_grads_batched=True, allow_unused=True)

    ga, gb, none = inside(mode, run, leaf(2.0, 3.0), leaf(5.0, 7.0), leaf(1.0))
    assert ga.tolist() == [[5.0, 0.0], [0.0, 7.0], [5.0, 7.0]]
    assert gb.tolist() == [[2.0, 0.0], [0.0, 3.0], [2.0, 3.0]]
    assert none is None


def test_161_shapes_are_checked_behind_the_batch():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="we interpret the first dimension of each grad_output as the batch dimension"):
        tpc.autograd.grad(Square.apply(x), x, tpc.ones(4, 3), is_grads_batched=True)


def test_161_built_in_operations_and_higher_order(mode: Mode):
    def run(x):
        y = (x * x * x).sum()
        (first,) = tpc.autograd.grad(y, x, create_graph=True)
        return tpc.autograd.grad(first, x, tpc.eye(2), is_grads_batched=True)

    (hessian,) = inside(mode, run, leaf(1.0, 2.0))
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]


# --- accumulation -------------------------------------------------------------------------------


def test_162_a_second_backward_adds_in_place(mode: Mode):
    x = leaf(3.0)
    mode.backward(Square.apply, x)
    first = x.grad
    mode.backward(Double.apply, x)
    assert x.grad is first
    assert x.grad.tolist() == [8.0]


def test_162_also_into_a_tensor_of_the_users(mode: Mode):
    x, mine = leaf(3.0), plain(100.0)
    x.grad = mine
    mode.backward(Square.apply, x)
    assert x.grad is mine
    assert mine.tolist() == [106.0]


def test_162_with_create_graph_a_new_tensor_replaces_it(mode: Mode):
    x = leaf(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode.backward(Square.apply, x, create_graph=True)
        first = x.grad
        mode.backward(Square.apply, x, create_graph=True)
    assert x.grad is not first
    assert (first.tolist(), x.grad.tolist()) == ([6.0], [12.0])
    assert x.grad.requires_grad


def test_162_twice_inside_one_function(mode: Mode):
    def run(x):
        Square.apply(x).backward()
        first = x.grad
        Double.apply(x).backward()
        assert x.grad is first

    x = leaf(3.0)
    inside(mode, run, x)
    assert x.grad.tolist() == [8.0]


def test_163_what_grad_may_be_set_to():
    x = leaf(1.0, 2.0)
    x.grad = tpc.ones(2)
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = tpc.ones(3)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = tpc.ones(2, dtype=tpc.float64)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 1.0


def test_163_setting_grad_inside_a_function(mode: Mode):
    def run(x):
        x.grad = None
        Square.apply(x).backward()

    x = leaf(3.0)
    x.grad = tpc.ones(1)
    inside(mode, run, x)
    assert x.grad.tolist() == [6.0]


def test_163_grad_dtype_says_in_which_dtype_gradients_arrive(mode: Mode):
    x, seen = leaf(1.0, 2.0), []
    assert x.grad_dtype is tpc.float32
    x.grad_dtype = tpc.float64
    handle = x.register_hook(lambda g: seen.append(g.dtype))
    mode.backward(Square.apply, x)
    assert (x.grad.dtype, x.grad.tolist()) == (tpc.float64, [2.0, 4.0])
    assert set(seen) == {tpc.float64}
    handle.remove()
    with pytest.raises(RuntimeError, match=r"Cannot set grad_dtype to .* because there is already a gradient with dtype"):
        x.grad_dtype = tpc.float32


def test_163_grad_dtype_none_takes_any(mode: Mode):
    Wide = custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g.double() * 2)
    x = leaf(1.0)
    x.grad_dtype = None
    mode.backward(Wide.apply, x)
    assert (x.grad.dtype, x.grad.tolist()) == (tpc.float64, [2.0])
    x.grad = tpc.ones(1, dtype=tpc.int64)


def test_163_a_grad_dtype_changed_between_calls_counts(mode: Mode):
    x = leaf(3.0)

    def run(x):
        return tpc.autograd.grad(Square.apply(x).sum(), x)[0]

    call = mode.compiled(run)
    assert call(x).dtype is tpc.float32
    x.grad_dtype = tpc.float64
    assert call(x).dtype is tpc.float64


def test_163_grad_dtype_belongs_to_leaves():
    with pytest.raises(RuntimeError, match="grad_dtype can only be accessed on leaf tensors"):
        (leaf(1.0) * 2).grad_dtype
    with pytest.raises(RuntimeError, match=r"grad_dtype must be a .*dtype or None, but got int"):
        leaf(1.0).grad_dtype = 3


def test_164_only_floating_tensors_require_grad():
    with pytest.raises(RuntimeError, match=r"only Tensors of floating point.* dtype can require gradients"):
        tpc.tensor([1, 2]).requires_grad_()
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        tpc.tensor([1, 2], requires_grad=True)
    tpc.tensor([1, 2]).requires_grad_(False)


def test_164_a_non_leaf_keeps_its_flag(mode: Mode):
    def run(x):
        y = Double.apply(x)
        y.requires_grad_()
        for flag in (True, False):
            with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
                y.requires_grad = flag
        return y

    inside(mode, run, leaf(1.0))


def test_164_a_flag_changed_between_calls_counts(mode: Mode):
    x = leaf(3.0)
    call = mode.compiled(Square.apply)
    assert call(x).requires_grad
    x.requires_grad_(False)
    assert not call(x).requires_grad
    x.requires_grad_()
    assert call(x).requires_grad


def test_165_grad_of_a_non_leaf_is_none_with_a_warning():
    y = Double.apply(leaf(1.0))
    with pytest.warns(UserWarning, match="grad attribute of a Tensor that is not a leaf"):
        assert y.grad is None


def test_166_other_inputs_of_a_node_get_zeros_not_none(mode: Mode):
    """The node runs, with zeros for the output that was not asked for, and owes a gradient for every input."""

    def forward(ctx, a, b):
        return a * 2, b * 3

    Both = custom(forward=forward, backward=lambda ctx, ga, gb: (ga * 2, gb * 3))

    def run(a, b):
        out, _ = Both.apply(a, b)
        return tpc.autograd.grad(out, [a, b])

    ga, gb = inside(mode, run, leaf(1.0), leaf(1.0))
    assert (ga.tolist(), gb.tolist()) == ([2.0], [0.0])
