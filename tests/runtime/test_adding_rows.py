"""Rows that are added to rows: in order, however often each is met."""

from __future__ import annotations

import numpy as np
import pytest

from tpc.runtime.kernels import indexing
from tpc.runtime.kernels.indexing import Rows


@pytest.mark.parametrize("width", [1, 5, 40, 300])
@pytest.mark.parametrize(("rows", "count"), [(50, 20), (50, 300), (3, 300), (1, 40), (2000, 1)])
@pytest.mark.parametrize("before", [1, 3])
def test_same_bits_as_one_after_the_other(width, rows, count, before, monkeypatch):
    monkeypatch.setattr(indexing, "BLOCK", 256)
    rng = np.random.default_rng(1)
    result = rng.standard_normal((before, rows, width), np.float32)
    index, source = rng.integers(0, rows, count), rng.standard_normal((before, count, width), np.float32)
    wanted = result.copy()
    for array in range(before):
        for place, row in enumerate(index):
            wanted[array, row] += source[array, place]
    Rows(result.shape, 1, 1).add(result, index, source)
    assert result.tobytes() == wanted.tobytes()
