"""Values, gradients and errors at the edges of public functions, against PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tpc
from tpc.nn import functional as fn


def t(*values, dtype=tpc.float64):
    return tpc.tensor(values, dtype=dtype)


@pytest.mark.parametrize("compiled", [False, True], ids=["deferred", "compiled"])
@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (lambda x: tpc.diff(x, 0, prepend=x), (t(1, 4),), [1.0, 4.0]),
        (lambda x: tpc.gradient(x, spacing=None)[0], (t(1, 4, 9),), [3.0, 4.0, 5.0]),
        (lambda x: fn.pad(x, (-1, 2), "circular"), (t(1, 2, 3, 4).view(1, 1, 4),), [[[2.0, 3.0, 4.0, 2.0, 3.0]]]),
        (fn.prelu, (tpc.tensor(-2.0), tpc.tensor([0.5])), -1.0),
        (lambda x, i: tpc.take_along_dim(x, i, 0), (t(1, 2, 3), tpc.tensor([-1, 0])), [3.0, 1.0]),
        (lambda a, b: tpc.tensordot(a, b, dims=([0], [0])), (t(1, 2).view(1, 2), t(3, 4)), [7.0, 14.0]),
        (lambda m, x: tpc.where(m, x, 0), (tpc.tensor([1, 0], dtype=tpc.uint8), t(5, 6)), [5.0, 0.0]),
        (lambda x: tpc.linalg.vander(x, N=3), (tpc.tensor(2.0),), [[1.0, 2.0, 4.0]]),
        (tpc.vander, (tpc.tensor([2, 20], dtype=tpc.uint8),), [[2, 1], [20, 1]]),
        (lambda a, x: tpc.addmv(x, a, x, beta=0.5, alpha=1.7), (tpc.ones(2, 2, dtype=tpc.int64), tpc.tensor([1, 1])), [2, 2]),
        (
            lambda x, i: x.scatter_reduce(0, i, x, "mean", include_self=False),
            (tpc.tensor([3, 6], dtype=tpc.uint8), tpc.tensor([0, 0])),
            [4, 6],
        ),
        (
            lambda x, i: x.scatter_reduce(0, i, x, "amin", include_self=False),
            (tpc.tensor([True, False]), tpc.tensor([0, 0])),
            [False, False],
        ),
        (
            lambda x: fn.interpolate(x, size=2, mode="bilinear"),
            (tpc.tensor([[[[10, 20, 31], [40, 50, 61], [7, 8, 9]]]], dtype=tpc.uint8),),
            [[[[21, 36], [16, 21]]]],
        ),
        (lambda x: fn.rms_norm(x, (2,)), (tpc.tensor([300.0, 400.0], dtype=tpc.float16),), [0.8486328125, 1.1318359375]),
        (lambda x: fn.layer_norm(x, (2,)), (tpc.tensor([-900.0, 900.0], dtype=tpc.float16),), [-1.0, 1.0]),
        (
            lambda a, b: fn.cosine_similarity(a, b, dim=0),
            (t(1, 2, 3).view(1, 3), t(1, 0, 1, 1, 1, 0).view(2, 3)),
            [1.0, 0.7071067811865475, 0.7071067811865475],
        ),
    ],
)
def test_values(function, args, expected, compiled):
    run = tpc.compile(function, fullgraph=True) if compiled else function
    for _ in range(2):
        found = run(*args)
        assert np.shape(expected) == tuple(found.shape)
        assert np.allclose(found.numpy(), expected)


def test_dtypes():
    assert tpc.bincount(tpc.tensor([1, 1]), tpc.tensor([2, 3])).dtype is tpc.float64
    assert tpc.unique(tpc.tensor(3), return_inverse=True)[1].shape == ()
    a = tpc.ones(2, 3, dtype=tpc.complex128)
    assert tpc.linalg.lstsq(a, a[:, :1]).residuals.dtype is tpc.float64


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tpc.linalg.vector_norm(x, 0),
        lambda x: tpc.norm(x, 0),
        lambda x: tpc.cdist(x, x + 1, 0.0),
        tpc.angle,
        lambda x: tpc.div(x, x, rounding_mode="trunc"),
    ],
)
def test_functions_without_slope_have_gradient_zero(function):
    x = t(0, -1, 2, 3).view(2, 2).requires_grad_()
    for run in (function, tpc.compile(function, fullgraph=True)):
        assert tpc.autograd.grad(run(x).sum(), x)[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert tpc.func.jvp(function, (x.detach(),), (tpc.ones_like(x),))[1].abs().sum().item() == 0
    assert tpc.vmap(tpc.func.grad(lambda row: function(row.view(2, 1)).sum()))(x.detach()).abs().sum().item() == 0


def test_a_remainder_by_zero_has_second_derivative_zero():
    a, b = t(1.0).requires_grad_(), t(0.0).requires_grad_()
    (first,) = tpc.autograd.grad(tpc.fmod(a, b).sum(), b, create_graph=True)
    assert math.isinf(first.item())
    assert [g.item() for g in tpc.autograd.grad(first.sum(), (a, b), allow_unused=True)] == [0.0, 0.0]


ROW = t(1, 2)
PICTURE = tpc.zeros(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: tpc.maximum(ROW, 2), TypeError, r"maximum\(\): argument 'other' \(position 2\) must be Tensor, not int"),
        (lambda: tpc.atan2(2.0, ROW), TypeError, r"atan2\(\): argument 'input' \(position 1\) must be Tensor, not float"),
        (lambda: tpc.logical_or(ROW, True), TypeError, "must be Tensor, not bool"),
        (lambda: tpc.logaddexp(ROW, 1.0), TypeError, "must be Tensor, not float"),
        (lambda: tpc.fmin(ROW, 1), TypeError, "must be Tensor, not int"),
        (lambda: tpc.isclose(ROW, 1.0), TypeError, "must be Tensor, not float"),
        (lambda: tpc.isclose(ROW, ROW, rtol=-0.4), RuntimeError, "rtol must be greater than or equal to zero, but got -0.4"),
        (lambda: tpc.complex(ROW, 1.0), TypeError, r"complex\(\): argument 'imag' \(position 2\) must be Tensor"),
        (lambda: tpc.polar(1.0, ROW), TypeError, r"polar\(\): argument 'abs' \(position 1\) must be Tensor"),
        (lambda: tpc.remainder(2, 3), TypeError, "invalid combination of arguments"),
        (lambda: tpc.linspace(0, 3, 1.0), TypeError, "must be int, not float"),
        (lambda: tpc.gradient(PICTURE, dim=(2, 2)), RuntimeError, "dim 2 appears multiple times in the list of dims"),
        (lambda: tpc.roll(tpc.tensor(1.0), 0, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda: tpc.renorm(ROW, 2, 0, 1.0), RuntimeError, "renorm: input needs at least 2 dimensions, got 1 dimensions"),
        (lambda: tpc.hstack([]), RuntimeError, "hstack expects a non-empty TensorList"),
        (lambda: fn.hardtanh(ROW, 0.5, -0.5), ValueError, "min_val cannot be greater than max_val"),
        (lambda: fn.softshrink(ROW, -0.5), RuntimeError, "lambda must be"),
        (lambda: fn.prelu(PICTURE, tpc.ones(2, 4)), RuntimeError, "Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2"),
        (lambda: fn.adaptive_avg_pool2d(PICTURE, (-1, 0)), RuntimeError, "elements of output_size must be greater than or equal to 0"),
        (
            lambda: fn.max_unpool2d(PICTURE, tpc.zeros(1, 1, 4, 1, dtype=tpc.int64), 3, 2),
            RuntimeError,
            "Expected shape of indices to be same as that of the input tensor",
        ),
    ],
)
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()
