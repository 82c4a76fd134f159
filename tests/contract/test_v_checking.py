"""Section V: gradcheck, gradgradcheck and anomaly mode."""

from __future__ import annotations

import warnings

import pytest

import tpc
from tests.contract.modes import Double, Mode, Product, Square, custom
from tpc.autograd import gradcheck, gradgradcheck
from tpc.autograd.gradient_check import GradcheckError


def precise(*values: float):
    return tpc.tensor(list(values), dtype=tpc.float64, requires_grad=True)


def squared(ctx, x):
    ctx.save_for_backward(x)
    return x * x


Wrong = custom("Wrong", forward=squared, backward=lambda ctx, g: g * 3 * ctx.saved_tensors[0])


class Pushed(tpc.autograd.Function):
    """x * x with a tangent of `factor` * x."""

    factor = 2

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * Pushed.factor * ctx.saved_tensors[0]


def test_207_gradcheck_is_true_where_derivatives_hold(mode: Mode):
    x, y = precise(1.0, 2.0), precise(3.0, -4.0)
    assert gradcheck(mode.compiled(Square.apply), (x,)) is True
    assert gradcheck(mode.compiled(Product.apply), (x, y), fast_mode=True) is True
    assert (x.grad, y.grad) == (None, None)
    assert x.tolist() == [1.0, 2.0]


def test_207_it_says_which_derivative_is_wrong(mode: Mode):
    second = custom(forward=lambda ctx, x, y: (x * 2, x + y), backward=lambda ctx, a, b: (a * 2 + b, b * 5))
    wrong = r"(?s)Jacobian mismatch for output 0 with respect to input 0.*numerical:.*2\.0+.*analytical:.*3\."
    with pytest.raises(GradcheckError, match=wrong):
        gradcheck(mode.compiled(Wrong.apply), (precise(1.0, 2.0),))
    with pytest.raises(RuntimeError, match="output 1 with respect to input 1"):
        gradcheck(mode.compiled(second.apply), (precise(1.0), precise(2.0)))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (precise(1.0, 2.0),), fast_mode=True)
    assert gradcheck(Wrong.apply, (precise(1.0),), raise_exception=False) is False


def test_207_what_it_takes():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient, but none of them"):
        gradcheck(Square.apply, (precise(1.0).detach(),), raise_exception=False)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(Square.apply, (tpc.tensor([1.0, 2.0], requires_grad=True),), eps=1e-3, atol=1e-2)
    with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
        gradcheck(Square.apply, (precise(1.0).expand(3),))
    for options in ({"check_backward_ad": False}, {"check_batched_forward_grad": True}):
        with pytest.raises(AssertionError, match="check_forward_ad"):
            gradcheck(Square.apply, (precise(1.0),), **options)


def test_207_what_differs_between_two_runs_is_an_error():
    runs = []

    def backward(ctx, g):
        runs.append(1)
        return g * (2 + 1e-7 * len(runs))

    Drifting = custom("Drifting", forward=lambda ctx, x: x * 2, backward=backward)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Drifting.apply, (precise(1.0, 2.0),))
    assert gradcheck(Drifting.apply, (precise(1.0, 2.0),), nondet_tol=1e-3)


def test_207_errors_of_backward_come_out():
    def backward(ctx, g):
        raise KeyError("mine")

    Failing = custom("Failing", forward=lambda ctx, x: x * 2, backward=backward)
    with pytest.raises(KeyError, match="mine"):
        gradcheck(Failing.apply, (precise(1.0),), raise_exception=False)


def missing_gradients(count: int, backward):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return (x * 2, x * 3)[:count] if count > 1 else x * 2

    return custom("Bare", forward=forward, backward=backward)


def test_208_missing_gradients_reach_backward(mode: Mode):
    """Also where there is one output only."""
    one = missing_gradients(1, lambda ctx, g: g * 2)
    two = missing_gradients(2, lambda ctx, a, b: a * 2 + b * 3)
    for bare in (one, two):
        with pytest.raises(TypeError, match="NoneType"):
            gradcheck(bare.apply, (precise(1.0, 2.0),))
    assert gradcheck(mode.compiled(one.apply), (precise(1.0, 2.0),), check_undefined_grad=False)
    careful = missing_gradients(
        2, lambda ctx, a, b: None if a is None and b is None else (0 if a is None else a * 2) + (0 if b is None else b * 3)
    )
    assert gradcheck(mode.compiled(careful.apply), (precise(1.0, 2.0),))


def test_208_a_gradient_of_nothing_must_be_nothing():
    constant = missing_gradients(1, lambda ctx, g: tpc.ones(2, dtype=tpc.float64) * 2 if g is None else g * 2)
    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(constant.apply, (precise(1.0, 2.0),))
    failing = missing_gradients(1, lambda ctx, g: tpc.ones(3, dtype=tpc.float64) if g is None else g * 2)
    with pytest.raises(GradcheckError, match="handle undefined output grads"):
        gradcheck(failing.apply, (precise(1.0, 2.0),))


def test_208_forward_mode(monkeypatch):
    x = precise(1.0, 2.0)
    assert gradcheck(Pushed.apply, (x,), check_forward_ad=True)
    with pytest.raises(NotImplementedError, match="must implement the jvp"):
        gradcheck(Square.apply, (x,), check_forward_ad=True)
    monkeypatch.setattr(Pushed, "factor", 3)
    assert gradcheck(Pushed.apply, (x,))
    for backward in (True, False):
        with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 0"):
            gradcheck(Pushed.apply, (x,), check_forward_ad=True, check_backward_ad=backward)


def test_208_batches_of_gradients(mode: Mode):
    looking = custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2 if g.sum().item() < 100 else g)
    assert gradcheck(mode.compiled(Square.apply), (precise(1.0, 2.0),), check_batched_grad=True)
    with pytest.raises(GradcheckError, match="While computing batched gradients"):
        gradcheck(looking.apply, (precise(1.0, 2.0),), check_batched_grad=True)
    straight = tpc.exp
    assert gradcheck(straight, (precise(1.0, 2.0),), check_forward_ad=True, check_batched_forward_grad=True)


def test_209_gradgradcheck_finds_lost_intermediates(mode: Mode):
    def forward(ctx, x):
        e = x.exp()
        ctx.save_for_backward(e)
        return e * 2

    Lost = custom("Lost", forward=forward, backward=lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    x = precise(1.0, 2.0)
    assert gradgradcheck(mode.compiled(Square.apply), (x,))
    assert gradcheck(mode.compiled(Lost.apply), (x,))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(mode.compiled(Lost.apply), (x,))
    assert gradgradcheck(Lost.apply, (x,), raise_exception=False) is False


def test_209_and_backwards_that_are_differentiable_once():
    once = tpc.autograd.function.once_differentiable(lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    Once = custom("Once", forward=squared, backward=once)
    with pytest.raises((GradcheckError, RuntimeError)):
        gradgradcheck(Once.apply, (precise(1.0, 2.0),))


Nan = custom("Nan", forward=lambda ctx, x, y: x * 2 + y, backward=lambda ctx, g: (g, g * float("nan")))


def anomaly(**options):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        return tpc.autograd.detect_anomaly(**options)


def test_210_nan_from_backward_is_an_error():
    with (
        anomaly(),
        pytest.warns(UserWarning, match=r"(?s)Error detected in NanBackward.*forward call that caused the error:\n.*test_v_checking"),
    ):
        y = Nan.apply(precise(1.0), precise(2.0))
        with pytest.raises(RuntimeError, match="Function 'NanBackward' returned nan values in its 1th output"):
            y.backward()
    assert not tpc.is_anomaly_enabled()


def test_210_a_compiled_function_too():
    call = tpc.compile(lambda x, y: Nan.apply(x, y) * 1, fullgraph=True)
    call(precise(1.0), precise(2.0)).backward()
    with anomaly(), pytest.warns(UserWarning, match="Error detected in NanBackward"):
        y = call(precise(1.0), precise(2.0))
        with pytest.raises(RuntimeError, match="Function 'NanBackward' returned nan values"):
            y.backward()


def test_210_inside_a_compiled_function_it_runs_deferred():
    def step(x, y):
        with tpc.autograd.set_detect_anomaly(True):
            Nan.apply(x, y).backward()

    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="Function 'NanBackward' returned nan values"):
        warnings.simplefilter("ignore")
        tpc.compile(step)(precise(1.0), precise(2.0))
    assert not tpc.is_anomaly_enabled()


def test_210_without_looking_for_nan():
    x, y = precise(1.0), precise(2.0)
    with anomaly(check_nan=False):
        Nan.apply(x, y).backward()
    assert x.grad.tolist() == [1.0]
    assert y.grad.isnan().all()


def test_210_a_forward_outside_of_the_mode_is_not_known():
    y = Nan.apply(precise(1.0), precise(2.0))
    with (
        anomaly(),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(RuntimeError, match="nan values"),
    ):
        y.backward()


def test_210_the_backward_that_made_the_node_is_named():
    Inner = custom("Inner", forward=lambda ctx, g: g * 1, backward=lambda ctx, g: g * float("nan"))
    Outer = custom("Outer", forward=squared, backward=lambda ctx, g: Inner.apply(g * 2 * ctx.saved_tensors[0]))
    x = precise(3.0)
    with anomaly(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        (first,) = tpc.autograd.grad(Outer.apply(x), x, create_graph=True)
        with pytest.raises(RuntimeError, match="Function 'InnerBackward' returned nan values in its 0th output"):
            first.backward()
    said = [str(w.message).strip() for w in seen]
    assert any(s.startswith("Error detected in InnerBackward") for s in said)
    assert any(s.startswith("Previous calculation was induced by OuterBackward") for s in said)


def test_210_nothing_is_said_where_nothing_is_wrong():
    x = precise(3.0)
    with anomaly(), warnings.catch_warnings():
        warnings.simplefilter("error")
        Double.apply(x).backward()
    assert x.grad.tolist() == [2.0]
