"""Divisors, multiples, neighbours, mantissas and exponents."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tpc


def test_divisors_and_multiples():
    a, b = tpc.tensor([4, -6, 0, 12]), tpc.tensor([6, 4, 3, 0])
    assert tpc.gcd(a, b).tolist() == [2, 2, 3, 12]
    assert a.lcm(b).tolist() == [12, 12, 0, 0]
    assert a.clone().gcd_(tpc.tensor(6)).tolist() == [2, 6, 6, 6]
    assert tpc.lcm(tpc.tensor([4], dtype=tpc.int8), tpc.tensor([6], dtype=tpc.int16)).dtype is tpc.int16
    assert tpc.vmap(tpc.gcd, (0, None))(a, tpc.tensor(6)).tolist() == [2, 6, 6, 6]
    for kind in (tpc.float32, tpc.bool):
        with pytest.raises(NotImplementedError, match='"gcd" not implemented'):
            tpc.gcd(tpc.ones(1, dtype=kind), tpc.ones(1, dtype=kind))
    with pytest.raises(TypeError, match=r"argument 'other' .* must be Tensor, not int"):
        tpc.gcd(a, 6)


def test_neighbours():
    x, y = tpc.tensor([1.0, 0.0], requires_grad=True), tpc.tensor([2.0, -1.0], requires_grad=True)
    near = tpc.nextafter(x, y)
    assert near.tolist() == [1 + 2.0**-23, -(2.0**-149)]
    near.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1, 1], [0, 0])
    with pytest.raises(NotImplementedError):
        tpc.nextafter(tpc.tensor([1]), tpc.tensor([2]))


def test_mantissas_and_exponents():
    x = tpc.tensor([8.0, -0.3, 0.0, math.inf], dtype=tpc.float64, requires_grad=True)
    found = tpc.frexp(x)
    assert found.mantissa.tolist() == [0.5, -0.6, 0, math.inf]
    assert found.exponent.tolist() == [4, -1, 0, 0]
    assert found.exponent.dtype is tpc.int32
    found.mantissa.sum().backward()
    assert x.grad.tolist() == [1 / 16, 2, 1, 1]
    _, tangent = tpc.func.jvp(lambda x: tpc.frexp(x).mantissa, (x.detach()[:2],), (tpc.ones(2, dtype=tpc.float64),))
    assert tangent.tolist() == [1 / 16, 2]
    rows = tpc.vmap(lambda row: tpc.frexp(row).mantissa)(x.detach().reshape(2, 2))
    np.testing.assert_array_equal(rows.numpy().ravel(), [0.5, -0.6, 0, math.inf])
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        tpc.frexp(tpc.tensor([1]))


def test_trace_of_a_matrix():
    assert tpc.trace(tpc.arange(6.0).reshape(2, 3)).item() == 4
