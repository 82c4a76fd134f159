"""Sections H and I: how many gradients backward returns, of which kind, shape and dtype."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Double, Mode, Square, custom, leaf, plain


def returning(result, forward=lambda ctx, *xs: xs[0] * 2):
    """A Function whose backward returns `result(g)`."""
    return custom("Returning", forward=forward, backward=lambda ctx, g: result(g))


def identity_with(gradient, shape=(), dtype=tpc.float32):
    """Gradient of a (shape, dtype) input when backward returns `gradient`."""
    return returning(lambda g: gradient(), forward=lambda ctx, x: x * 1), tpc.zeros(shape, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize(("result", "got"), [(lambda g: (g,), 1), (lambda g: (g, g, g), 3), (lambda g: (), 0), (lambda g: (g, None, g), 3)])
def test_102_the_number_of_gradients_must_be_that_of_the_slots(mode: Mode, result, got: int):
    words = rf"function ReturningBackward.* returned an incorrect number of gradients \(expected 2, got {got}\)"
    with pytest.raises(RuntimeError, match=words):
        mode.backward(lambda x: returning(result).apply(x, x), leaf(1.0))


def test_103_surplus_nones_are_fine(mode: Mode):
    x = leaf(1.0)
    mode.backward(returning(lambda g: (g * 2, None, None)).apply, x)
    assert x.grad.tolist() == [2.0]


def test_104_a_bare_tensor_is_one_gradient_and_a_bare_none_one_none(mode: Mode):
    x = leaf(1.0)
    mode.backward(returning(lambda g: g * 2).apply, x)
    mode.backward(returning(lambda g: None).apply, x)
    assert x.grad.tolist() == [2.0]


def test_104_a_list_is_one_value(mode: Mode):
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        mode.backward(lambda x: returning(lambda g: [g, g]).apply(x, x), leaf(1.0))
    with pytest.raises(RuntimeError, match="expected Variable or None"):
        mode.backward(returning(lambda g: [g]).apply, leaf(1.0))


@pytest.mark.parametrize(("value", "kind"), [(1.5, "float"), ("text", "str"), (True, "bool")])
def test_105_each_value_is_a_tensor_or_none(mode: Mode, value: object, kind: str):
    with pytest.raises(RuntimeError, match=rf"expected Variable or None \(got {kind}\)"):
        mode.backward(returning(lambda g: value).apply, leaf(1.0))


def test_106_a_gradient_for_what_is_no_tensor(mode: Mode):
    with pytest.raises(RuntimeError, match="gradient different than None at position 2"):
        mode.backward(lambda x: returning(lambda g: (g, g)).apply(x, 3), leaf(1.0))


def test_107_backward_gets_one_argument_for_each_output(mode: Mode):
    Two = custom(forward=lambda ctx, x: (x * 2, x * 3), backward=lambda ctx, g: g)
    with pytest.raises(TypeError, match="positional argument"):
        mode.backward(Two.apply, leaf(1.0))


def test_108_none_is_no_gradient(mode: Mode):
    """Difference: PyTorch 2.13 calls tensor hooks with None; here they are not called."""
    seen = []
    x, y = leaf(1.0), leaf(1.0)
    x.register_hook(lambda g: seen.append(g))
    mode.backward(lambda x, y: returning(lambda g: (None, g)).apply(x, y), x, y)
    assert (x.grad, y.grad.tolist(), seen) == (None, [1.0], [])


def test_108_grad_treats_the_input_as_unused(mode: Mode):
    x, y = leaf(1.0), leaf(1.0)
    gx, gy = mode.gradients(lambda x, y: returning(lambda g: (None, g)).apply(x, y), x, y)
    assert (gx, gy.tolist()) == (None, [1.0])

    def strictly(x, y):
        return tpc.autograd.grad(returning(lambda g: (None, g)).apply(x, y).sum(), [x, y])

    with pytest.raises(RuntimeError, match="allow_unused=True"):
        mode.call(strictly, x, y)


def test_109_what_is_behind_a_none_still_runs_with_zeros(mode: Mode):
    seen = []

    def backward(ctx, g):
        seen.append(1)
        return g * 2

    Upstream = custom(forward=lambda ctx, x: x * 2, backward=backward)
    x = leaf(1.0)
    mode.backward(lambda x: returning(lambda g: None).apply(Upstream.apply(x)), x)
    assert (len(seen) > 0, x.grad.tolist()) == (True, [0.0])


def test_109_or_with_none_where_it_asked_for_that(mode: Mode):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    def backward(ctx, g):
        seen.append(g)

    x = leaf(1.0)
    mode.backward(lambda x: returning(lambda g: None).apply(custom(forward=forward, backward=backward).apply(x)), x)
    assert (seen[-1], x.grad) == (None, None)


@pytest.mark.parametrize(
    ("given", "wanted"), [((4, 2, 3), (2, 3)), ((2, 3), (1, 3)), ((2,), ()), ((2, 3), ()), ((5, 1, 3), (1, 3)), ((3, 2), (3, 1))]
)
def test_110_gradients_are_summed_down_to_the_inputs_shape(mode: Mode, given: tuple, wanted: tuple):
    values = tpc.arange(tpc.ones(given).numel(), dtype=tpc.float32).reshape(given)
    function, x = identity_with(lambda: values, wanted)
    mode.backward(function.apply, x)
    extra = len(given) - len(wanted)
    expected = values.sum(list(range(extra))) if extra else values
    for dim, n in enumerate(wanted):
        if n == 1:
            expected = expected.sum(dim, keepdim=True)
    assert (tuple(x.grad.shape), x.grad.tolist()) == (wanted, expected.tolist())


@pytest.mark.parametrize(
    ("given", "wanted"), [((3,), (2,)), ((1,), (2,)), ((), (1,)), ((), (2,)), ((3, 2), (2, 3)), ((6,), (2, 3)), ((3,), (2, 3))]
)
def test_111_any_other_shape_is_an_error(mode: Mode, given: tuple, wanted: tuple):
    function, x = identity_with(lambda: tpc.ones(given), wanted)
    words = r"Function ReturningBackward.* returned an invalid gradient at index 0 - got \[.*\] but expected shape compatible with \[.*\]"
    with pytest.raises(RuntimeError, match=words):
        mode.backward(function.apply, x)


def test_111_the_index_counts_tensor_slots(mode: Mode):
    Misshapen = returning(lambda g: (g, None, tpc.ones(3)))
    with pytest.raises(RuntimeError, match="invalid gradient at index 1"):
        mode.backward(lambda x: Misshapen.apply(x, "text", x), leaf(1.0, 2.0))


@pytest.mark.parametrize("dtype", [tpc.float64, tpc.float16, tpc.int64, tpc.bool], ids=str)
def test_112_other_real_dtypes_are_cast(mode: Mode, dtype):
    seen = []
    function, x = identity_with(lambda: tpc.ones(2).to(dtype), (2,))
    x.register_hook(lambda g: seen.append(g.dtype))
    mode.backward(function.apply, x)
    assert (x.grad.dtype, x.grad.tolist(), seen[-1]) == (tpc.float32, [1.0, 1.0], tpc.float32)


def test_112_upstream_functions_get_the_cast_gradient(mode: Mode):
    seen = []

    def backward(ctx, g):
        seen.append(g.dtype)
        return g

    Upstream = custom(forward=lambda ctx, x: x * 2, backward=backward)
    mode.backward(lambda x: returning(lambda g: g.to(tpc.float64)).apply(Upstream.apply(x)), leaf(1.0))
    assert seen[-1] == tpc.float32


def test_113_a_complex_gradient_for_a_real_input_is_an_error(mode: Mode):
    function, x = identity_with(lambda: tpc.ones(1, dtype=tpc.complex64), (1,))
    with pytest.raises(RuntimeError):
        mode.backward(function.apply, x)


def test_113_a_real_gradient_for_a_complex_input_is_cast(mode: Mode):
    function, x = identity_with(lambda: tpc.ones(1), (1,), tpc.complex64)
    mode.backward(function.apply, x)
    assert (x.grad.dtype, x.grad.tolist()) == (tpc.complex64, [1 + 0j])


def test_114_backward_gets_the_outputs_dtype_and_shape(mode: Mode):
    seen = []

    def backward(ctx, g):
        seen.append((g.dtype, tuple(g.shape)))
        return g.sum().to(tpc.float32)

    Widening = custom(forward=lambda ctx, x: x.to(tpc.float64).expand(2, 3), backward=backward)
    x = leaf(1.0)
    mode.backward(lambda x: Widening.apply(x[0]) * tpc.ones(4, 2, 3), x)
    assert (seen[-1], x.grad.tolist()) == ((tpc.float64, (2, 3)), [24.0])


def test_115_leaf_gradients_share_no_memory():
    Spread = custom(forward=lambda ctx, a, b: a + b, backward=lambda ctx, g: (g, g))
    a, b, root = leaf(1.0), leaf(2.0), plain(1.0)
    Spread.apply(a, b).backward(root)
    a.grad.add_(10)
    assert (a.grad.tolist(), b.grad.tolist(), root.tolist()) == ([11.0], [1.0], [1.0])


def test_115_nor_with_what_was_saved(mode: Mode):
    class Saved(Square):
        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0]

    x = leaf(3.0)
    mode.backward(Saved.apply, x)
    x.grad.add_(1)
    assert (x.grad.tolist(), x.tolist()) == ([4.0], [3.0])


def test_115_two_leaves_of_a_compiled_call_share_no_memory(mode: Mode):
    Spread = custom(forward=lambda ctx, a, b: a + b, backward=lambda ctx, g: (g, g))
    a, b = leaf(1.0), leaf(2.0)
    mode.backward(Spread.apply, a, b)
    a.grad.add_(10)
    assert (a.grad.tolist(), b.grad.tolist()) == ([11.0], [1.0])


def test_116_leaf_gradients_are_untracked(mode: Mode):
    class Saved(Square):
        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0]

    x = leaf(3.0)
    mode.backward(Saved.apply, x)
    assert (x.grad.requires_grad, x.grad.grad_fn) == (False, None)


def test_117_the_incoming_gradient_may_be_expanded():
    seen = []

    def backward(ctx, g):
        seen.append((g.is_contiguous(), g.stride()))
        return g * 2

    x = leaf(1.0, 2.0)
    custom(forward=lambda ctx, x: x * 2, backward=backward).apply(x).sum().backward()
    assert (seen, x.grad.tolist()) == ([(False, (0,))], [2.0, 2.0])


def test_117_writing_an_expanded_gradient_is_an_error(mode: Mode):
    Writing = custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g.mul_(2))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        mode.backward(lambda x: Writing.apply(x).sum(), leaf(1.0, 2.0))


def test_117_writing_one_that_is_not_is_fine(mode: Mode):
    Writing = custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g.mul_(2))
    x = leaf(1.0, 2.0)
    mode.backward(lambda x: Double.apply(Writing.apply(x)), x)
    assert x.grad.tolist() == [4.0, 4.0]
