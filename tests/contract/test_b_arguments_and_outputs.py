"""Section B: what `apply` takes, and what becomes of what forward returns."""

from __future__ import annotations

import enum
from collections import namedtuple

import pytest

import tpc
from tests.contract.modes import Double, Mode, custom, leaf, plain


class Colour(enum.Enum):
    RED = 1


class Recorder(tpc.autograd.Function):
    """Multiplies its first argument by 2 and takes anything besides."""

    @staticmethod
    def forward(ctx, x, *rest):
        ctx.count = len(rest)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return (g * 2, *[None] * ctx.count)


class Mixed(tpc.autograd.Function):
    """a * p[0] + p[1] * d["gain"]: a tensor, a pair and a dict."""

    @staticmethod
    def forward(ctx, a, pair, more):
        ctx.save_for_backward(a, *pair, more["gain"])
        return a * pair[0] + pair[1] * more["gain"]

    @staticmethod
    def backward(ctx, g):
        a, p, q, gain = ctx.saved_tensors
        return g * p, g * a, g * gain, g * q


class MixedByArgument(Mixed):
    """The same, with one gradient for each argument."""

    @staticmethod
    def backward(ctx, g):
        a, p, q, gain = ctx.saved_tensors
        return g * p, (g * a, g * gain), {"gain": g * q}


def test_018_any_object_may_be_an_argument(mode: Mode):
    x = leaf(1.0)
    anything = (3, 2.5, "text", None, {"a": 1}, len, Colour.RED, [1, 2], (), object())
    out = mode.backward(lambda x: Recorder.apply(x, *anything), x)
    assert (out.tolist(), x.grad.tolist()) == ([2.0], [2.0])


def test_018_integer_index_tensors_are_arguments_without_gradient(mode: Mode):
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return tpc.zeros(3).index_put((index,), g, accumulate=True), None

    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        return x[index]

    x = leaf(1.0, 2.0, 3.0)
    mode.backward(custom(forward=forward, backward=backward).apply, x, plain(2, 0, 2))
    assert x.grad.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("function", [Mixed, MixedByArgument])
def test_019_tensors_in_containers_are_inputs(mode: Mode, function: type):
    """Difference: PyTorch treats a container as one opaque argument; here each tensor inside is an input like any other."""
    a, p, q, gain = leaf(1.0), leaf(2.0), leaf(3.0), leaf(4.0)
    mode.backward(lambda *t: function.apply(t[0], [t[1], t[2]], {"gain": t[3]}), a, p, q, gain)
    assert [t.grad.item() for t in (a, p, q, gain)] == [2.0, 1.0, 4.0, 3.0]


def test_019_containers_are_walked_depth_first_and_each_leaf_is_a_slot(mode: Mode):
    """Difference: PyTorch has one slot for each argument."""
    seen = []

    def forward(ctx, nest, shape):
        seen.append(ctx.needs_input_grad)
        return nest[0] * nest[1]["a"][0] * 2

    Nest = custom(forward=forward, backward=lambda ctx, g: (g, None, None, g * 10, None))
    a, b = leaf(1.0), leaf(2.0)
    mode.backward(lambda a, b: Nest.apply((a, {"a": [plain(1.0), 7], "b": b}), (2, 3)), a, b)
    assert seen[-1] == (True, False, False, True, False)
    assert (a.grad.item(), b.grad.item()) == (1.0, 10.0)


def test_019_next_functions_has_an_edge_for_each_tensor_in_a_container():
    """Difference: PyTorch has none for tensors in containers."""
    a, p, q = leaf(1.0), leaf(2.0), leaf(3.0)
    edges = Mixed.apply(a, [p, q], {"gain": plain(1.0)}).grad_fn.next_functions
    assert [n.variable if n is not None else None for n, _ in edges] == [a, p, q, None]


def test_020_a_gradient_for_a_container_without_tensors_is_an_error(mode: Mode):
    Shaped = custom(forward=lambda ctx, x, shape: x * 2, backward=lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match=r"gradient different than None at position 2.*was not a Variable"):
        mode.backward(lambda x: Shaped.apply(x, [1, 2]), leaf(1.0))


def test_020_none_stands_for_a_whole_container(mode: Mode):
    """Difference: PyTorch treats the container as opaque."""
    Partial = custom(forward=lambda ctx, x, pair: x * pair[0], backward=lambda ctx, g: (g, None))
    x, a, b = leaf(1.0), leaf(2.0), leaf(3.0)
    mode.backward(lambda x, a, b: Partial.apply(x, (a, b)), x, a, b)
    assert (x.grad.item(), a.grad, b.grad) == (1.0, None, None)


def test_021_keyword_only_parameters_are_passed_through_and_have_no_slot(mode: Mode):
    """Difference: PyTorch refuses keyword-only parameters."""

    def forward(ctx, x, *, factor=2.0):
        ctx.factor = factor
        return x * factor

    Keyword = custom(forward=forward, backward=lambda ctx, g: g * ctx.factor)
    x = leaf(1.0)
    assert mode.backward(lambda x: Keyword.apply(x, factor=7.0), x).tolist() == [7.0]
    assert x.grad.tolist() == [7.0]
    assert mode.call(lambda x: Keyword.apply(x), x).tolist() == [2.0]


def test_021_keyword_only_parameters_in_split_style(mode: Mode):
    """Difference: PyTorch refuses keyword-only parameters. `inputs` holds the positional ones alone."""
    seen = []

    def forward(x, *, factor=2.0):
        return x * factor

    Keyword = custom(forward=forward, setup_context=lambda ctx, inputs, output: seen.append(len(inputs)), backward=lambda ctx, g: g * 7)
    x = leaf(1.0)
    assert mode.backward(lambda x: Keyword.apply(x, factor=7.0), x).tolist() == [7.0]
    assert (x.grad.tolist(), seen[-1]) == ([7.0], 1)


class Axpy(tpc.autograd.Function):
    """x * k + z."""

    @staticmethod
    def forward(ctx, x, k=2.0, z=None):
        ctx.k = k
        ctx.flags = ctx.needs_input_grad
        return x * k if z is None else x * k + z

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None, g


def test_022_a_keyword_takes_its_position_and_is_an_ordinary_slot(mode: Mode):
    x, z = leaf(1.0), leaf(10.0)
    assert mode.backward(lambda x, z: Axpy.apply(x, k=3.0, z=z), x, z).tolist() == [13.0]
    assert (x.grad.tolist(), z.grad.tolist()) == ([3.0], [1.0])


def test_022_a_tensor_given_by_keyword_tracks_the_output(mode: Mode):
    z = leaf(10.0)
    assert mode.call(lambda z: Axpy.apply(plain(1.0), k=3.0, z=z), z).requires_grad


def test_022_a_gap_before_a_keyword_is_an_error(mode: Mode):
    with pytest.raises(TypeError, match="missing required argument"):
        mode.call(lambda x: Axpy.apply(x, z=x), leaf(1.0))


def test_023_defaults_that_are_left_out_have_no_slot(mode: Mode):
    seen = []

    def forward(ctx, x, factor=2.0):
        seen.append(ctx.needs_input_grad)
        return x * factor

    x = leaf(1.0)
    mode.backward(custom(forward=forward, backward=lambda ctx, g: (g * 2, None)).apply, x)
    assert (seen[-1], x.grad.tolist()) == ((True,), [2.0])


def test_024_any_number_of_arguments_in_ctx_style(mode: Mode):
    def forward(ctx, *xs):
        ctx.count = len(xs)
        return sum(xs[1:], xs[0])

    Sum = custom(forward=forward, backward=lambda ctx, g: tuple(g * (i + 1) for i in range(ctx.count)))
    xs = [leaf(1.0), leaf(2.0), leaf(3.0)]
    assert mode.backward(Sum.apply, *xs).tolist() == [6.0]
    assert [x.grad.item() for x in xs] == [1.0, 2.0, 3.0]


def test_024_any_number_of_arguments_in_split_style(mode: Mode):
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    Sum = custom(forward=lambda *xs: sum(xs[1:], xs[0]), setup_context=setup_context, backward=lambda ctx, g: tuple([g] * ctx.count))
    xs = [leaf(1.0), leaf(2.0), leaf(3.0)]
    mode.backward(Sum.apply, *xs)
    assert [x.grad.item() for x in xs] == [1.0, 1.0, 1.0]


def test_025_the_same_tensor_in_two_slots_gets_both_gradients(mode: Mode):
    Weighted = custom(forward=lambda ctx, a, b: a * 2 + b * 3, backward=lambda ctx, g: (g * 2, g * 3))
    x = leaf(1.0)
    mode.backward(lambda x: Weighted.apply(x, x), x)
    assert x.grad.tolist() == [5.0]


def test_025_next_functions_shows_two_edges():
    Weighted = custom(forward=lambda ctx, a, b: a * 2 + b * 3, backward=lambda ctx, g: (g * 2, g * 3))
    x = leaf(1.0)
    (first, second) = Weighted.apply(x, x).grad_fn.next_functions
    assert first == second


@pytest.mark.parametrize(
    ("wrap", "kind"), [(lambda t: t, tpc.Tensor), (lambda t: (), tuple), (lambda t: (t,), tuple), (lambda t: (t, t * 2), tuple)]
)
def test_026_one_value_comes_back_as_itself_a_tuple_as_a_tuple(mode: Mode, wrap, kind: type):
    Wrapped = custom(forward=lambda ctx, x: wrap(x * 2), backward=lambda ctx, *gs: sum(gs))
    out = mode.call(Wrapped.apply, leaf(1.0))
    assert type(out) is kind
    if kind is tuple:
        assert len(out) == len(wrap(plain(1.0)))


def test_027_a_list_is_spread_and_stays_a_list(mode: Mode):
    """Difference: PyTorch keeps a list opaque, its tensors untracked."""
    Pair = custom(forward=lambda ctx, x: [x * 2, x * 3], backward=lambda ctx, g, h: g * 2 + h * 3)
    x = leaf(1.0)
    out = mode.backward(Pair.apply, x)
    assert (type(out), [t.requires_grad for t in out]) == (list, [True, True])
    assert x.grad.tolist() == [5.0]


def test_027_a_dict_stays_opaque(mode: Mode):
    Dict = custom(forward=lambda ctx, x: {"y": x * 2}, backward=lambda ctx, g: g)
    out = mode.call(Dict.apply, leaf(1.0))
    assert (out["y"].tolist(), out["y"].requires_grad) == ([2.0], False)


Pair = namedtuple("Pair", "left right")


def test_028_a_named_tuple_is_spread_and_comes_back_plain(mode: Mode):
    Named = custom(forward=lambda ctx, x: Pair(x * 2, x * 3), backward=lambda ctx, g, h: g * 2 + h * 3)
    x = leaf(1.0)
    out = mode.backward(Named.apply, x)
    assert (type(out), x.grad.tolist()) == (tuple, [5.0])


def test_029_tensors_inside_an_inner_container_stay_untracked(mode: Mode):
    seen = []

    def backward(ctx, g, inner):
        seen.append(inner)
        return g * 2

    Inner = custom(forward=lambda ctx, x: (x * 2, [x * 3]), backward=backward)
    x = leaf(1.0)
    out = mode.backward(lambda x: Inner.apply(x), x)
    assert (out[1][0].requires_grad, x.grad.tolist(), seen[-1]) == (False, [2.0], None)


def test_030_other_outputs_pass_through_with_none_as_gradient(mode: Mode):
    seen = []

    def backward(ctx, g, a, b, c):
        seen.append((a, b, c))
        return g * 2

    Info = custom(forward=lambda ctx, x: (x * 2, 7, "text", None), backward=backward)
    x = leaf(1.0)
    out = mode.backward(Info.apply, x)
    assert (out[1:], x.grad.tolist(), seen[-1]) == ((7, "text", None), [2.0], (None, None, None))


def test_031_every_floating_output_is_tracked_if_any_input_is(mode: Mode):
    Split = custom(forward=lambda ctx, x, y: (x * 2, y * 3), backward=lambda ctx, g, h: (g * 2 + h, h * 3))
    x, y = leaf(1.0), plain(1.0)
    out = mode.call(Split.apply, x, y)
    assert [t.requires_grad for t in out] == [True, True]
    mode.backward(lambda x, y: Split.apply(x, y)[1], x, y)
    assert x.grad.tolist() == [1.0]


def test_032_a_call_is_recorded_if_recording_is_on_and_an_argument_is_tracked(mode: Mode):
    x = leaf(1.0)
    assert mode.call(Double.apply, x).requires_grad
    assert not mode.call(Double.apply, plain(1.0)).requires_grad
    with tpc.no_grad():
        assert not mode.call(Double.apply, x).requires_grad


class Parameter(tpc.Tensor):
    pass


def test_033_outputs_are_plain_tensors(mode: Mode):
    seen = []

    def forward(ctx, x):
        seen.append(x is given)
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        seen.append(ctx.saved_tensors[0] is given)
        return g * 2

    given = leaf(1.0)
    out = mode.backward(custom(forward=forward, backward=backward).apply, given)
    assert all(seen)
    assert type(out) is tpc.Tensor


def test_034_the_functions_node_replaces_any_history_of_what_is_returned(mode: Mode):
    def forward(ctx, x):
        with tpc.enable_grad():
            return x * x * x

    x = leaf(2.0)
    mode.backward(custom(forward=forward, backward=lambda ctx, g: g).apply, x)
    assert x.grad.tolist() == [1.0]


def test_034_a_fresh_leaf_that_is_returned_becomes_an_output(mode: Mode):
    Fresh = custom(forward=lambda ctx, x: tpc.ones(1, requires_grad=True), backward=lambda ctx, g: g * 5)
    x = leaf(2.0)
    out = mode.backward(Fresh.apply, x)
    assert (out.is_leaf, x.grad.tolist()) == (False, [5.0])


def test_034_a_captured_leaf_that_is_returned_stops_being_a_leaf(mode: Mode):
    w = leaf(7.0)
    x = leaf(2.0)
    out = mode.backward(custom(forward=lambda ctx, x: w, backward=lambda ctx, g: g * 5).apply, x)
    assert (out is w, w.is_leaf) == (True, False)
    assert x.grad.tolist() == [5.0]


def test_034_a_captured_buffer_that_is_returned_takes_the_history(mode: Mode):
    buffer = plain(7.0)
    Buffered = custom(forward=lambda ctx, x: buffer, backward=lambda ctx, g: g * 5)
    x = leaf(2.0)
    out = mode.backward(Buffered.apply, x)
    assert (out is buffer, buffer.requires_grad, x.grad.tolist()) == (True, True, [5.0])
