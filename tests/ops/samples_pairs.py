"""Samples of complex numbers as pairs of real ones."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import c64, c128, edge_pairs, f16, f32, f64, sample

sample("complex", f32(3, 4), f32(4))
sample("complex", f64(2, 1), f64())
sample("complex", f16(3), f16(3))
sample("complex", f32(0, 2), f32(2))
sample("complex", *edge_pairs(np.float32))
for operand in (c64(3, 2), c128(), c64(0, 2), c128(2, 1, 3)):
    sample("view_as_real", operand)
for operand in (f32(3, 2), f64(2), f32(0, 2), f64(2, 3, 2)):
    sample("view_as_complex", operand)
