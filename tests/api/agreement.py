"""Programs run deferred and compiled, and everything in sight compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tpc


def both(make: Callable[[Any], list[Any]]) -> None:
    """`make(compile)` returns tensors, which must be the same whether `compile` compiles or not. On NumPy, to the last bit."""
    expected = make(lambda f: f)
    got = make(functools.partial(tpc.compile, backend="numpy"))
    assert len(expected) == len(got)
    for a, b in zip(expected, got, strict=True):
        if a is None or b is None:
            assert a is b
            continue
        assert (a.requires_grad, a.is_leaf, a.shape) == (b.requires_grad, b.is_leaf, b.shape)
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def parameter(*values: float) -> tpc.Tensor:
    return tpc.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)
