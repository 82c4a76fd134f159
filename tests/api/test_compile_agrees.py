"""Programs on which compiled and deferred calls once differed. Each is run both ways and everything in sight compared."""

from __future__ import annotations

from typing import Any

import pytest

import tpc
from tests.api.agreement import both, parameter


def test_a_written_input_keeps_its_old_values_for_backward() -> None:
    """Backward compares the input anew, whose memory the call had been allowed to overwrite."""

    def make(compile: Any) -> list[Any]:
        x = parameter()

        @compile
        def f(x: Any) -> Any:
            with tpc.no_grad():
                x.neg_()
            return tpc.where(x > 0, x, x * 2)

        y = f(x)
        y.sum().backward()
        return [x, y, x.grad]

    both(make)


def test_an_error_behind_a_guard_leaves_arguments_alone() -> None:
    """The function was run again in deferred mode, which had written half of its effects when it raised too."""

    @tpc.compile
    def f(x: Any, index: Any) -> Any:
        x.add_(x.sum().item())
        return x[index]

    x, index = tpc.ones(3), tpc.tensor([7])
    with pytest.raises(IndexError):
        f(x, index)
    assert x.tolist() == [1, 1, 1]
    assert f(x, tpc.tensor([1])).tolist() == [4]


def test_the_same_result_twice_is_one_tensor() -> None:
    @tpc.compile
    def f(x: Any) -> Any:
        y = x * 2
        return y, y

    a, b = f(parameter())
    assert a is b


def test_requires_grad_set_inside() -> None:
    def make(compile: Any) -> list[Any]:
        x = tpc.ones(3)

        @compile
        def f(x: Any) -> Any:
            x.requires_grad_()
            return x * 3

        y = f(x)
        y.sum().backward()
        return [x, y, x.grad]

    both(make)


def test_a_tensor_from_outside_that_comes_to_require_grad() -> None:
    """Later calls ran the program that knew it as a constant."""

    def make(compile: Any) -> list[Any]:
        w = tpc.ones(3)
        f = compile(lambda x: x * w)
        first = f(parameter())
        w.requires_grad_()
        second = f(tpc.ones(3))
        second.sum().backward()
        return [first, second, w.grad]

    both(make)


def test_a_tensor_from_outside_that_gets_a_history() -> None:
    def make(compile: Any) -> list[Any]:
        w, x = tpc.ones(3), parameter()

        @compile
        def f() -> None:
            w.mul_(x)

        f()
        f()
        w.sum().backward()
        return [w, x.grad]

    both(make)


def test_every_write_counts() -> None:
    """Versions of arguments that are views, and of memory that is written and keeps its value."""
    base, plain = tpc.zeros(2, 3), tpc.ones(3)

    @tpc.compile
    def f(part: Any, plain: Any) -> None:
        part.add_(1)
        part.add_(1)
        plain.copy_(plain)

    f(base[0], plain)
    assert (base._version, plain._version) == (2, 1)


def test_backward_from_a_part_of_the_results() -> None:
    """Asked for later, its programs took the versions after the call for those before it."""

    def make(compile: Any) -> list[Any]:
        x, y = parameter(), tpc.ones(3)

        @compile
        def f(y: Any) -> Any:
            y.neg_()
            return y * x, y + x

        a, b = f(y)
        a.sum().backward()
        return [a, b, x.grad]

    both(make)


def test_only_what_was_saved_must_not_be_written() -> None:
    """exp saves its result: its input may be written, whatever the compiled backward reads."""

    def make(compile: Any) -> list[Any]:
        x = parameter()
        y = compile(lambda: tpc.exp(x))()
        with tpc.no_grad():
            x.zero_()
        y.sum().backward()
        return [x.grad]

    both(make)


def test_what_was_saved_must_not_be_written() -> None:
    x = parameter()
    y = tpc.compile(lambda: tpc.sin(x))()
    with tpc.no_grad():
        x.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_second_derivatives_have_a_history_only_where_needed() -> None:
    def make(compile: Any) -> list[Any]:
        x = parameter()
        y = compile(lambda: x[1:])()
        return list(tpc.autograd.grad(y.sum(), x, create_graph=True))

    both(make)


def test_results_seen_by_numpy_may_be_written() -> None:
    """The array that NumPy saw was also what backward had kept (2 / x, which the derivative computes again)."""

    def make(compile: Any) -> list[Any]:
        x = parameter()
        y = compile(lambda: 2 / x)()
        y.detach().numpy()
        y.add_(1)
        y.sum().backward()
        return [y, x.grad]

    both(make)


@pytest.mark.filterwarnings("ignore:f runs in deferred mode")
def test_hooks_put_on_tensors_from_outside() -> None:
    """The hook stayed from the recording on, once, whatever the calls."""

    def make(compile: Any) -> list[Any]:
        w = parameter()

        @compile
        def f() -> Any:
            w.register_hook(lambda g: g * 2)
            return w * 3

        f()
        f().sum().backward()
        return [w.grad]

    both(make)


def test_a_hook_that_is_removed_again_is_recorded() -> None:
    w = parameter()

    @tpc.compile(fullgraph=True)
    def f() -> None:
        handle = w.register_hook(lambda g: g * 2)
        (w * 3).sum().backward()
        handle.remove()

    f()
    f()
    assert w.grad is not None
    assert w.grad.tolist() == [12, 12, 12]
    (w * 1).sum().backward()
    assert w.grad.tolist() == [13, 13, 13]


def test_a_result_whose_history_was_used_up_inside() -> None:
    """Its node led nowhere, so that `grad` found no way to the leaf and gave None."""
    w = parameter()

    @tpc.compile
    def f() -> Any:
        y = w.tanh()
        y.sum().backward()
        return y

    with pytest.raises(RuntimeError, match="a second time"):
        tpc.autograd.grad(f().sum(), w, allow_unused=True)


def test_a_leaf_that_the_function_makes() -> None:
    """Gradients of other results did not reach it."""

    def make(compile: Any) -> list[Any]:
        @compile
        def f(x: Any) -> Any:
            w = (x + 1).requires_grad_()
            return w, (w * x).sum()

        w, y = f(tpc.arange(3.0))
        y.backward()
        w.sum().backward()
        return [w, w.grad]

    both(make)


def test_the_added_matrix_must_fit_the_product() -> None:
    with pytest.raises(RuntimeError, match="expanded size"):
        tpc.addmm(tpc.ones(1, 3), tpc.ones(1, 2), tpc.ones(2, 1))


def test_a_leaf_made_inside_brings_its_gradient() -> None:
    def make(compile: Any) -> list[Any]:
        @compile
        def f(x: Any) -> Any:
            w = (x + 1).requires_grad_()
            (w * w).sum().backward()
            return w

        w = f(tpc.arange(3.0))
        return [w, w.grad]

    both(make)


def test_an_empty_gradient_that_is_emptied() -> None:
    """Nothing had changed while the function was recorded, and nothing changed in later calls."""

    def make(compile: Any) -> list[Any]:
        x = parameter()

        @compile
        def f() -> None:
            x.grad = None

        f()
        x.sum().backward()
        f()
        return [x.grad]

    both(make)
