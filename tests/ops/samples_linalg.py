"""Samples of linear algebra."""

from __future__ import annotations

from tests.ops.sample import c64, c128, f16, f32, f64, i64, sample

sample("matmul", f32(3, 4), f32(4, 5))
sample("matmul", f64(2, 3, 4), f64(4, 5))
sample("matmul", f64(2, 1, 3, 4), f64(3, 4, 2))
sample("matmul", f16(3, 4), f16(4, 2))
sample("matmul", c64(3, 4), c64(4, 2))
sample("matmul", c128(2, 2), c128(2, 2))
sample("matmul", i64(3, 4), i64(4, 2))
sample("matmul", f32(3, 0), f32(0, 2))
sample("matmul", f32(0, 3), f32(3, 2))
sample("matmul", f32(2, 70, 90), f32(2, 90, 80))
