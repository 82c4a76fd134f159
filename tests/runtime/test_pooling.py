"""Indices and gradients of max pooling against their definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.runtime.test_convolution import run

GEOMETRIES = [
    ((9,), {"kernel": (3,), "stride": (2,), "low": (1,), "high": (1,), "dilation": (1,)}),
    ((7, 8), {"kernel": (2, 3), "stride": (1, 2), "low": (1, 0), "high": (0, 1), "dilation": (2, 1)}),
    ((20, 21), {"kernel": (17, 18), "stride": (1, 1), "low": (0, 0), "high": (0, 0), "dilation": (1, 1)}),
    ((5, 6, 7), {"kernel": (2, 2, 2), "stride": (2, 2, 2), "low": (0, 1, 0), "high": (1, 0, 0), "dilation": (1, 1, 1)}),
]


def window(place, attrs, size):
    """Positions of the elements of a window that are inside, in order."""
    axes = zip(place, attrs["kernel"], attrs["stride"], attrs["low"], attrs["dilation"], strict=True)
    at = [[p * s - a + k * d for k in range(n)] for p, n, s, a, d in axes]
    inside = [i for i in itertools.product(*at) if all(0 <= j < n for j, n in zip(i, size, strict=True))]
    return [int(np.ravel_multi_index(i, size)) for i in inside]


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize(("size", "attrs"), GEOMETRIES)
def test_the_first_of_equal_elements_and_the_last_nan(size, attrs, nan):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, (4, *size)).astype(np.float64)
    if nan:
        x[rng.random(x.shape) < 0.1] = np.nan
    indices = run("max_pool_indices", x, **attrs)
    g = rng.standard_normal(indices.shape)
    wanted = np.zeros_like(x)
    for array in range(len(x)):
        for place in np.ndindex(*indices.shape[1:]):
            positions = window(place, attrs, size)
            values = x[array].reshape(-1)[positions]
            missing = np.flatnonzero(np.isnan(values))
            chosen = positions[missing[-1] if missing.size else int(np.argmax(values))]
            assert indices[array, *place] == chosen
            wanted[array].reshape(-1)[chosen] += g[array, *place]
    np.testing.assert_allclose(run("max_pool_grad", g, indices, size=size, **attrs), wanted, rtol=1e-12, atol=1e-12)
