"""Gradients and tangents against central differences; batches sample by sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tpc


def check(function: Callable[..., tpc.Tensor], *points: object, order: int = 2) -> None:
    """Compares the gradient of a function at a point with differences of its values, then the gradient of that gradient.

    Outputs are weighted with fixed, unequal numbers, so that a gradient in the wrong place shows.
    """
    leaves = [tpc.tensor(np.array(p, dtype=np.float64), requires_grad=True) for p in points]
    _compare(lambda *xs: _weighted(function(*xs)), leaves)
    if order > 1:

        def slope(*xs: tpc.Tensor) -> tpc.Tensor:
            got = tpc.autograd.grad(_weighted(function(*xs)), xs, create_graph=True, materialize_grads=True)
            return tpc.stack([_weighted(g) for g in got]).sum()

        _compare(slope, leaves)


def check_tangents(function: Callable[..., tpc.Tensor], *points: object, rtol: float) -> None:
    """Compares what forward mode gives along a fixed direction with differences of the values."""
    primals = [_double(p) for p in points]
    tangents = [(p * 3.1).sin() for p in primals]
    _, got = tpc.func.jvp(function, tuple(primals), tuple(tangents))
    step = 1e-6
    ends = [function(*[p + s * step * d for p, d in zip(primals, tangents, strict=True)]) for s in (1, -1)]
    np.testing.assert_allclose(got.numpy(), ((ends[0] - ends[1]) / (2 * step)).numpy(), rtol=rtol, atol=1e-7)


def check_batch(function: Callable[..., tpc.Tensor], *points: object, rtol: float, atol: float = 0.0) -> None:
    """Compares `vmap` over three samples with a call for each."""
    batches = [tpc.stack([_double(p), _double(p) * 1.25, _double(p) * 0.5]) for p in points]
    got = tpc.vmap(function)(*batches)
    want = tpc.stack([function(*[b[i] for b in batches]) for i in range(3)])
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=rtol, atol=atol)


def _double(values: object) -> tpc.Tensor:
    return tpc.tensor(np.array(values), dtype=tpc.float64)


def _weighted(y: tpc.Tensor) -> tpc.Tensor:
    weights = 1.0 + 0.37 * tpc.arange(y.numel(), dtype=tpc.float64).reshape(y.shape)
    return (y * weights.sin()).sum()


def _compare(function: Callable[..., tpc.Tensor], leaves: list[tpc.Tensor]) -> None:
    total = function(*leaves)
    if not total.requires_grad:
        total = total + 0 * sum(x.sum() for x in leaves)
    got = tpc.autograd.grad(total, leaves, materialize_grads=True)
    for i, x in enumerate(leaves):
        expected = _differences(function, leaves, i)
        np.testing.assert_allclose(got[i].detach().numpy(), expected, rtol=2e-5, atol=2e-6, err_msg=f"gradient of argument {i} at {x}")


def _differences(function: Callable[..., tpc.Tensor], leaves: list[tpc.Tensor], i: int) -> np.ndarray:
    step = 1e-5
    base = leaves[i].detach().numpy().copy()
    out = np.zeros_like(base)
    for place in np.ndindex(base.shape):
        ends = []
        for sign in (1, -1):
            moved = base.copy()
            moved[place] += sign * step
            args = [*leaves[:i], tpc.tensor(moved, requires_grad=True), *leaves[i + 1 :]]
            ends.append(function(*args).item())
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out
