"""Finding: where numbers belong in a sorted row, which occur, which are distinct. What is distinct has to be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.dtype import promote
from tpc.functions import elementwise as e
from tpc.functions.elementwise import as_operand, stored
from tpc.functions.factories import filled
from tpc.functions.joining import cat
from tpc.functions.ordering import argsort
from tpc.functions.reduction import any as any_of
from tpc.functions.shape import broadcast_to, flatten, reshape, sliced, unsqueeze
from tpc.ir.types import is_complex, tensor_type
from tpc.record import cast
from tpc.tensor import Tensor, from_array

# --- sorted rows --------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where numbers belong in sorted rows: before equal ones, after them with `right` (or `side="right"`). NaN belongs at the end.

    One row serves any input; several rows need inputs of the same leading shape.
    """
    if side is not None and (side not in ("left", "right") or (right and side == "left")):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' and must agree with right, but got {side}")
    x = input if isinstance(input, Tensor) else cast(as_operand(input), sorted_sequence._type.dtype)
    common = promote(x._type.dtype, sorted_sequence._type.dtype)
    assert common is not None
    x, sorted_sequence = cast(x, common), cast(sorted_sequence, common)
    if sorter is not None:
        from tpc.functions.gathering import gather

        sorted_sequence = gather(sorted_sequence, -1, sorter)
    rows = sorted_sequence
    if rows._type.rank == 0:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if rows._type.rank == 1:
        found = reshape(_rank_among(rows, flatten(x), right or side == "right"), x._type.shape)
    elif rows._type.shape[:-1] == x._type.shape[:-1] and x._type.rank == rows._type.rank:
        found = _rank_among(rows, x, right or side == "right")
    else:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
            f"value tensor must match, but we got boundaries tensor {list(rows._type.shape)} and input value tensor {list(x._type.shape)}"
        )
    return stored(cast(found, "i32") if out_int32 else found, out)


def _rank_among(rows: Tensor, x: Tensor, right: bool) -> Tensor:
    """How many of a row are below each number (or not above it): its place when both are sorted together, less its place alone.

    A stable sort keeps equal ones in the order in which they stand: numbers first, or the row first.
    """
    rows, x = rows.detach(), x.detach()
    last, n, m = x._type.rank - 1, rows._type.shape[-1], x._type.shape[-1]
    together = cat((rows, x) if right else (x, rows), last)
    place = argsort(argsort(together, last, stable=True), last)
    own = sliced(place, last, n, n + m) if right else sliced(place, last, 0, m)
    found = e.sub(own, argsort(argsort(x, last, stable=True), last))
    return e.where(e.isnan(x), n, found) if x._type.dtype[0] == "f" else found


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None) -> Tensor:
    """Which bucket between sorted boundaries each number is in; bucket i ends with boundary i (without it, with `right`)."""
    if boundaries._type.rank != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._type.rank})")
    x = as_operand(input)
    return searchsorted(boundaries, x, out_int32=out_int32, right=right, out=out)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Tensor | None = None) -> Tensor:
    """Which elements occur among others."""
    x, tests = as_operand(elements).detach(), flatten(as_operand(test_elements).detach())
    if not tests._type.numel:
        return stored(filled(tensor_type("bool", x._type.shape), bool(invert)), out)
    found = any_of(e.eq(unsqueeze(x, -1), broadcast_to(tests, tests._type.shape)), -1)
    return stored(e.logical_not(found) if invert else found, out)


# --- distinct elements --------------------------------------------------------------------------


def _result(unique: np.ndarray, inverse: np.ndarray, counts: np.ndarray, return_inverse: bool, return_counts: bool) -> Any:
    results = [from_array(np.ascontiguousarray(unique))]
    if return_inverse:
        results.append(from_array(np.array(inverse, np.int64, order="C")))
    if return_counts:
        results.append(from_array(np.ascontiguousarray(counts, np.int64)))
    return tuple(results) if len(results) > 1 else results[0]


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements (or slices along `dim`) in order; with `return_inverse` and `return_counts`, for each element the place of
    its equal, and how often each occurs. NaNs are distinct. No gradient flows.
    """
    array = input.detach()._array()
    if is_complex(input._type.dtype):
        raise NotImplementedError("unique() does not take complex tensors: they have no order")
    from tpc.functions.dims import one_dim

    axis = None if dim is None else one_dim(dim, input._type.rank)
    if axis is not None and not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if axis is not None and array.shape[axis] and not array.size:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    found, inverse, counts = np.unique(array, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    return _result(found, inverse.reshape(array.shape if axis is None else -1), counts, return_inverse, return_counts)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements (or slices along `dim`) without those that equal their neighbour before; results as those of `unique`."""
    array = input.detach()._array()
    from tpc.functions.dims import one_dim

    rows = array.reshape(-1) if dim is None else np.moveaxis(np.atleast_1d(array), one_dim(dim, array.ndim), 0)
    differs = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    first = np.concatenate((np.ones(min(len(rows), 1), bool), differs))
    starts = np.flatnonzero(first)
    inverse = np.cumsum(first) - 1
    kept = rows[starts] if dim is None else np.moveaxis(rows[starts], 0, one_dim(dim, array.ndim))
    counts = np.diff(np.append(starts, len(rows)))
    return _result(kept, inverse.reshape(array.shape) if dim is None else inverse, counts, return_inverse, return_counts)
