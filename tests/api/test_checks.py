"""Faults in known values are raised where they are written, and leave everything as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tpc

FAR = [7]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x[tpc.tensor(FAR)],
        lambda x: x[FAR],
        lambda x: x.gather(0, tpc.tensor(FAR)),
        lambda x: x.index_select(0, tpc.tensor(FAR)),
        lambda x: x.__setitem__(FAR, 1.0),
        lambda x: x.scatter_(0, tpc.tensor(FAR), 1.0),
        lambda x: x.scatter_add_(0, tpc.tensor(FAR), tpc.ones(1)),
        lambda x: x.scatter_reduce_(0, tpc.tensor(FAR), tpc.ones(1), reduce="amax"),
        lambda x: x.index_add_(0, tpc.tensor(FAR), tpc.ones(1)),
        lambda x: x.index_put_((tpc.tensor(FAR),), tpc.ones(1)),
    ],
)
def test_an_index_out_of_range(use: Callable[[tpc.Tensor], Any]) -> None:
    """The error came when somebody looked, and a tensor that was written so could not be read any more."""
    x = tpc.ones(3)
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 3"):
        use(x)
    assert (x.tolist(), x._version) == ([1, 1, 1], 0)


@pytest.mark.parametrize("divide", [lambda x: x // 0, lambda x: x % 0, lambda x: x // tpc.tensor([1, 0, 1]), lambda x: x.fmod(0)])
def test_integer_division_by_zero(divide: Callable[[tpc.Tensor], Any]) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(tpc.arange(3))


def test_an_argument_of_a_compiled_function_is_checked_when_it_runs() -> None:
    """What it holds while the function is recorded decides nothing."""

    @tpc.compile(fullgraph=True)
    def f(x: Any, index: Any) -> Any:
        try:
            return x[index]
        except IndexError:
            return x * 0

    x = tpc.arange(3.0)
    with pytest.raises(IndexError):
        f(x, tpc.tensor([7]))
    assert f(x, tpc.tensor([2])).tolist() == [2]


def test_an_unknown_index_is_checked_when_somebody_looks() -> None:
    x = tpc.arange(3.0)
    y = x[tpc.tensor([3]) + 4]
    with pytest.raises(IndexError, match="index 7"):
        y.tolist()
