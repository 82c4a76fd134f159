"""Random numbers depend on a generator's state alone, so they carry no gradient."""

from __future__ import annotations

from tpc.autograd.rules import not_differentiable
from tpc.ir.ops import random as ops

not_differentiable(ops.rand, ops.randn, ops.randint, ops.randperm)
