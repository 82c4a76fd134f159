"""Samples of the special functions."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import c64, c128, edge, edge_pairs, f16, f32, f64, ints, sample

HYPERBOLIC = ("asinh", "acosh", "atanh", "exp2", "log2", "log10")
HALF_TOO = ("erfc", "erfinv", "ndtr", "entr", "logit", "lgamma", "digamma", "i0", "i0e", "i1", "i1e")
OTHERS = (
    *("erfcx", "ndtri", "log_ndtr", "airy_ai", "spherical_bessel_j0", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
    *(
        "modified_bessel_i0",
        "modified_bessel_i1",
        "modified_bessel_k0",
        "modified_bessel_k1",
        "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1",
    ),
)

for name in (*HYPERBOLIC, *HALF_TOO, *OTHERS):
    sample(name, f32(3, 4, low=0.1, high=0.9))
    sample(name, f64(3, 4, low=0.1, high=30.0))
    sample(name, f64(3, 4, low=-30.0, high=0.0))
    sample(name, f32())
    sample(name, f32(0, 3))
    sample(name, f64(9000, low=-3.0, high=3.0))
    sample(name, edge(np.float32))
    sample(name, edge(np.float64))
for name in (*HYPERBOLIC, *HALF_TOO):
    sample(name, f16(5, low=0.1, high=0.9))
for name in HYPERBOLIC:
    sample(name, c64(3, 2))
    sample(name, c128())
for n in (0, 1, 2, 5):
    sample("polygamma", f32(3, 4, low=0.1, high=9.0), n=n)
    sample("polygamma", edge(np.float64), n=n)
sample("zeta", f64(3, 1, low=1.0, high=5.0), f64(4, low=0.1, high=9.0))
sample("zeta", f32(3, low=1.0, high=5.0), f32())
sample("zeta", np.array([2.0, 3.0, 0.5, 1.0]), np.array([[-1.5], [0.0], [2.0], [np.inf]]))
for name in ("xlogy", "xlog1py"):
    sample(name, *edge_pairs(np.float32))
    sample(name, f64(3, 1), f64(4))
    sample(name, f16(3), f16())
for name in ("gammainc", "gammaincc"):
    sample(name, f64(3, 1, low=0.1, high=9.0), f64(4, low=0.1, high=9.0))
    sample(name, f32(3, low=0.1, high=9.0), f32(low=0.1))
    sample(name, f16(3, low=0.1), f16(3, low=0.1))
    sample(name, np.array([0.0, 1.0, 500.0, np.inf, -1.0]), np.array([[0.0], [1.0], [505.0], [np.inf], [-1.0]]))
for family in ("chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h", "hermite_he", "laguerre_l", "legendre_p"):
    sample("orthogonal_polynomial", f64(5, 1), ints(-1, 0, 1, 2, 5, 9).astype(float), family=family)
sample("orthogonal_polynomial", np.array([-1.0, 1.0, 0.5]), np.array([[3.0], [4.0]]), family="chebyshev_w")
sample("orthogonal_polynomial", f32(4), f32(low=3.0, high=4.0), family="shifted_chebyshev_u")
