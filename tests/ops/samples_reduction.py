"""Samples of the reductions, statistics, softmax and sorting."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import boolean, c64, c128, edge, f16, f32, f64, i8, i32, i64, ints, sample, u8

NAN, INF = np.nan, np.inf
ROWS = np.array([[0, 2, 3], [NAN, 1, 2], [INF, 1, -INF], [2, 2, 2], [-INF, -INF, -INF], [INF, 1, INF], [1, NAN, NAN]], np.float32)
"""Rows with ties, NaN and infinities."""

for name in ("sum", "prod", "amax", "amin", "any", "all"):
    sample(name, f32(3, 4), dims=(0, 1), keepdim=False)
    sample(name, f32(2, 3, 4), dims=(1,), keepdim=False)
    sample(name, f64(2, 3, 4), dims=(0, 2), keepdim=True)
    sample(name, f16(3, 9), dims=(1,), keepdim=False)
    sample(name, f32(), dims=(), keepdim=False)
    sample(name, f32(3, 0), dims=(0,), keepdim=True)
    sample(name, i64(3, 4, low=0, high=3), dims=(0,), keepdim=False)
    sample(name, u8(3, 4), dims=(1,), keepdim=False)
    sample(name, i8(3, 4), dims=(0, 1), keepdim=False)
    sample(name, boolean(3, 4), dims=(1,), keepdim=False)
    sample(name, ROWS, dims=(1,), keepdim=False)
for name in ("sum", "prod", "mean", "any", "all"):
    sample(name, c64(3, 2), dims=(0,), keepdim=False)
    sample(name, f32(3, 0), dims=(1,), keepdim=False)
for name in ("sum", "mean"):
    sample(name, f32(1000, 3), dims=(0,), keepdim=False)
    sample(name, f16(2, 257, 3), dims=(1,), keepdim=True)
sample("var", f32(1000, 3), dims=(0,), correction=1, keepdim=False)
for name in ("softmax", "log_softmax"):
    sample(name, f32(3, 250, 100), dim=2)
    sample(name, f16(3, 250, 100), dim=2)
    sample(name, f64(3, 250, 10), dim=1)
sample("sum", f32(1000), dims=(0,), keepdim=False)

for name in ("mean", "logsumexp"):
    sample(name, f32(3, 4), dims=(0, 1), keepdim=False)
    sample(name, f64(2, 3, 4), dims=(0, 2), keepdim=True)
    sample(name, f16(3, 9), dims=(1,), keepdim=False)
    sample(name, f32(), dims=(), keepdim=False)
    sample(name, ROWS, dims=(1,), keepdim=True)
    sample(name, ROWS, dims=(0, 1), keepdim=False)
    sample(name, f32(0, 3), dims=(0,), keepdim=False)
sample("mean", c128(4), dims=(0,), keepdim=False)
sample("logsumexp", edge(np.float64)[:-3], dims=(0,), keepdim=False)

for name in ("var", "std"):
    for correction in (0, 1, 1.5):
        sample(name, f32(3, 4), dims=(1,), correction=correction, keepdim=False)
    sample(name, f64(2, 3, 4), dims=(0, 2), correction=1, keepdim=True)
    sample(name, f16(3, 9), dims=(1,), correction=1, keepdim=False)
    sample(name, c64(3, 4), dims=(1,), correction=1, keepdim=False)
    sample(name, f32(1), dims=(0,), correction=1, keepdim=False)
    sample(name, f32(2), dims=(0,), correction=5, keepdim=False)
    sample(name, f32(0), dims=(0,), correction=0, keepdim=False)
    sample(name, f32(), dims=(), correction=0, keepdim=False)
    sample(name, ROWS, dims=(1,), correction=1, keepdim=False)

for name in ("argmax", "argmin"):
    for operand in (f32(3, 4), i64(3, 4), u8(3, 4), f16(3, 4), ROWS):
        sample(name, operand, dim=1, keepdim=False)
        sample(name, operand, dim=None, keepdim=False)
    sample(name, f32(2, 3, 4), dim=1, keepdim=True)
    sample(name, f32(2, 3), dim=None, keepdim=True)
    sample(name, f32(), dim=0, keepdim=False)
    sample(name, f32(), dim=None, keepdim=True)
    sample(name, f32(0, 3), dim=1, keepdim=False)

for name in ("softmax", "log_softmax"):
    for operand in (f32(3, 4), f64(3, 4), f16(3, 4), f32(2, 3, 4), ROWS, f32(3, 0), f32(0, 3), f32(3, 4, low=-200, high=200)):
        sample(name, operand, dim=1)
    sample(name, f32(3, 4), dim=0)
    sample(name, f32(), dim=0)

for descending in (False, True):
    for operand in (f32(3, 5), i64(3, 9, low=0, high=3), u8(3, 5), f16(3, 5), ROWS, boolean(3, 4), f32(3, 0), f32(0, 3)):
        sample("sort", operand, dim=1, descending=descending, stable=True)
    sample("sort", f64(4, 3), dim=0, descending=descending, stable=False)
    sample("sort", i32(), dim=0, descending=descending, stable=True)
    sample("sort", ints(2, 1, 2, 1), dim=0, descending=descending, stable=True)
