"""Convolution against its definition, in tiles and chunks of every size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tpc.ir.opdef import lookup
from tpc.ir.program import Op, Value
from tpc.ir.signature import result_types
from tpc.ir.types import tensor_type
from tpc.runtime.kernels import nn, taps
from tpc.runtime.kernels.registry import bind


def moves(low, high, dilation, groups=1, stride=1):
    return {"stride": (stride,) * len(low), "low": low, "high": high, "dilation": dilation, "groups": groups}


GEOMETRIES = [
    ((3, 4, 30), (6, 4, 3), moves((1,), (1,), (1,))),
    ((3, 4, 30), (6, 2, 3), moves((0,), (4,), (2,), 2)),
    ((5, 3, 14, 20), (4, 3, 3, 3), moves((1, 1), (1, 1), (1, 1))),
    ((5, 3, 14, 20), (4, 3, 2, 4), moves((0, 3), (1, 0), (1, 1))),
    ((2, 4, 14, 20), (4, 1, 3, 3), moves((2, 2), (2, 2), (2, 2), 4)),
    ((2, 4, 9, 8), (2, 4, 3, 3), moves((3, 4), (4, 3), (1, 1))),
    ((3, 4, 14, 20), (6, 2, 3, 4), moves((1, 2), (1, 0), (1, 2), 2, stride=2)),
    ((3, 4, 14, 21), (4, 4, 3, 3), moves((0, 0), (0, 0), (1, 1), stride=3)),
    ((2, 3, 7, 9), (20, 3, 1, 1), moves((0, 0), (0, 0), (1, 1))),
    ((2, 3, 7, 9), (20, 3, 1, 1), moves((0, 0), (0, 0), (1, 1), stride=2)),
    ((2, 2, 8, 9, 10), (3, 2, 3, 2, 3), moves((1, 0, 1), (1, 1, 1), (1, 1, 1))),
]


def by_definition(x, w, attrs):
    """All products of an element of x with one of w, with their place in y: what each of the three operators adds up."""
    channels, size, kernel = x.shape[1], x.shape[2:], w.shape[2:]
    spans = zip(size, kernel, attrs["low"], attrs["high"], attrs["dilation"], attrs["stride"], strict=True)
    places = tuple((n + a + b - d * (k - 1) - 1) // s + 1 for n, k, a, b, d, s in spans)
    each, made = w.shape[0] // attrs["groups"], channels // attrs["groups"]
    for place, element in itertools.product(np.ndindex(*places), np.ndindex(*kernel)):
        axes = zip(place, element, attrs["stride"], attrs["dilation"], attrs["low"], strict=True)
        at = tuple(p * s + k * d - a for p, k, s, d, a in axes)
        if all(0 <= i < n for i, n in zip(at, size, strict=True)):
            for group in range(attrs["groups"]):
                o, c = slice(group * each, (group + 1) * each), slice(group * made, (group + 1) * made)
                yield (slice(None), o, *place), (slice(None), c, *at), (o, slice(None), *element)


def run(name, *arrays, **attrs):
    values = [Value(None, i, tensor_type("f64" if a.dtype == np.float64 else "i64", a.shape)) for i, a in enumerate(arrays)]
    definition = lookup(name)
    op = Op(definition, values, attrs, result_types(definition, [v.type for v in values], attrs))
    with np.errstate(all="ignore"):
        return bind(op)(*arrays)


@pytest.mark.parametrize(("block", "joined"), [(100, 0), (2000, 0), (1 << 19, 0), (1 << 14, 1000), (1 << 19, 1000)])
@pytest.mark.parametrize(("x", "w", "attrs"), GEOMETRIES)
def test_against_the_definition(x, w, attrs, block, joined, monkeypatch):
    monkeypatch.setattr(nn, "BLOCK", block)
    monkeypatch.setattr(nn, "JOINED", joined)
    for name, value in {"TILE": max(7, block >> 4), "CHUNK": block, "WASTE": 3, "LEAST": 2}.items():
        monkeypatch.setattr(taps, name, value)
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal(x), rng.standard_normal(w)
    y = run("conv", x, w, **attrs)
    g = rng.standard_normal(y.shape)
    wanted, of_x, of_w = np.zeros_like(y), np.zeros_like(x), np.zeros_like(w)
    for at_y, at_x, at_w in by_definition(x, w, attrs):
        wanted[at_y] += x[at_x] @ w[at_w].T
        of_x[at_x] += g[at_y] @ w[at_w]
        of_w[at_w] += g[at_y].T @ x[at_x]
    np.testing.assert_allclose(y, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run("conv_input_grad", g, w, size=x.shape[2:], **attrs), of_x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run("conv_weight_grad", g, x, size=w.shape[2:], **attrs), of_w, rtol=1e-12, atol=1e-12)


def test_an_infinite_element_reaches_only_the_places_that_see_it(monkeypatch):
    monkeypatch.setattr(taps, "LEAST", 1)
    x, w, attrs = np.zeros((1, 1, 20)), np.ones((1, 1, 3)), moves((0,), (0,), (1,))
    x[0, 0, -1] = np.inf
    y = run("conv", x, w, **attrs)
    assert np.isfinite(y[0, 0, :-1]).all() and y[0, 0, -1] == np.inf
    # only the last element of the window meets the last of the array
    assert run("conv_weight_grad", np.ones((1, 1, 18)), x, size=(3,), **attrs).tolist() == [[[0, 0, np.inf]]]
