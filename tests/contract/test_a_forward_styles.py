"""Section A: the two ways to write a Function, and what holds inside its methods."""

from __future__ import annotations

import numpy as np
import pytest

import tpc
from tests.contract.modes import Double, Mode, Product, Square, custom, leaf, plain


class SplitSquare(tpc.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class Scaled(tpc.autograd.Function):
    """Split style with defaults; `seen` collects what setup_context is given."""

    seen: tuple = ()

    @staticmethod
    def forward(x, factor=3.0, label="none"):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        Scaled.seen = inputs[1:]
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None, None


def test_001_ctx_style_computes_and_saves_in_forward(mode: Mode):
    a, b = leaf(2.0, 3.0), leaf(5.0, 7.0)
    out = mode.backward(Product.apply, a, b)
    assert out.tolist() == [10.0, 21.0]
    assert (a.grad.tolist(), b.grad.tolist()) == ([5.0, 7.0], [2.0, 3.0])


def test_002_split_style_saves_in_setup_context(mode: Mode):
    x = leaf(2.0, 3.0)
    assert mode.backward(SplitSquare.apply, x).tolist() == [4.0, 9.0]
    assert x.grad.tolist() == [4.0, 6.0]


def test_002_the_style_is_inherited(mode: Mode):
    class Cube(SplitSquare):
        @staticmethod
        def forward(x):
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    x = leaf(2.0)
    assert mode.backward(Cube.apply, x).tolist() == [8.0]
    assert x.grad.tolist() == [12.0]


def test_003_split_style_binds_keywords_and_defaults(mode: Mode):
    x = leaf(1.0, 2.0)
    mode.backward(lambda x: Scaled.apply(x, label="a"), x)
    assert Scaled.seen == (3.0, "a")
    assert x.grad.tolist() == [3.0, 3.0]


def test_003_split_style_owes_a_gradient_for_every_parameter(mode: Mode):
    class TooFew(Scaled):
        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 3, got 1\)"):
        mode.backward(TooFew.apply, leaf(1.0))


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((1, 2, 3), {}, "too many positional arguments"),
        ((), {}, "missing a required argument"),
        ((), {"wrong": 1}, "wrong|missing a required argument"),
    ],
)
def test_004_a_bad_call_is_a_type_error_before_forward_runs(mode: Mode, args: tuple, kwargs: dict, words: str):
    ran = []

    class Watched(Scaled):
        @staticmethod
        def forward(x, factor=3.0):
            ran.append(1)
            return x

    with pytest.raises(TypeError, match=words):
        mode.call(lambda x: Watched.apply(*[x for _ in args], **kwargs), leaf(1.0))
    assert ran == []


def test_004_in_ctx_style_it_is_the_type_error_of_calling_forward(mode: Mode):
    with pytest.raises(TypeError, match="positional argument"):
        mode.call(lambda x: Double.apply(x, x), leaf(1.0))


def test_005_setup_context_gets_what_forward_returned(mode: Mode):
    seen = {}

    def setup_context(ctx, inputs, output):
        seen.update(kind=type(output), tracked=output[0].requires_grad, inputs=type(inputs))
        return "ignored"

    One = custom(forward=lambda x: (x * 2,), setup_context=setup_context, backward=lambda ctx, g: g * 2)
    x = leaf(1.0)
    out = mode.backward(One.apply, x)
    assert seen == {"kind": tuple, "tracked": False, "inputs": tuple}
    assert type(out) is tuple
    assert x.grad.tolist() == [2.0]


def test_006_methods_may_be_classmethods(mode: Mode):
    class Times(tpc.autograd.Function):
        factor = 5.0

        @classmethod
        def forward(cls, ctx, x):
            return x * cls.factor

        @classmethod
        def backward(cls, ctx, g):
            return g * cls.factor

    x = leaf(1.0)
    assert mode.backward(Times.apply, x).tolist() == [5.0]
    assert x.grad.tolist() == [5.0]


def test_006_methods_may_be_bare_functions(mode: Mode):
    class Bare(tpc.autograd.Function):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, g):
            return g * 3

    x = leaf(1.0)
    mode.backward(Bare.apply, x)
    assert x.grad.tolist() == [3.0]


def test_006_a_subclass_may_override_one_method_alone(mode: Mode):
    class Louder(Square):
        @staticmethod
        def backward(ctx, g):
            return Square.backward(ctx, g) * 10

    x = leaf(3.0)
    mode.backward(Louder.apply, x)
    assert x.grad.tolist() == [60.0]


def test_007_recording_is_off_in_forward_and_setup_context(mode: Mode):
    seen = []

    class Watching(SplitSquare):
        @staticmethod
        def forward(x):
            seen.append(tpc.is_grad_enabled())
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(tpc.is_grad_enabled())
            SplitSquare.setup_context(ctx, inputs, output)

    mode.backward(Watching.apply, leaf(1.0))
    assert seen == [False, False]
    assert tpc.is_grad_enabled()


def test_008_inputs_reach_forward_as_they_are(mode: Mode):
    seen = []

    def forward(ctx, x, y):
        seen.append((x is given, x.requires_grad, x.is_leaf, y.requires_grad, y.is_leaf))
        return x + y

    Add = custom(forward=forward, backward=lambda ctx, g: (g, g))
    given = leaf(1.0)
    mode.backward(lambda x: Add.apply(x, x * 2), given)
    assert seen[0] == (True, True, True, True, False)
    assert given.grad.tolist() == [3.0]


def test_008_a_tracked_input_can_become_an_array_in_forward(mode: Mode):
    """Under compile the array's values become part of what the recording is good for."""

    def forward(ctx, x):
        ctx.biggest = float(np.max(x.numpy()))
        return x * ctx.biggest

    Scale = custom(forward=forward, backward=lambda ctx, g: g * ctx.biggest)
    x = leaf(1.0, 4.0)
    assert mode.backward(Scale.apply, x).tolist() == [4.0, 16.0]
    assert x.grad.tolist() == [4.0, 4.0]


def test_009_applications_inside_forward_record_nothing(mode: Mode):
    ran = []

    def inner_backward(ctx, g):
        ran.append("inner")
        return g * 100

    Inner = custom("Inner", forward=lambda ctx, x: x * 2, backward=inner_backward)
    Outer = custom("Outer", forward=lambda ctx, x: Inner.apply(x) + x, backward=lambda ctx, g: g * 3)
    x = leaf(1.0)
    assert mode.backward(Outer.apply, x).tolist() == [3.0]
    assert (x.grad.tolist(), ran) == ([3.0], [])


def test_010_forward_called_directly_is_ordinary_code(mode: Mode):
    Odd = custom(forward=lambda x: x * x, setup_context=lambda ctx, inputs, output: None, backward=lambda ctx, g: g * 1000)
    x = leaf(3.0)
    mode.backward(Odd.forward, x)
    assert x.grad.tolist() == [6.0]


def test_011_without_forward_apply_raises(mode: Mode):
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        mode.call(custom(backward=lambda ctx, g: g).apply, leaf(1.0))


def test_011_without_backward_only_back_propagating_raises(mode: Mode):
    Forward = custom(forward=lambda ctx, x: x * 2)
    out = mode.call(Forward.apply, leaf(1.0))
    assert (out.tolist(), out.requires_grad) == ([2.0], True)
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        mode.backward(Forward.apply, leaf(1.0))


def test_012_vjp_is_another_name_for_backward(mode: Mode):
    Named = custom(forward=lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2)
    x = leaf(1.0)
    mode.backward(Named.apply, x)
    assert x.grad.tolist() == [2.0]


def test_013_backward_and_vjp_together_are_an_error_of_the_backward_pass(mode: Mode):
    Both = custom(forward=lambda ctx, x: x * 2, vjp=lambda ctx, g: g, backward=lambda ctx, g: g)
    assert mode.call(Both.apply, leaf(1.0)).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        mode.backward(Both.apply, leaf(1.0))


class Trouble(Exception):
    pass


def raise_trouble(*args):
    raise Trouble("in the user's method")


@pytest.mark.parametrize("where", ["forward", "setup_context", "backward"])
def test_014_exceptions_keep_their_class_and_grad_mode_is_restored(mode: Mode, where: str):
    Failing = custom(**{
        "forward": lambda x: x * 2,
        "setup_context": lambda ctx, inputs, output: None,
        "backward": lambda ctx, g: g,
        where: raise_trouble,
    })  # fmt: skip
    with pytest.raises(Trouble, match="in the user's method") as caught:
        mode.backward(Failing.apply, leaf(1.0))
    assert "raise_trouble" in [entry.name for entry in caught.traceback]
    assert tpc.is_grad_enabled()


def test_015_grad_mode_set_in_forward_does_not_leak(mode: Mode):
    def forward(ctx, x):
        tpc.set_grad_enabled(True)
        return x * 2

    x = leaf(1.0)
    mode.backward(custom(forward=forward, backward=lambda ctx, g: g * 2).apply, x)
    assert tpc.is_grad_enabled()
    with tpc.no_grad():
        custom(forward=forward).apply(plain(1.0))
        assert not tpc.is_grad_enabled()


def test_016_captured_tensors_are_constants(mode: Mode):
    w = leaf(5.0)
    Captured = custom(forward=lambda ctx, x: x * w, backward=lambda ctx, g: g * w)
    x = leaf(2.0)
    out = mode.backward(Captured.apply, x)
    assert (out.tolist(), x.grad.tolist(), w.grad) == ([10.0], [5.0], None)
    assert not mode.call(Captured.apply, plain(2.0)).requires_grad


def test_017_the_number_of_parameters_must_fit_the_style(mode: Mode):
    with pytest.raises(TypeError):
        mode.call(custom(forward=lambda x: x, backward=lambda ctx, g: g).apply, leaf(1.0))
    with pytest.raises(TypeError):
        Misfit = custom(forward=lambda ctx, x: x, setup_context=lambda ctx, inputs, output: None)
        mode.call(Misfit.apply, leaf(1.0))
