"""Views in compiled functions: programs on which compiled and deferred calls once differed."""

from __future__ import annotations

from typing import Any

import pytest

import tpc
from tests.api.agreement import both, parameter


def test_a_view_of_a_leaf_is_not_written() -> None:
    @tpc.compile
    def f(x: Any) -> Any:
        return x.mul_(2)

    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        f(parameter()[:2])


def test_a_view_of_a_view_argument() -> None:
    def make(compile: Any) -> list[Any]:
        base = tpc.arange(6).reshape(2, 3).float()
        y = compile(lambda x: x[1:])(base[1])
        y.fill_(9)
        return [base, y]

    both(make)


@pytest.mark.filterwarnings("ignore:f runs in deferred mode")
def test_a_view_argument_whose_base_has_a_history_is_written() -> None:
    def make(compile: Any) -> list[Any]:
        x = parameter()
        base = x * 2

        @compile
        def f(part: Any) -> None:
            part.mul_(3)

        f(base[:2])
        base.sum().backward()
        return [base, x.grad]

    both(make)


def test_an_unsqueezed_tensor_from_outside() -> None:
    """Its new shape was put on while the function was recorded, and again with each failed try."""
    w = tpc.ones(3)

    @tpc.compile
    def f() -> None:
        w.unsqueeze_(0)

    with pytest.warns(UserWarning, match="deferred mode"):
        f()
    assert w.shape == (1, 3)
    f()
    assert w.shape == (1, 1, 3)


def test_a_tensor_from_outside_in_a_new_shape() -> None:
    def make(compile: Any) -> list[Any]:
        w = tpc.arange(3.0)
        f = compile(lambda: w.sum(0))
        first = f()
        w.unsqueeze_(0)
        second = f()
        w.data = tpc.full((2, 3), 5.0)
        return [first, second, f()]

    both(make)


def test_results_that_are_views_of_each_other() -> None:
    """A write through one of them changed the values of both, and the history of one."""

    def make(compile: Any) -> list[Any]:
        x = parameter()

        @compile
        def f() -> Any:
            y = x * 2
            return y, y[1:]

        y, part = f()
        part.mul_(3)
        y.sum().backward()
        return [y, part, x.grad]

    both(make)


def test_views_of_a_tensor_that_is_not_returned() -> None:
    def make(compile: Any) -> list[Any]:
        x = parameter()

        @compile
        def f() -> Any:
            y = x * 2
            return y[1:], y[:2]

        a, b = f()
        a.mul_(3)
        (a.sum() + b.sum()).backward()
        return [a, b, x.grad]

    both(make)


def test_a_view_that_was_read_and_unsqueezed() -> None:
    """What it had read in its old shape was kept for the new one."""

    def make(compile: Any) -> list[Any]:
        @compile
        def f(x: Any) -> Any:
            part = x.view(3, 1)
            total = part.sum()
            part.unsqueeze_(0)
            return part * 2, total

        return list(f(tpc.arange(3.0)))

    both(make)


def test_a_view_made_without_recording_of_a_view_argument() -> None:
    """It counts like its base, as in PyTorch; what stands in for the argument hid that."""

    def make(compile: Any) -> list[Any]:
        @compile
        def f(x: Any) -> Any:
            with tpc.no_grad():
                return x[None]

        return [f(parameter()[:2])]

    both(make)


def test_a_view_argument_whose_memory_is_not_in_order() -> None:
    """Flattening it makes a copy; what stood in for it was in order, and was written."""

    def make(compile: Any) -> list[Any]:
        base = tpc.arange(6.0).reshape(2, 3)

        @compile
        def f(x: Any) -> Any:
            x.flatten().zero_()
            return x[0].mul_(2)

        return [f(base.t()), base]

    both(make)


def test_a_view_of_an_argument_that_gets_a_history() -> None:
    """The result was made before the argument had its new history, and seemed to be out of date."""

    def make(compile: Any) -> list[Any]:
        x, y = parameter(), tpc.zeros(2, 3)

        @compile
        def f(y: Any) -> Any:
            y.add_(x)
            return y.split(1)[1]

        part = f(y)
        part.sum().backward()
        return [y, part, x.grad]

    both(make)
