"""Forward mode through backward formulas that saved the op's own result: its tangent is part of what was saved."""

from __future__ import annotations

import math

import pytest

import tpc

CASES = {
    "exp": (lambda x: x.exp(), lambda v: math.exp(v)),
    "sigmoid": (lambda x: x.sigmoid(), lambda v: (s := 1 / (1 + math.exp(-v))) * (1 - s) * (1 - 2 * s)),
    "tanh": (lambda x: x.tanh(), lambda v: -2 * math.tanh(v) * (1 - math.tanh(v) ** 2)),
    "sqrt": (lambda x: x.sqrt(), lambda v: -0.25 * v**-1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_second_derivative(name):
    function, second = CASES[name]
    x = tpc.tensor([0.5, 1.25], dtype=tpc.float64)
    gradient = tpc.func.grad(lambda x: function(x).sum())
    _, tangent = tpc.func.jvp(gradient, (x,), (tpc.ones(2, dtype=tpc.float64),))
    assert tangent.tolist() == pytest.approx([second(0.5), second(1.25)])
    hessian = tpc.func.jacfwd(gradient)(x)
    assert hessian.tolist() == [pytest.approx([second(0.5), 0]), pytest.approx([0, second(1.25)])]
    compiled = tpc.compile(lambda x: tpc.func.jvp(gradient, (x,), (tpc.ones(2, dtype=tpc.float64),))[1])
    assert compiled(x).tolist() == tangent.tolist()
