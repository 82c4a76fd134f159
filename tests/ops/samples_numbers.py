"""Samples of divisors, neighbours, mantissas and exponents."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import edge, edge_pairs, f16, f32, f64, i8, i64, ints, sample, u8

for name in ("gcd", "lcm"):
    sample(name, i64(3, 4), i64(4))
    sample(name, u8(3), u8())
    sample(name, i8(5), i8(5))
    sample(name, ints(0, 12, -12, 7, 0), ints(0, 18, 18, 0, -5))
sample("nextafter", *edge_pairs(np.float32))
sample("nextafter", f64(3, 1), f64(4))
sample("nextafter", f16(3), f16())
for operand in (edge(np.float32), edge(np.float64), f32(3, 4), f64(), f16(5), f32(0, 2)):
    sample("frexp", operand)
