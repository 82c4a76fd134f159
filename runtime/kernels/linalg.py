"""Linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel


@kernel("matmul")
def _(op: Op) -> Run:
    if op.results[0].type.dtype == "f16":

        def half(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
            return copied(np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16), out)

        return half
    if op.results[0].type.dtype[0] in "fc" and all(v.type.rank == 2 for v in op.operands):
        # The same BLAS calls by a shorter way: a microsecond less, and BLAS also where one size is 1.
        return np.dot
    return np.matmul
