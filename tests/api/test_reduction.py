"""Reductions, order statistics and norms: values, dimensions, gradients at ties and zeros, PyTorch's errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tpc
from tests.api.differences import check
from tpc.functions.catalogue import find

inf, nan = math.inf, math.nan


def grid() -> tpc.Tensor:
    """[[0, 1, 2], [3, 4, 5]]"""
    return tpc.arange(6.0).reshape(2, 3)


def t(*rows: object) -> tpc.Tensor:
    return tpc.tensor(rows, dtype=tpc.float64)


def gradient(function: Callable[[tpc.Tensor], tpc.Tensor], x: tpc.Tensor) -> list:
    leaf = x.detach().requires_grad_()
    function(leaf).sum().backward()
    return leaf.grad.tolist()


# --- dimensions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 15),
        ({"dim": 0}, [3, 5, 7]),
        ({"dim": -1}, [3, 12]),
        ({"dim": (0, 1)}, 15),
        ({"dim": 1, "keepdim": True}, [[3], [12]]),
        ({"dim": None, "keepdim": True}, [[15]]),
        ({"dim": []}, 15),
        ({"axis": 0}, [3, 5, 7]),
        ({"axis": 1, "keepdims": True}, [[3], [12]]),
    ],
)
def test_dimensions_may_be_given_in_many_ways(options: dict, expected: object):
    assert grid().sum(**options).tolist() == expected
    assert find("sum")(grid(), **options).tolist() == expected
    assert (grid().mean(**options) * (15 / 2.5)).shape == grid().sum(**options).shape


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "any", "all", "var", "std", "logsumexp", "argmax"])
def test_a_dimension_out_of_range(name: str):
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        getattr(tpc, name)(grid(), 2)


def test_a_repeated_dimension():
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times in the list of dims"):
        grid().sum((1, -1))


def test_a_tensor_without_dimensions_has_one_to_reduce():
    x = tpc.tensor(3.0)
    for name in ("sum", "prod", "mean", "amax", "logsumexp"):
        assert getattr(x, name)(0).item() == 3
    assert x.sum(0, keepdim=True).shape == ()
    assert (x.max(0).values.item(), x.max(0).indices.item(), x.argmax().item()) == (3, 0, 0)
    assert x.softmax(0).item() == 1


# --- values -------------------------------------------------------------------------------------


def test_dtypes_of_sums():
    assert tpc.tensor([True, True]).sum().tolist() == 2
    assert tpc.tensor([100, 100], dtype=tpc.int8).sum().tolist() == 200
    assert tpc.tensor([1, 2]).sum(dtype=tpc.float64).dtype is tpc.float64
    assert tpc.ones(2, dtype=tpc.float16).mean().dtype is tpc.float16
    with pytest.raises(RuntimeError, match=r"mean\(\): could not infer output dtype"):
        tpc.tensor([1, 2]).mean()


def test_reductions_of_nothing():
    none = tpc.zeros(0, 3)
    assert (none.sum().item(), none.prod().item(), none.any().item(), none.all().item()) == (0, 1, False, True)
    assert none.sum(0).tolist() == [0, 0, 0]
    assert none.amax(1).tolist() == []
    with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim to be specified for input.numel\(\) == 0"):
        none.max()
    with pytest.raises(IndexError, match=r"amin\(\): Expected reduction dim 0 to have non-zero size"):
        none.amin(0)
    with pytest.raises(IndexError, match="argmax"):
        none.argmax()


def test_truth():
    x = tpc.tensor([[0, 2], [0, 0]])
    assert (x.any().item(), x.all().item()) == (True, False)
    assert (x.any(0).tolist(), x.all(1, keepdim=True).tolist()) == ([False, True], [[False], [False]])
    assert (tpc.count_nonzero(x).item(), x.count_nonzero(1).tolist()) == (1, [1, 0])


def test_spread_divides_by_n_minus_the_correction():
    x = t(1, 2, 4, 5)
    assert x.var().item() == pytest.approx(10 / 3)
    assert x.var(unbiased=False).item() == 2.5
    assert x.var(correction=2).item() == 5
    assert x.std(False).item() == pytest.approx(math.sqrt(2.5))
    assert grid().var(0).tolist() == [4.5, 4.5, 4.5]
    assert [v.tolist() for v in tpc.var_mean(grid(), 1)] == [[1, 1], [1, 4]]
    assert [v.item() for v in tpc.std_mean(x, correction=0)] == pytest.approx([math.sqrt(2.5), 3])
    assert math.isnan(t(1).std().item())
    with pytest.raises(RuntimeError, match="std and var only support floating point"):
        tpc.tensor([1, 2]).var()
    with pytest.raises(TypeError):
        x.var(unbiased=True, correction=1)


def test_logsumexp_does_not_overflow():
    assert t(1000, 1000).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert t(-inf, -inf).logsumexp(0).item() == -inf
    assert tpc.tensor([0, 0]).logsumexp(0).item() == pytest.approx(math.log(2))


def test_softmax_adds_up_to_one():
    x = t([1, 2, 3], [1000, 0, -1000])
    assert x.softmax(1).sum(1).tolist() == pytest.approx([1, 1])
    assert x.log_softmax(1)[1].tolist() == [0, -1000, -2000]
    assert tpc.softmax(grid(), 0, dtype=tpc.float64).dtype is tpc.float64


def test_sums_that_skip_nan():
    x = t([1, nan, 3], [nan, nan, 4])
    assert (x.nansum().item(), x.nansum(1).tolist(), x.nanmean(1).tolist()) == (8, [4, 4], [2, 4])


def test_sum_to_size_undoes_broadcasting():
    assert grid().sum_to_size(3).tolist() == [3, 5, 7]
    assert grid().sum_to_size(2, 1).tolist() == [[3], [12]]
    with pytest.raises(RuntimeError, match="is not expandable to size"):
        grid().sum_to_size(4)


# --- extremes -----------------------------------------------------------------------------------


def test_max_has_three_forms():
    x = t([1, 5, 3], [7, 2, 7])
    assert x.max().item() == 7
    found = x.max(1)
    assert (found.values.tolist(), found.indices.tolist()) == ([5, 7], [1, 0])
    values, indices = tpc.min(x, dim=0, keepdim=True)
    assert (values.tolist(), indices.tolist()) == ([[1, 2, 3]], [[0, 1, 0]])
    assert tpc.max(x, t(4, 4, 4)).tolist() == [[4, 5, 4], [7, 4, 7]]


def test_extremes_over_several_dimensions():
    x = grid().reshape(1, 2, 3)
    assert (x.amax((0, 1)).tolist(), x.amin().item()) == ([3, 4, 5], 0)
    assert [v.tolist() for v in tpc.aminmax(x, dim=2)] == [[[0, 3]], [[2, 5]]]


def test_the_first_of_equal_extremes_gives_the_index():
    assert (t(1, 3, 3).argmax().item(), t(2, 1, 1).argmin().item()) == (1, 1)
    assert t([1, 2], [4, 3]).argmax(1, keepdim=True).tolist() == [[1], [0]]
    assert grid().argmax().item() == 5


def test_nan_is_the_largest_and_the_smallest():
    x = t(1, nan, 3)
    assert math.isnan(x.max().item())
    assert math.isnan(x.amin().item())
    assert (x.argmax().item(), x.argmin().item(), x.max(0).indices.item()) == (1, 1, 1)


# --- order --------------------------------------------------------------------------------------


def test_sort_gives_values_and_indices():
    x = t(3, 1, 2)
    values, indices = x.sort()
    assert (values.tolist(), indices.tolist()) == ([1, 2, 3], [1, 2, 0])
    assert x.sort(descending=True).values.tolist() == [3, 2, 1]
    assert x.argsort().tolist() == [1, 2, 0]
    assert tpc.msort(t([2, 1], [1, 3])).tolist() == [[1, 1], [2, 3]]
    assert t(2, 1, 2, 1).sort(stable=True).indices.tolist() == [1, 3, 0, 2]
    assert tpc.tensor(4.0).sort().values.item() == 4


def test_nan_sorts_last():
    assert str(t(nan, 1, inf).sort().values.tolist()) == "[1.0, inf, nan]"


def test_topk_and_kthvalue():
    x = t([3, 1, 2], [4, 6, 5])
    assert (x.topk(2).values.tolist(), x.topk(2).indices.tolist()) == ([[3, 2], [6, 5]], [[0, 2], [1, 2]])
    assert x.topk(1, dim=0, largest=False).values.tolist() == [[3, 1, 2]]
    assert (x.kthvalue(2).values.tolist(), x.kthvalue(2, keepdim=True).indices.tolist()) == ([2, 5], [[2], [2]])
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(4)
    with pytest.raises(RuntimeError, match="selected number k out of range"):
        x.kthvalue(0)


def test_the_median_is_the_lower_of_two():
    assert t(4, 1, 3, 2).median().item() == 2
    assert (t([3, 1, 2], [4, 6, 5]).median(1).values.tolist(), t([3, 1, 2]).median(1).indices.tolist()) == ([2, 5], [2])
    assert math.isnan(t(1, nan, 2).median().item())
    assert t(1, nan, 2, 3).nanmedian().item() == 2


# --- equality -----------------------------------------------------------------------------------


def test_closeness():
    a = t(1, inf, nan)
    assert tpc.isclose(a, a).tolist() == [True, True, False]
    assert tpc.isclose(a, a, equal_nan=True).tolist() == [True, True, True]
    assert tpc.allclose(t(1), t(1 + 1e-6)) is True
    assert tpc.allclose(t(1), t(1.1), atol=0.2) is True
    assert (tpc.equal(t(1, 2), t(1, 2)), tpc.equal(t(1), t(1, 2)), t(1).equal(t(2))) == (True, False, False)


# --- norms --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "expected"), [(2, 5), ("fro", 5), (1, 7), (inf, 4), (-inf, 0), (0, 2), (3, 91 ** (1 / 3)), (0.5, (3**0.5 + 2) ** 2)]
)
def test_norms(p: object, expected: float):
    assert t(3, -4, 0).norm(p).item() == pytest.approx(expected)


def test_norms_along_dimensions():
    x = t([3, 4], [0, 5])
    assert (x.norm(dim=1).tolist(), x.norm(1, 0, keepdim=True).tolist()) == ([5, 5], [[3, 9]])
    assert tpc.dist(t(1, 1), t(4, 5)).item() == 5
    assert tpc.renorm(x, 2, 0, 1.0).norm(dim=1).tolist() == pytest.approx([1, 1], abs=1e-6)
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor"):
        tpc.tensor([1]).norm()


# --- gradients ----------------------------------------------------------------------------------

POINT = [[0.3, -1.2, 0.8], [1.1, 0.4, -0.6]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(0),
        lambda x: x.mean((0, 1), keepdim=True),
        lambda x: x.prod(),
        lambda x: x.prod(1),
        lambda x: x.var(1),
        lambda x: x.std(correction=0),
        lambda x: x.logsumexp(0),
        lambda x: x.softmax(1),
        lambda x: x.log_softmax(0),
        lambda x: x.amax(1),
        lambda x: x.max(0).values,
        lambda x: x.min(),
        lambda x: x.sort(1).values,
        lambda x: x.topk(2).values,
        lambda x: x.kthvalue(2, 0).values,
        lambda x: x.median(),
        lambda x: x.median(1).values,
        lambda x: x.norm(),
        lambda x: x.norm(3, 1),
        lambda x: x.norm(inf),
        lambda x: x.cumsum(1),
        lambda x: x.nansum(1),
    ],
)
def test_gradient(function: Callable[[tpc.Tensor], tpc.Tensor]):
    check(function, POINT)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
def test_gradient_of_a_product_with_zeros(length: int):
    for zeros in (0, 1, 2):
        row = [0.0] * zeros + [0.7 + i for i in range(length - zeros)]
        check(lambda x: x.prod(0), row[:length])


def test_equal_extremes_share_the_gradient_but_an_index_takes_it_all():
    x = t([3, 3, 1], [2, 2, 2])
    assert gradient(lambda x: x.amax(1), x) == [[0.5, 0.5, 0], pytest.approx([1 / 3] * 3)]
    assert gradient(lambda x: x.max(), x) == [[0.5, 0.5, 0], [0, 0, 0]]
    assert gradient(lambda x: x.max(1)[0], x) == [[1, 0, 0], [1, 0, 0]]
    assert gradient(lambda x: x.median(), t(2, 2, 5)) == [0.5, 0.5, 0]


def test_gradients_at_zero():
    zero = t(0, 0)
    assert gradient(lambda x: x.norm(), zero) == [0, 0]
    assert gradient(lambda x: x.norm(1), zero) == [0, 0]
    assert gradient(lambda x: x.std(), zero) == [0, 0]
    assert gradient(lambda x: x.norm(dim=1), t([0, 0], [0, 2])) == [[0, 0], [0, 1]]


def test_results_without_gradient():
    x = grid().requires_grad_()
    assert not any(y.requires_grad for y in (x.argmax(), x.any(), x.max(0).indices, x.sort().indices, x.count_nonzero()))


def test_out_receives_results():
    x, y = grid(), tpc.zeros(3)
    assert tpc.sum(x, 0, out=y) is y
    assert y.tolist() == [3, 5, 7]
    values, indices = tpc.zeros(2), tpc.zeros(2, dtype=tpc.int64)
    tpc.max(x, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([2, 5], [2, 2])
