"""Distances between points: of two sets, or within one. Their gradient at distance 0 is 0, as in PyTorch."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tpc.dtype import promote
from tpc.functions import elementwise as e
from tpc.functions.arranging import flip
from tpc.functions.factories import ones, zeros
from tpc.functions.gathering import index_select
from tpc.functions.joining import stack
from tpc.functions.norms import vector_norm
from tpc.functions.shape import unsqueeze
from tpc.ir.types import category, is_differentiable
from tpc.record import cast
from tpc.tensor import Tensor, from_array


def _norm(difference: Tensor, p: float) -> Tensor:
    if difference._type.shape[-1] == 0:
        return zeros(difference._type.shape[:-1], dtype=difference.dtype)
    return vector_norm(difference, p, -1)


def _checked(function: str, x: Tensor, p: float) -> None:
    if p < 0 or math.isnan(p):
        raise RuntimeError(f"{function} only supports non-negative p values")
    if not is_differentiable(x._type.dtype) or x._type.dtype[0] == "c":
        raise RuntimeError(f"{function} only supports floating-point dtypes, got: {x.dtype}")


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """p-norm distances of all rows of `x1` [..., n, d] to all rows of `x2` [..., m, d]: [..., n, m]. `compute_mode` changes nothing."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x._type.rank < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._type.rank}D")
    if x1._type.shape[-1] != x2._type.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1._type.shape[-1]} X2: {x2._type.shape[-1]}")
    _checked("cdist", x1, p)
    common = promote(x1._type.dtype, x2._type.dtype)
    assert common is not None
    return _norm(e.sub(unsqueeze(cast(x1, common), -2), unsqueeze(cast(x2, common), -3)), p)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norm distances of each pair of rows [n, d], in the order (0, 1), (0, 2), ..."""
    if input._type.rank != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._type.rank}D")
    _checked("pdist", input, p)
    a, b = np.triu_indices(input._type.shape[0], 1)
    return _norm(e.sub(index_select(input, 0, from_array(a)), index_select(input, 0, from_array(b))), p)


# --- tuples of elements -------------------------------------------------------------------------


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, one per row."""
    if input._type.rank != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(input._type.shape)))
    if r < 0:
        raise RuntimeError("Expect a non-negative number, but got " + str(r))
    if r == 0:
        return zeros(0, dtype=input.dtype)
    choose: Any = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input._type.numel), r)), np.int64).reshape(-1, r)
    picked = index_select(input, 0, from_array(rows.reshape(-1)))
    return picked.reshape(rows.shape)  # type: ignore[no-any-return]


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803 - PyTorch's spelling
    """The matrix whose columns are the powers N - 1, ..., 1, 0 of a vector (0, 1, ... when increasing)."""
    if x._type.rank != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    return powers(x, N, increasing)


def powers(x: Tensor, count: Any, increasing: bool) -> Tensor:
    """The matrices of powers of vectors [..., n]."""
    count = x._type.shape[-1] if count is None else int(count)
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    base = x if category(x._type.dtype) > 1 else cast(x, "i64")
    if not count:
        return zeros((*x._type.shape, 0), dtype=base.dtype)
    columns = [ones(x._type.shape, dtype=base.dtype)]
    for _ in range(count - 1):
        columns.append(e.mul(columns[-1], base))
    made = stack(columns, -1)
    return made if increasing else flip(made, -1)
