"""Derivatives of matrix products."""

from __future__ import annotations

from tpc.autograd.rules import derivative
from tpc.functions.elementwise import conj
from tpc.functions.linalg import matmul
from tpc.functions.shape import mT
from tpc.ir.ops import linalg as ops

# batch dimensions that were broadcast are summed by the engine
derivative(ops.matmul, a=lambda g, b: matmul(g, mT(conj(b))), b=lambda g, a: matmul(mT(conj(a)), g))
