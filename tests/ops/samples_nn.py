"""Samples of convolution, pooling and windows."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import c64, f16, f32, f64, i64, sample, u8

NAN, INF = np.nan, np.inf


def moves(count: int, stride: int = 1, low: int = 0, high: int = 0, dilation: int = 1, **more):
    return {"stride": (stride,) * count, "low": (low,) * count, "high": (high,) * count, "dilation": (dilation,) * count, **more}


def convolution(x, w, y, **attrs):
    """The three products of one geometry: each takes two of (input, weight, result) and gives the third."""
    count = len(x.type.shape) - 2
    sample("conv", x, w, **attrs)
    sample("conv_input_grad", y, w, size=x.type.shape[2:], **attrs)
    sample("conv_weight_grad", y, x, size=w.type.shape[2:], **attrs)
    assert count == len(attrs["stride"])


convolution(f32(2, 3, 7), f32(4, 3, 3), f32(2, 4, 5), **moves(1, groups=1))
convolution(f64(2, 4, 6, 7), f64(6, 2, 3, 2), f64(2, 6, 3, 4), **moves(2, stride=2, low=1, high=1, groups=2))
convolution(f64(2, 4, 6, 7), f64(4, 1, 3, 2), f64(2, 4, 6, 8), **moves(2, low=1, high=1, groups=4))
convolution(f32(2, 3, 6, 7), f32(5, 3, 1, 1), f32(2, 5, 6, 7), **moves(2, groups=1))
convolution(f32(2, 3, 6, 7), f32(5, 3, 1, 1), f32(2, 5, 3, 4), **moves(2, stride=2, groups=1))
convolution(f64(1, 2, 4, 5, 4), f64(3, 2, 2, 3, 2), f64(1, 3, 4, 5, 4), **moves(3, low=1, groups=1) | {"high": (0, 1, 0)})
convolution(f64(2, 2, 9), f64(3, 2, 3), f64(2, 3, 6), **moves(1, low=1, dilation=2, groups=1))
convolution(f16(2, 2, 6, 6), f16(3, 2, 3, 3), f16(2, 3, 4, 4), **moves(2, groups=1))
convolution(c64(2, 2, 6), c64(3, 2, 3), c64(2, 3, 4), **moves(1, groups=1))
convolution(i64(2, 2, 6), i64(3, 2, 3), i64(2, 3, 4), **moves(1, groups=1))
convolution(f32(0, 2, 6), f32(3, 2, 3), f32(0, 3, 4), **moves(1, groups=1))
convolution(f32(2, 0, 6), f32(3, 0, 3), f32(2, 3, 4), **moves(1, groups=1))
convolution(f32(3, 16, 60, 61), f32(8, 16, 5, 5), f32(3, 8, 60, 61), **moves(2, low=2, high=2, groups=1))
convolution(f64(1, 3, 250, 250), f64(2, 3, 7, 7), f64(1, 2, 122, 122), **moves(2, stride=2, groups=1))

TIES = np.array([[1, 1, 0, NAN, 2], [1, 0, 0, 2, INF], [-INF, -INF, 3, 3, 3], [-INF, -INF, NAN, 3, 0], [0, 0, 0, 0, 0]], np.float32)
"""Equal elements, NaN and infinities in one window."""

for name in ("max_pool", "max_pool_indices"):
    sample(name, f32(2, 3, 6, 7), kernel=(2, 2), **moves(2, stride=2))
    sample(name, f64(2, 6, 7), kernel=(3, 2), **moves(2, stride=2, low=1, high=1))
    sample(name, f64(2, 9), kernel=(3,), **moves(1, dilation=2, low=1, high=1))
    sample(name, f32(2, 4, 5, 6), kernel=(2, 3, 2), **moves(3, high=1))
    sample(name, f16(4, 4), kernel=(2, 2), **moves(2))
    sample(name, i64(4, 4), kernel=(2, 2), **moves(2))
    sample(name, u8(4, 4), kernel=(1, 1), **moves(2))
    sample(name, f32(0, 4, 4), kernel=(2, 2), **moves(2))
    sample(name, TIES, kernel=(2, 2), **moves(2))
    sample(name, f32(2, 20, 21), kernel=(17, 18), **moves(2))
    sample(name, np.full((2, 5), -INF, np.float32), kernel=(3,), **moves(1, low=1, high=1))
    sample(name, f32(3, 6), kernel=(2,), **moves(1, stride=3, low=1, dilation=4, high=1))
    sample(name, f32(70, 50, 50), kernel=(3, 3), **moves(2, stride=2, low=1, high=1))

# windows that overlap, with places chosen by hand: the flat index into 3 x 4
sample("max_pool_grad", f64(2, 2, 3), np.array([[[0, 1, 6], [9, 9, 6]], [[5, 6, 7], [5, 6, 11]]]), size=(3, 4), kernel=(2, 2), **moves(2))
sample("max_pool_grad", f16(1, 2), np.array([[1, 3]]), size=(4,), kernel=(2,), **moves(1, stride=2))
sample("max_pool_grad", f32(2, 3), np.array([[1, -1, 3], [0, 2, -1]]), size=(5,), kernel=(2,), **moves(1, stride=2, high=1))
sample("max_pool_grad", f32(0, 2), np.zeros((0, 2), np.int64), size=(4,), kernel=(2,), **moves(1, stride=2))


def window(count: int, kernel: int, stride: int = 1, low: int = 0, high: int = 0):
    return {"kernel": (kernel,) * count, "stride": (stride,) * count, "low": (low,) * count, "high": (high,) * count}


for dtype in (f32, f64, f16, c64, i64):
    sample("sum_pool", dtype(2, 6, 7), **window(2, 2, 2))
    sample("sum_pool_grad", dtype(2, 3, 3), size=(6, 7), **window(2, 2, 2))
sample("sum_pool", f64(2, 3, 6, 7), **window(2, 3, 1, 1, 1))
sample("sum_pool_grad", f64(2, 3, 6, 7), size=(6, 7), **window(2, 3, 1, 1, 1))
sample("sum_pool", f64(2, 9), **window(1, 3, 2, 1, 2))
sample("sum_pool_grad", f64(2, 5), size=(9,), **window(1, 3, 2, 1, 2))
sample("sum_pool", f32(2, 4, 5, 4), **window(3, 2))
sample("sum_pool_grad", f32(2, 3, 4, 3), size=(4, 5, 4), **window(3, 2))
sample("sum_pool", f32(4, 4), **window(2, 1))
sample("sum_pool_grad", f32(4, 4), size=(4, 4), **window(2, 1))
sample("sum_pool", f32(0, 4, 4), **window(2, 2))
sample("sum_pool_grad", f32(0, 3, 3), size=(4, 4), **window(2, 2))
sample("sum_pool", f32(70, 50, 50), **window(2, 3, 2, 1, 1))
sample("sum_pool_grad", f32(70, 25, 25), size=(50, 50), **window(2, 3, 2, 1, 1))

for dtype in (f32, f64, f16, c64, i64):
    sample("im2col", dtype(2, 5, 4), kernel=(2, 3), **moves(2, low=1, high=1))
    sample("col2im", dtype(2, 2, 3, 6, 4), size=(5, 4), **moves(2, low=1, high=1))
sample("im2col", f64(2, 9), kernel=(3,), **moves(1, stride=2, dilation=2))
sample("col2im", f64(2, 3, 3), size=(9,), **moves(1, stride=2, dilation=2))
sample("im2col", f64(4, 4), kernel=(4, 4), **moves(2))
sample("col2im", f64(4, 4, 1, 1), size=(4, 4), **moves(2))
