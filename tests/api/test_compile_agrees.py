"""Programs on which compiled and deferred calls once differed. Each is run both ways and everything in sight compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpc


def both(make: Callable[[Any], list[Any]]) -> None:
    """`make(compile)` returns tensors, which must be the same whether `compile` compiles or not. On NumPy, to the last bit."""
    expected = make(lambda f: f)
    got = make(functools.partial(tpc.compile, backend="numpy"))
    assert len(expected) == len(got)
    for a, b in zip(expected, got, strict=True):
        if a is None or b is None:
            assert a is b
            continue
        assert (a.requires_grad, a.is_leaf, a.shape) == (b.requires_grad, b.is_leaf, b.shape)
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def parameter(*values: float) -> tpc.Tensor:
    return tpc.tensor(values or (1.0, -2.0, 3.0), requires_grad=True)


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


def test_the_added_matrix_must_fit_the_product() -> None:
    with pytest.raises(RuntimeError, match="expanded size"):
        tpc.addmm(tpc.ones(1, 3), tpc.ones(1, 2), tpc.ones(2, 1))


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
