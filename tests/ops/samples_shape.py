"""Samples of views, scatters of views, arrays from nothing, joining and scans."""

from __future__ import annotations

import base64

import numpy as np

from tests.ops.sample import boolean, c64, f16, f32, f64, i8, i32, i64, sample, u8

sample("reshape", f32(3, 4), shape=(2, 6))
sample("reshape", f32(1), shape=())
sample("reshape", i64(0, 3), shape=(3, 0))
sample("permute", f32(2, 3, 4), dims=(2, 0, 1))
sample("permute", f32(), dims=())
sample("broadcast_to", f32(3, 1), shape=(2, 3, 4))
sample("broadcast_to", f64(), shape=(2,))
sample("broadcast_to", f64(1), shape=(0,))
sample("slice", f32(5, 4), starts=(1, 0), limits=(5, 3), steps=(2, 1))
sample("slice", f32(5), starts=(2,), limits=(2,), steps=(1,))
sample("slice", f32(), starts=(), limits=(), steps=())
for offset in (-1, 0, 2, 7):
    sample("diagonal", f32(3, 4), offset=offset, dim1=0, dim2=1)
sample("diagonal", f32(2, 3, 4), offset=1, dim1=2, dim2=0)

sample("slice_scatter", f32(5, 4), f32(2, 3), starts=(1, 0), limits=(5, 3), steps=(2, 1))
sample("slice_scatter", f32(5), f32(0), starts=(2,), limits=(2,), steps=(1,))
sample("slice_scatter", f32(), f32(), starts=(), limits=(), steps=())
sample("diagonal_scatter", f32(3, 4), f32(3), offset=0, dim1=0, dim2=1)
sample("diagonal_scatter", f32(2, 3, 4), f32(3, 1), offset=1, dim1=2, dim2=0)
sample("diagonal_scatter", f32(3, 4), f32(0), offset=7, dim1=0, dim2=1)

sample("constant", value=2.5, dtype="f32")
sample("constant", value=3, dtype="i64")
sample("constant", value=True, dtype="bool")
sample("constant", value=1 + 2j, dtype="c64")
sample("constant", value=float("nan"), dtype="f64")
sample("literal", data=base64.b64encode(np.arange(6, dtype="<f4").tobytes()).decode(), dtype="f32", shape=(2, 3))
sample("literal", data="", dtype="i64", shape=(0,))
sample("iota", start=0, step=1, size=5, dtype="i64")
sample("iota", start=10, step=-3, size=4, dtype="i32")
sample("iota", start=0.1, step=0.1, size=7, dtype="f32")
sample("iota", start=-1.0, step=0.25, size=9, dtype="f64")
sample("iota", start=0, step=1, size=0, dtype="f16")
for dtype in ("f32", "f64", "i64", "f16"):
    sample("linspace", start=-3.0, end=7.0, steps=11, dtype=dtype)
    sample("linspace", start=0.1, end=0.7, steps=6, dtype=dtype)
sample("linspace", start=2.0, end=3.0, steps=1, dtype="f32")
sample("linspace", start=2.0, end=3.0, steps=0, dtype="f32")
sample("eye", n=3, m=4, dtype="f32")
sample("eye", n=0, m=2, dtype="i64")

sample("cat", f32(2, 3), f32(1, 3), f32(0, 3), dim=0)
sample("cat", i64(2, 1), i64(2, 3), dim=1)
sample("cat", boolean(2), dim=0)
sample("flip", f32(2, 3), dims=(0, 1))
sample("flip", f32(4), dims=(0,))
sample("flip", f32(), dims=())
sample("pad", f32(2, 3), low=(1, 0), high=(0, 2), value=0.5)
sample("pad", i64(3), low=(2,), high=(0,), value=-1)
sample("pad", f32(), low=(), high=(), value=0.0)
sample("pad", boolean(2), low=(1,), high=(1,), value=True)
for name in ("tril", "triu"):
    for diagonal in (-1, 0, 2):
        sample(name, f32(2, 3, 4), diagonal=diagonal)
    sample(name, i64(3, 3), diagonal=0)
    sample(name, np.full((2, 2), np.nan, np.float32), diagonal=0)
for name in ("cumsum", "cumprod"):
    for operand in (f32(3, 4), f64(3, 4), i32(3, 4), u8(3, 4), boolean(3, 4), c64(3, 2), f16(3, 9), i8(3, 4), f32(3, 0)):
        sample(name, operand, dim=1)
    sample(name, f32(4, 3), dim=0)
    sample(name, f32(), dim=0)
    sample(name, boolean(), dim=0)
