"""Elementwise functions: values at ordinary and special points, dtypes, gradients at kinks and ties, PyTorch's errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tpc
from tests.api.differences import check

inf, nan = math.inf, math.nan


def t(*numbers: float) -> tpc.Tensor:
    """A vector of float64."""
    return tpc.tensor(numbers, dtype=tpc.float64)


def gradients(function: Callable[..., tpc.Tensor], *points: list[float]) -> list[list[float]]:
    """Of the sum of the outputs, per argument."""
    leaves = [t(*p).requires_grad_() for p in points]
    function(*leaves).sum().backward()
    return [x.grad.tolist() for x in leaves]


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("exp", [0, 1, -inf], [1, math.e, 0]),
        ("log", [1, math.e, 0], [0, 1, -inf]),
        ("log2", [8, 1], [3, 0]),
        ("log10", [1000], [3]),
        ("log1p", [0, 1e-20], [0, 1e-20]),
        ("expm1", [0, 1e-20], [0, 1e-20]),
        ("exp2", [3, -1], [8, 0.5]),
        ("sqrt", [4, 0], [2, 0]),
        ("rsqrt", [4, 0], [0.5, inf]),
        ("reciprocal", [4, 0], [0.25, inf]),
        ("square", [-3], [9]),
        ("abs", [-2, 0, 3], [2, 0, 3]),
        ("sign", [-2, 0, 3, nan], [-1, 0, 1, 0]),
        ("floor", [-1.5, 1.5], [-2, 1]),
        ("ceil", [-1.5, 1.5], [-1, 2]),
        ("trunc", [-1.5, 1.5], [-1, 1]),
        ("round", [0.5, 1.5, 2.5, -0.5], [0, 2, 2, 0]),
        ("frac", [-1.25, 1.25], [-0.25, 0.25]),
        ("relu", [-1, 0, 2], [0, 0, 2]),
        ("sigmoid", [0, inf, -inf], [0.5, 1, 0]),
        ("tanh", [0, inf], [0, 1]),
        ("erf", [0, inf], [0, 1]),
        ("erfc", [0, inf], [1, 0]),
        ("sinh", [0], [0]),
        ("cosh", [0], [1]),
        ("asinh", [0, 1, -1, 1e200], [0, math.asinh(1), -math.asinh(1), math.asinh(1e200)]),
        ("acosh", [1, 2], [0, math.acosh(2)]),
        ("atanh", [0, 0.5], [0, math.atanh(0.5)]),
        ("sinc", [0, 0.5, 1], [1, 2 / math.pi, 0]),
        ("deg2rad", [180], [math.pi]),
        ("rad2deg", [math.pi], [180]),
        ("logit", [0.5], [0]),
    ],
)
def test_value(name: str, x: list[float], y: list[float]):
    assert getattr(tpc, name)(t(*x)).tolist() == pytest.approx(y, abs=1e-15)
    assert getattr(t(*x), name)().tolist() == pytest.approx(y, abs=1e-15)


def test_nan_goes_through():
    for name in ("exp", "log", "sqrt", "abs", "relu", "floor", "sigmoid", "square"):
        assert tpc.isnan(getattr(tpc, name)(t(nan))).tolist() == [True]
    assert tpc.isnan(tpc.maximum(t(nan, 1), t(1, nan))).tolist() == [True, True]
    assert tpc.isnan(t(nan).clamp(0, 1)).tolist() == [True]


def test_remainders_have_the_sign_of_the_divisor_or_of_the_dividend():
    assert (tpc.tensor([7, -7]) % tpc.tensor([3, 3])).tolist() == [1, 2]
    assert tpc.fmod(tpc.tensor([7, -7]), 3).tolist() == [1, -1]
    assert (t(5.5, -5.5) % 2).tolist() == [1.5, 0.5]


def test_divisions_round_as_asked():
    a, b = tpc.tensor([7, -7, 7, -7]), tpc.tensor([2, 2, -2, -2])
    assert (a // b).tolist() == [3, -4, -4, 3]
    assert tpc.div(a, b, rounding_mode="floor").tolist() == [3, -4, -4, 3]
    assert tpc.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert (a / b).tolist() == [3.5, -3.5, -3.5, 3.5]
    with pytest.raises(RuntimeError, match="rounding_mode"):
        tpc.div(a, b, rounding_mode="up")


def test_round_takes_decimals():
    assert t(1.2345, -2.678).round(decimals=2).tolist() == pytest.approx([1.23, -2.68])
    assert t(1234.0).round(decimals=-2).tolist() == [1200]


def test_clamp_takes_numbers_and_tensors():
    x = t(-1, 0.5, 3)
    assert x.clamp(0, 1).tolist() == [0, 0.5, 1]
    assert x.clamp(min=0).tolist() == [0, 0.5, 3]
    assert x.clamp(max=t(0, 0, 0)).tolist() == [-1, 0, 0]
    assert x.clamp(2, 1).tolist() == [1, 1, 1]  # where the bounds cross, the upper one wins
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max'"):
        x.clamp()


def test_where_chooses():
    c = tpc.tensor([True, False])
    assert tpc.where(c, t(1, 2), t(3, 4)).tolist() == [1, 4]
    assert tpc.where(c, 1, 2).dtype is tpc.int64
    assert tpc.where(c, t(1, 2), 0).tolist() == [1, 0]
    assert t(1, 2).where(c, t(3, 4)).tolist() == [1, 4]
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        tpc.where(t(1, 0), t(1, 2), t(3, 4))


def test_sums_and_products_of_several_operands():
    a, b, c = t(1, 2), t(3, 4), t(5, 6)
    assert tpc.add(a, b, alpha=2).tolist() == [7, 10]
    assert tpc.sub(a, b, alpha=2).tolist() == [-5, -6]
    assert tpc.rsub(a, 10).tolist() == [9, 8]
    assert tpc.addcmul(a, b, c, value=2).tolist() == [31, 50]
    assert tpc.addcdiv(a, c, b, value=3).tolist() == [6, 6.5]
    assert tpc.lerp(a, b, 0.25).tolist() == [1.5, 2.5]
    assert tpc.lerp(a, b, t(0, 1)).tolist() == [1, 4]


def test_infinities_do_not_become_nan():
    assert tpc.logaddexp(t(inf, -inf, 0), t(inf, -inf, -inf)).tolist() == [inf, -inf, 0]
    assert tpc.hypot(t(3, 1e200, inf), t(4, 1e200, nan)).tolist() == pytest.approx([5, math.sqrt(2) * 1e200, inf])
    assert tpc.xlogy(t(0, 0), t(0, inf)).tolist() == [0, 0]
    assert tpc.nan_to_num(t(nan, inf, -inf), 1, 2, 3).tolist() == [1, 2, 3]


def test_signs_of_zero():
    assert tpc.signbit(t(-0.0, 0.0, -1)).tolist() == [True, False, True]
    assert tpc.copysign(t(1, 2), t(-0.0, 5)).tolist() == [-1, 2]


def test_comparisons_and_logic_are_bool():
    a, b = t(1, 2, nan), t(1, 1, nan)
    assert (a == b).tolist() == [True, False, False]
    assert (a != b).tolist() == [False, True, True]
    assert (a >= b).tolist() == [True, True, False]
    assert tpc.logical_and(t(1, 0), t(2, 2)).tolist() == [True, False]
    assert tpc.logical_not(t(0, 5)).tolist() == [True, False]
    assert (tpc.isinf(t(inf, -inf, 1)).tolist(), tpc.isfinite(t(nan, 1)).tolist()) == ([True, True, False], [False, True])


def test_bits():
    a = tpc.tensor([6, 5])
    assert ((a & 3).tolist(), (a | 1).tolist(), (a ^ a).tolist(), (~a).tolist()) == ([2, 1], [7, 5], [0, 0], [-7, -6])
    assert ((a << 1).tolist(), (a >> 1).tolist()) == ([12, 10], [3, 2])
    assert (~tpc.tensor([True, False])).tolist() == [False, True]
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type"):
        ~t(1.0)


def test_complex_numbers():
    z = tpc.tensor([3 + 4j])
    assert (z.abs().tolist(), z.real.tolist(), z.imag.tolist(), z.conj().tolist()) == ([5], [3], [4], [3 - 4j])
    assert tpc.angle(tpc.tensor([1j])).tolist() == pytest.approx([math.pi / 2])
    assert tpc.sgn(tpc.tensor([3 + 4j, 0j])).tolist() == pytest.approx([0.6 + 0.8j, 0])
    assert tpc.polar(t(2), t(math.pi / 2)).tolist() == pytest.approx([2j])
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        t(1).imag


# --- dtypes -------------------------------------------------------------------------------------


def test_a_python_scalar_changes_the_kind_of_number_at_most():
    assert (tpc.tensor([1]) + 1.5).dtype is tpc.float32
    assert (tpc.tensor([1], dtype=tpc.int8) * 2).dtype is tpc.int8
    assert (tpc.tensor([1.0], dtype=tpc.float16) * 2.5).dtype is tpc.float16
    assert (tpc.tensor([True]) + 1).dtype is tpc.int64
    assert (tpc.tensor([1.0]) * 1j).dtype is tpc.complex64


def test_a_tensor_without_dimensions_weighs_less_than_one_with():
    assert (tpc.tensor([1.0]) * tpc.tensor(2.0, dtype=tpc.float64)).dtype is tpc.float32
    assert (tpc.tensor([1]) * tpc.tensor(2.0, dtype=tpc.float64)).dtype is tpc.float64
    assert (tpc.tensor([1.0]) * tpc.tensor([2.0], dtype=tpc.float64)).dtype is tpc.float64


def test_integers_become_floating_where_they_must():
    assert tpc.exp(tpc.tensor([0])).dtype is tpc.float32
    assert (tpc.tensor([1]) / tpc.tensor([2])).dtype is tpc.float32
    assert tpc.floor(tpc.tensor([1])).dtype is tpc.int64
    assert tpc.float_power(tpc.tensor([2]), 3).dtype is tpc.float64


# --- gradients ----------------------------------------------------------------------------------

INSIDE = [[0.2, 0.7], [-0.4, 0.6]]
POSITIVE = [[0.3, 1.7], [2.4, 0.6]]
SMOOTH = [
    "exp", "expm1", "sin", "cos", "tan", "tanh", "asin", "acos", "atan", "sinh", "cosh", "sigmoid", "erf", "square", "neg", "atanh",
    "asinh", "sinc", "exp2",
]  # fmt: skip
OF_POSITIVE = ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "abs", "relu"]
BINARY = ["add", "sub", "mul", "div", "pow", "atan2", "maximum", "minimum", "hypot", "logaddexp", "xlogy", "remainder", "fmod"]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_inside_the_unit_interval(name: str):
    check(getattr(tpc, name), INSIDE)


@pytest.mark.parametrize("name", OF_POSITIVE)
def test_gradient_of_positive_numbers(name: str):
    check(getattr(tpc, name), POSITIVE)


@pytest.mark.parametrize("name", BINARY)
def test_gradient_of_two_broadcast_operands(name: str):
    check(getattr(tpc, name), POSITIVE, [[1.3], [0.9]])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -1, -2.5])
def test_gradient_of_a_power(exponent: float):
    check(lambda x: x**exponent, POSITIVE)
    check(lambda x: 1.7 ** (x * exponent), POSITIVE)


def test_gradient_of_selections():
    check(lambda x, y: tpc.where(x > 0.5, x * y, y), INSIDE, POSITIVE)
    check(lambda x, lo, hi: tpc.clamp(x, lo, hi), INSIDE, [0.0, 0.65], [0.1, 0.8])
    check(lambda a, b, w: tpc.lerp(a, b, w), INSIDE, POSITIVE, INSIDE)
    check(lambda a, b, c: tpc.addcdiv(a, b, c, value=2), INSIDE, POSITIVE, POSITIVE)


@pytest.mark.parametrize(
    ("function", "points", "expected"),
    [
        (tpc.abs, [[0, -1, 2]], [[0, -1, 1]]),
        (tpc.relu, [[0, -1, 2]], [[0, 0, 1]]),
        (tpc.sqrt, [[0, 4]], [[inf, 0.25]]),
        (tpc.sign, [[0, 3]], [[0, 0]]),
        (tpc.floor, [[1.5]], [[0]]),
        (lambda x: x.clamp(1, 3), [[0, 1, 2, 3, 4]], [[0, 1, 1, 1, 0]]),
        (lambda x: x**0, [[0, 2]], [[0, 0]]),
        (lambda x: x**2, [[0, 2]], [[0, 4]]),
        (tpc.maximum, [[1, 1, 2], [1, 3, 0]], [[0.5, 0, 1], [0.5, 1, 0]]),
        (tpc.minimum, [[1, 1, 2], [1, 3, 0]], [[0.5, 1, 0], [0.5, 0, 1]]),
        (tpc.pow, [[0, 0, 2], [0, 2, 0]], [[0, 0, 0], [0, 0, math.log(2)]]),
        (tpc.atan2, [[0], [0]], [[0], [0]]),
        (lambda x: 0**x, [[0, 2]], [[0, 0]]),
        (lambda x: x // 2, [[5]], [[0]]),
        (tpc.remainder, [[5, -5], [3, 3]], [[1, 1], [-1, 2]]),
        (tpc.fmod, [[5, -5], [3, 3]], [[1, 1], [-1, 1]]),
        (tpc.xlogy, [[0, 2], [-3, 1]], [[0, 0], [0, 2]]),
        (tpc.sinc, [[0]], [[0]]),
    ],
)
def test_gradient_at_kinks_and_ties(function: Callable[..., tpc.Tensor], points: list[list[float]], expected: list[list[float]]):
    assert gradients(function, *points)[: len(expected)] == [pytest.approx(e) for e in expected]


def test_a_branch_that_was_not_taken_does_not_spoil_the_gradient():
    x = t(0.0, 4.0).requires_grad_()
    tpc.where(x > 0, x.sqrt(), 0).sum().backward()
    assert math.isnan(x.grad[0].item())  # 0 * inf, as in PyTorch ...
    x.grad = None
    tpc.where(x > 0, tpc.where(x > 0, x, 1).sqrt(), 0).sum().backward()
    assert x.grad.tolist() == [0, 0.25]  # ... and the way around it


def test_gradients_keep_the_dtype_and_shape_of_their_tensors():
    a = tpc.ones(2, 3, requires_grad=True)
    b = tpc.ones(3, dtype=tpc.float64, requires_grad=True)
    c = tpc.tensor(2.0, requires_grad=True)
    (a * b * c).sum().backward()
    assert [(x.grad.dtype, tuple(x.grad.shape)) for x in (a, b, c)] == [(tpc.float32, (2, 3)), (tpc.float64, (3,)), (tpc.float32, ())]


def test_complex_gradients_follow_the_conjugate_convention():
    z = tpc.tensor([1 + 2j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2 + 4j]
    x = tpc.tensor([3.0], requires_grad=True)
    (x * (2 + 5j)).real.sum().backward()
    assert x.grad.tolist() == [2]


def test_results_that_are_no_numbers_carry_no_gradient():
    x = t(1.0).requires_grad_()
    assert not any(y.requires_grad for y in (x == 1, x.isnan(), x.logical_not(), x.int()))


# --- errors -------------------------------------------------------------------------------------


def test_shapes_that_do_not_broadcast():
    with pytest.raises(
        RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1"
    ):
        tpc.ones(2, 3) + tpc.ones(2, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tpc.exp(2), TypeError, "must be Tensor, not int"),
        (lambda: tpc.add(t(1), "a"), TypeError, "str"),
        (lambda: t(1) + "a", TypeError, "unsupported operand"),
        (lambda: -tpc.tensor([True]), RuntimeError, "Negation"),
        (lambda: tpc.tensor([True]) - tpc.tensor([True]), RuntimeError, "Subtraction"),
        (lambda: tpc.tensor([2]) ** -1, RuntimeError, "Integers to negative integer powers"),
        (lambda: tpc.tensor([1]) // tpc.tensor([0]), RuntimeError, "ZeroDivisionError"),
        (lambda: tpc.add(tpc.tensor([1]), tpc.tensor([1]), alpha=0.5), RuntimeError, "alpha must not be a floating point"),
        (lambda: tpc.relu(tpc.tensor([True])), RuntimeError, "relu"),
    ],
)
def test_refusals(call: Callable[[], object], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        print(call())


def test_out_receives_the_result_and_refuses_gradients():
    x, y = t(1, 2), t(0, 0)
    assert tpc.exp(x, out=y) is y
    assert y.tolist() == pytest.approx([math.e, math.e**2])
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        tpc.exp(x.requires_grad_(), out=y)
