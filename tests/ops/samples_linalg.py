"""Samples of linear algebra."""

from __future__ import annotations

import numpy as np

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

POSITIVE = np.array([[4, 1, 2], [1, 5, 3], [2, 3, 6]], np.float64)
HERMITIAN = np.array([[3, 1j], [-1j, 2]], np.complex128)
SINGULAR = np.array([[1, 2], [2, 4]], np.float64)
MIXED = np.stack([np.eye(2), SINGULAR, -np.eye(2)])
"""A batch with a singular matrix and with two that have no Cholesky factor."""

sample("cholesky", POSITIVE, check=True)
sample("cholesky", POSITIVE.astype(np.float32), check=True)
sample("cholesky", HERMITIAN, check=False)
sample("cholesky", np.stack([POSITIVE, 2 * POSITIVE]), check=True)
sample("cholesky", f64(2, 0, 0), check=True)
sample("cholesky", MIXED, check=False)

sample("inv", f64(3, 3), check=True)
sample("inv", f32(2, 3, 4, 4), check=True)
sample("inv", c64(2, 2), check=True)
sample("inv", f64(0, 2, 2), check=True)
sample("inv", MIXED, check=False)

sample("solve", f64(3, 3), f64(3, 2), check=True)
sample("solve", f32(4, 3, 3), f32(3, 1), check=True)
sample("solve", f64(3, 3), f64(4, 3, 2), check=True)
sample("solve", c128(2, 2), c128(2, 3), check=False)
sample("solve", f64(2, 0, 0), f64(2, 0, 3), check=True)
sample("solve", MIXED, f64(2, 3), check=False)

for upper in (True, False):
    sample("solve_triangular", f64(3, 3, low=1.0), f64(3, 2), upper=upper, unitriangular=False)
    sample("solve_triangular", f32(2, 3, 3, low=1.0), f32(3, 2), upper=upper, unitriangular=True)
    sample("solve_triangular", c128(3, 3), c128(5, 3, 2), upper=upper, unitriangular=False)
    sample("solve_triangular", f64(0, 0), f64(0, 3), upper=upper, unitriangular=False)
    sample("cholesky_solve", f64(4, 3, 2), f64(3, 3, low=1.0), upper=upper, check=True)
    sample("cholesky_solve", c64(2, 2), c64(3, 2, 2, low=1.0), upper=upper, check=False)
    sample("cholesky_solve", f64(0, 2), f64(0, 0), upper=upper, check=True)
    sample("solve_triangular", np.array([[0.0, 1], [1, 0]]), f64(2, 2), upper=upper, unitriangular=False)
sample("solve_triangular", np.eye(150) + np.tri(150) / 150, f64(150, 2), upper=False, unitriangular=False)

for name in ("det", "slogdet", "cofactor"):
    sample(name, f64(3, 3))
    sample(name, f32(2, 4, 4))
    sample(name, c128(2, 2))
    sample(name, f64(2, 0, 0))
    sample(name, MIXED)
    sample(name, np.zeros((3, 3)))
sample("cofactor_derivative", f64(3, 3), f64(3, 3))
sample("cofactor_derivative", f32(2, 2), f32(5, 2, 2))
sample("cofactor_derivative", c128(3, 3), c128(3, 3))
sample("cofactor_derivative", MIXED, f64(3, 2, 2))
sample("cofactor_derivative", f64(0, 0), f64(0, 0))
