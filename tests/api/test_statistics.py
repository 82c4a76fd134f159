"""Statistics, searching, distances and windows on memory: values at ties, NaN and borders, gradients, PyTorch's errors."""

from __future__ import annotations

import math

import pytest

import tpc
from tests.api.differences import check

inf, nan = math.inf, math.nan


def t(*rows: object) -> tpc.Tensor:
    return tpc.tensor(rows, dtype=tpc.float64)


# --- running values -----------------------------------------------------------------------------


def test_running_extremes_take_the_last_of_equal_ones_and_keep_nan():
    values, indices = t(1, 3, 3, nan, 5).cummax(0)
    assert str(values.tolist()) == "[1.0, 3.0, 3.0, nan, nan]"
    assert indices.tolist() == [0, 1, 2, 3, 3]
    assert [x.tolist() for x in tpc.cummin(tpc.tensor([[2, 1, 1]]), 1)] == [[[2, 1, 1]], [[0, 1, 2]]]
    assert tpc.tensor(4.0).cummax(0).indices.shape == ()


def test_running_sums_of_exponentials_do_not_overflow():
    assert tpc.logcumsumexp(t(1000, 1000, -inf), 0).tolist() == pytest.approx([1000, 1000 + math.log(2), 1000 + math.log(2)])
    check(lambda x: tpc.logcumsumexp(x, 1), t([1, -2, 3], [0.5, 0, 2]))


def test_areas_under_curves():
    assert tpc.trapezoid(t(1, 5, 10)).item() == 10.5
    assert tpc.trapezoid(t(1, 5, 10), t(1, 3, 6)).item() == 28.5
    assert tpc.cumulative_trapezoid(t(1, 5, 10), dx=2).tolist() == [6, 21]
    with pytest.raises(RuntimeError, match="one `x` value for each sample point"):
        tpc.trapezoid(t(1, 2, 3), t(1, 2))


# --- order statistics ---------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "expected"), [("linear", 1.25), ("lower", 1.0), ("higher", 2.0), ("midpoint", 1.5), ("nearest", 1.0)])
def test_quantiles_between_elements(how: str, expected: float):
    assert tpc.quantile(t(2, 0, 4, 1), 5 / 12, interpolation=how).item() == pytest.approx(expected)


def test_quantiles_of_rows():
    x = t([3, nan, 1], [4, 2, 0])
    assert str(x.quantile(0.5, 1).tolist()) == "[nan, 2.0]"
    assert x.nanquantile(t(0, 0.5), 1).tolist() == [[1, 0], [2, 2]]
    assert x.quantile(0.5, 0, keepdim=True).shape == (1, 3)
    check(lambda x: x.quantile(0.3, 1), t([3, 0.5, 1], [4, 2, 0]))
    with pytest.raises(RuntimeError, match=r"q must be in the range \[0, 1\]"):
        x.quantile(1.5)


def test_the_mode_is_the_smallest_of_the_most_frequent():
    assert [x.tolist() for x in tpc.mode(t([1, 2, 2, 1], [3, 0, 3, 3]))] == [[1, 3], [3, 3]]
    with pytest.raises(IndexError, match="non-zero size"):
        tpc.zeros(2, 0).mode(1)


def test_histograms():
    assert tpc.histc(t(1, 2, 1), bins=4, min=0, max=3).tolist() == [0, 2, 1, 0]
    assert tpc.histc(t(1, 1)).sum().item() == 2
    hist, edges = tpc.histogram(t(1, 2, 1), t(0, 1, 2), weight=t(1, 2, 4), density=True)
    assert (hist.tolist(), edges.tolist()) == ([0, 1], [0, 1, 2])
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        tpc.histc(t(1), 0)


def test_covariance_and_correlation():
    x = t([0, 2], [1, 1], [2, 0]).T
    assert x.cov().tolist() == [[1, -1], [-1, 1]]
    assert tpc.allclose(x.corrcoef(), t([1, -1], [-1, 1]))
    assert x.cov(fweights=tpc.tensor([1, 0, 1])).tolist() == [[2, -2], [-2, 2]]


# --- searching ----------------------------------------------------------------------------------


def test_places_in_sorted_rows():
    row = t(1, 2, 2, 3)
    assert tpc.searchsorted(row, t([2, nan], [0, 9])).tolist() == [[1, 4], [0, 4]]
    assert tpc.searchsorted(row, t(2), right=True).tolist() == [3]
    assert tpc.searchsorted(tpc.stack((row, row + 1)), t([2], [2])).tolist() == [[1], [0]]
    assert tpc.bucketize(tpc.tensor([0, 2, 9]), row, out_int32=True).tolist() == [0, 1, 4]
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        tpc.searchsorted(tpc.stack((row, row)), t([2]))


def test_membership():
    assert tpc.isin(tpc.tensor([1, 2, 3]), tpc.tensor([2, 5])).tolist() == [False, True, False]
    assert tpc.isin(t(1, nan), t(nan), invert=True).tolist() == [True, True]


def test_distinct_elements():
    values, inverse, counts = tpc.tensor([[3, 1], [3, 3]]).unique(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [[1, 0], [1, 1]], [1, 3])
    assert tpc.unique(tpc.tensor([[3, 1], [3, 1], [0, 1]]), dim=0).tolist() == [[0, 1], [3, 1]]
    assert [x.tolist() for x in tpc.unique_consecutive(t(1, 1, 2, 1), return_counts=True)] == [[1, 2, 1], [2, 1, 1]]
    assert t(nan, nan).unique().numel() == 2
    assert tpc.unique_consecutive(t(7)).tolist() == [7]


# --- distances and tuples -----------------------------------------------------------------------


@pytest.mark.parametrize(("p", "expected"), [(0, 2), (1, 7), (2, 5), (inf, 4)])
def test_distances(p: float, expected: float):
    x, y = t([0, 0]), t([3, 4], [0, 0])
    assert tpc.cdist(x, y, p).tolist() == [[expected, 0]]
    assert tpc.pdist(y, p).tolist() == [expected]


def test_the_gradient_at_distance_zero_is_zero():
    x = t([1, 2], [1, 2]).requires_grad_()
    tpc.cdist(x, x.detach()).sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]
    check(lambda a, b: tpc.cdist(a, b, 3), t([1, 2], [0, 3]), t([4, 4.5]))


def test_tuples_of_elements():
    x = tpc.tensor([1, 2, 3])
    assert tpc.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert tpc.combinations(x[:2], 2, with_replacement=True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert tpc.vander(x).tolist() == [[1, 1, 1], [4, 2, 1], [9, 3, 1]]


# --- memory and slopes --------------------------------------------------------------------------


def test_windows_by_strides():
    x = tpc.arange(6.0, requires_grad=True)
    windows = x.as_strided((2, 2), (2, 1), 1)
    assert windows.tolist() == [[1, 2], [3, 4]]
    tpc.as_strided(x, (5, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1, 2, 2, 2, 2, 1]
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.as_strided((4,), (2,))


def test_combined_writing():
    x, ids, source = t(1, 2, 3), tpc.tensor([0, 0, 2]), t(4, 5, 6)
    assert x.index_reduce(0, ids, source, "prod").tolist() == [20, 2, 18]
    assert x.index_reduce(0, ids, source, "amax", include_self=False).tolist() == [5, 2, 6]
    with pytest.raises(RuntimeError, match="Expected reduce to be one of prod, mean, amax or amin"):
        x.index_reduce(0, ids, source, "sum")


def test_slopes_of_samples():
    y = t(1, 4, 9, 16)
    assert tpc.gradient(y)[0].tolist() == [3, 4, 6, 7]
    assert tpc.gradient(y, edge_order=2)[0].tolist() == [2, 4, 6, 8]
    assert tpc.gradient(y, spacing=[t(1, 2, 3, 4)])[0].tolist() == [3, 4, 6, 7]
    assert [x.tolist() for x in tpc.unravel_index(tpc.tensor([3, 7]), (3, 4))] == [[0, 1], [3, 3]]
