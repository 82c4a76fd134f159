"""Samples of reading and writing by index."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import boolean, c64, f16, f32, f64, i32, i64, ints, sample, u8

TABLE = np.array([[0, 2], [1, 0], [2, 2]])

sample("index", f32(3, 4), ints(2, -1, 0), axes=(0,))
sample("index", f32(3, 4), TABLE, axes=(1,))
sample("index", f32(3, 4), ints(2, -1, 0), ints(3, 0, -4), axes=(0, 1))
sample("index", f32(3, 2, 4), TABLE, ints(3, 0), axes=(0, 2))
sample("index", f32(2, 3, 4), ints(1), TABLE, axes=(1, 2))
sample("index", i64(3, 4), ints(1, dtype=np.int32), axes=(0,))
sample("index", f32(3), np.array(2), axes=(0,))
sample("index", f32(0, 3), np.zeros((0,), np.int64), axes=(0,))

for accumulate in (False, True):
    sample("index_put", f32(3, 4), f32(2, 4), ints(2, -3), axes=(0,), accumulate=accumulate)
    sample("index_put", f32(3, 4), f32(), TABLE, axes=(1,), accumulate=accumulate)
    sample("index_put", f32(3, 2, 4), f32(2), TABLE, ints(3, 0), axes=(0, 2), accumulate=accumulate)
    sample("index_put", i64(3), i64(1), ints(0, 2), axes=(0,), accumulate=accumulate)
sample("index_put", f32(3), f32(4), ints(1, 1, 0, 1), axes=(0,), accumulate=True)
sample("index_put", f32(3, 4, 300), f32(3, 300), ints(1, -2, 1), ints(0, 2, 0), axes=(0, 1), accumulate=True)
sample("index_put", f32(2, 3, 4), f32(2, 3), ints(1, -2, 1), ints(0, 2, 0), axes=(1, 2), accumulate=True)
sample("index_put", boolean(3), boolean(4), ints(1, 1, 0, 1), axes=(0,), accumulate=True)

sample("gather", f32(3, 4), TABLE, dim=1)
sample("gather", f32(3, 4), TABLE, dim=0)
sample("gather", i64(4), np.zeros((0,), np.int64), dim=0)
sample("gather", f32(), np.array(0), dim=0)

sample("scatter", f32(3, 4), np.array([[0, 2], [1, 0], [3, 2]]), f32(3, 2), dim=1)
sample("scatter", f32(3, 4), np.array([[0, 1], [1, 2]]), f32(3, 2), dim=0)
sample("scatter", f32(), np.array(0), f32(), dim=0)
for reduce in ("sum", "prod", "amax", "amin", "mean"):
    for include_self in (True, False):
        sample("scatter_reduce", f32(3, 4), TABLE, f32(3, 4), dim=1, reduce=reduce, include_self=include_self)
        sample("scatter_reduce", f64(3, 4), TABLE, f64(3, 2), dim=0, reduce=reduce, include_self=include_self)
        sample("scatter_reduce", i64(3), ints(1, 1, 1, 2), i64(4), dim=0, reduce=reduce, include_self=include_self)
        sample("scatter_reduce", f16(3), ints(1, 1, 1, 2), f16(4), dim=0, reduce=reduce, include_self=include_self)
    sample("scatter_reduce", f32(), np.array(0), f32(), dim=0, reduce=reduce, include_self=True)
    base, source = np.float32([0, 1, 2]), np.float32([np.nan, 1, -np.inf, 2])
    sample("scatter_reduce", base, ints(1, 1, 0, 2), source, dim=0, reduce=reduce, include_self=True)
sample("scatter_reduce", c64(3), ints(1, 1), c64(2), dim=0, reduce="sum", include_self=True)

sample("index_select", f32(3, 4), ints(2, 0, 2), dim=0)
sample("index_select", u8(3, 4), ints(1, dtype=np.int32), dim=1)
sample("index_select", f32(3, 0), ints(1), dim=0)
sample("index_add", f32(3, 4), ints(2, 0, 2), f32(3, 4), dim=0)
sample("index_add", f32(3, 4), ints(2, 0, 2), f32(3, 3), dim=1)
sample("index_add", i32(3), ints(1, 1), i32(2), dim=0)
sample("index_add", f64(50, 8), i64(300, low=0, high=50), f64(300, 8), dim=0)
sample("index_add", f32(50, 8), i64(300, low=0, high=50), f32(300, 8), dim=0)
sample("index_add", f32(5, 300), ints(2, 0, 2, 4), f32(4, 300), dim=0)
sample("index_add", f32(2, 5, 300), ints(2, 0, 2, 4), f32(2, 4, 300), dim=1)

sample("masked_scatter", f32(3, 4), boolean(3, 4), f32(12))
sample("masked_scatter", f32(), boolean(), f32(2, 2))
sample("masked_scatter", f32(2, 2), np.zeros((2, 2), bool), f32(0))
sample("nonzero", np.array([[True, False], [True, True]]), count=3)
sample("nonzero", np.array([0.0, -0.0, np.nan, 2.0]), count=2)
sample("nonzero", np.array(True), count=1)
sample("nonzero", np.zeros((2, 0), bool), count=0)
