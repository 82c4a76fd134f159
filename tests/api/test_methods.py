"""What a tensor can do by itself: operators, in-place forms, conversions, printing, NumPy's functions, copies."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import tpc
from tpc.device import device
from tpc.functions.catalogue import public


def t(*values: object, grad: bool = False) -> tpc.Tensor:
    return tpc.tensor(values, requires_grad=grad)


# --- operators ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (operator.add, 9), (operator.sub, 5), (operator.mul, 14), (operator.truediv, 3.5), (operator.floordiv, 3), (operator.mod, 1),
        (operator.pow, 49), (operator.and_, 2), (operator.or_, 7), (operator.xor, 5), (operator.lshift, 28), (operator.rshift, 1),
        (operator.eq, False), (operator.ne, True), (operator.lt, False), (operator.le, False), (operator.gt, True), (operator.ge, True),
    ],
)  # fmt: skip
def test_binary_operators_take_tensors_numbers_and_arrays_on_both_sides(op: Callable, expected: object):
    seven, two = tpc.tensor([7]), tpc.tensor([2])
    for result in (op(seven, two), op(seven, 2), op(7, two), op(seven, np.array([2])), op(np.array([7]), two), op(np.int64(7), two)):
        assert isinstance(result, tpc.Tensor)
        assert result.tolist() == [expected]


def test_unary_operators():
    x = t(-1.5, 2.0)
    assert ((-x).tolist(), (+x).tolist(), abs(x).tolist(), (~tpc.tensor([True])).tolist()) == ([1.5, -2], [-1.5, 2], [1.5, 2], [False])


def test_matrix_product_operator():
    m = t([1.0, 2.0], [3.0, 4.0])
    assert ((m @ m).tolist(), (m @ np.ones(2, np.float32)).tolist(), (np.ones(2, np.float32) @ m).tolist()) == (
        [[7, 10], [15, 22]],
        [3, 7],
        [4, 6],
    )


def test_what_is_no_number_is_left_to_the_other_side():
    with pytest.raises(TypeError, match="unsupported operand"):
        t(1.0) + "a"
    with pytest.raises(TypeError, match="not supported between"):
        t(1.0) < "a"
    assert (t(1.0) == "a", t(1.0) == None, t(1.0) != None) == (False, False, True)  # noqa: E711


def test_tensors_are_keys_by_identity():
    a, b = t(1.0), t(1.0)
    assert {a: 1, b: 2}[a] == 1
    assert a in [a]


def test_sequences():
    x = tpc.arange(6).reshape(3, 2)
    assert (len(x), [row.tolist() for row in x], 4 in x, 9 in x) == (3, [[0, 1], [2, 3], [4, 5]], True, False)
    first, *_ = x
    assert first.tolist() == [0, 1]
    for call in (len, iter):
        with pytest.raises(TypeError, match="0-d tensor"):
            call(tpc.tensor(1))
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x


# --- in place -----------------------------------------------------------------------------------


def test_in_place_forms_change_the_tensor_and_return_it():
    x = t(1.0, -2.0)
    assert x.add_(1) is x
    assert x.mul_(t(2.0, 3.0)).sub_(1).div_(2).tolist() == [1.5, -2]
    assert x.clamp_(-1, 1).neg_().tolist() == [-1, 1]
    assert x.fill_(3).zero_().tolist() == [0, 0]
    assert x.copy_(t(5)).tolist() == [5, 5]
    assert x.masked_fill_(tpc.tensor([True, False]), 0).tolist() == [0, 5]
    assert x._version == 10


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_augmented_assignment_keeps_the_object(op: str):
    x = t(6.0, 4.0)
    expected = getattr(operator, op[1:])(x.clone(), 3).tolist()
    y = getattr(operator, op)(x, 3)
    assert y is x
    assert x.tolist() == expected


def test_the_gradient_of_an_in_place_form_is_that_of_the_values_before():
    x = t(2.0, 3.0, grad=True)
    y = x * 1
    z = y.exp()
    y.mul_(y).add_(x)
    (y.sum() + 0 * z.sum()).backward()
    assert x.grad.tolist() == [5, 7]


def test_written_views_show_in_the_base_and_in_gradients():
    x = t(1.0, 2.0, 3.0, grad=True)
    y = x * 1
    y[0] = 10 * x[2]
    y[1:].mul_(2)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([30, 4, 6], [0, 2, 12])


def test_shapes_can_change_in_place():
    x = tpc.zeros(1, 2, 3)
    assert (x.squeeze_(0).shape, x.t_().shape, x.unsqueeze_(0).shape, x.transpose_(0, 2).shape) == ((2, 3), (3, 2), (1, 3, 2), (2, 3, 1))
    x.fill_(1)
    assert x.sum().item() == 6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t(1.0, grad=True).add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda: t(1.0, grad=True)[0].add_(1), "a view of a leaf Variable that requires grad"),
        (lambda: t(1).add_(1.5), "can't be cast to the desired output type"),
        (lambda: t(1.0).add_(tpc.ones(2)), r"output with shape \[1\] doesn't match the broadcast shape \[2\]"),
        (lambda: t(1.0, 2.0).fill_(t(1.0, 2.0)), "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions"),
        (lambda: t(1.0).expand(3).add_(1), "more than one element of the written-to tensor refers to a single memory location"),
        (lambda: (t(1.0, 2.0, grad=True) * 1)[0].detach_(), "Can't detach views in-place"),
    ],
)
def test_writes_that_are_refused(call: Callable[[], object], message: str):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_fill_diagonal():
    assert tpc.zeros(2, 3).fill_diagonal_(7.0).tolist() == [[7, 0, 0], [0, 7, 0]]
    assert tpc.zeros(5, 2).fill_diagonal_(1.0, wrap=True).tolist() == [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1]]
    assert tpc.zeros(2, 2, 2).fill_diagonal_(1.0).sum().item() == 2


# --- numbers ------------------------------------------------------------------------------------


def test_one_element_is_a_number():
    x = tpc.tensor([2.5])
    assert (x.item(), float(x), int(x), complex(x), bool(x), bool(tpc.tensor(0))) == (2.5, 2.5, 2, 2.5 + 0j, True, False)
    assert [1, 2, 3][tpc.tensor(1)] == 2
    assert tpc.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert (f"{tpc.tensor(1.23456):.2f}", f"{tpc.tensor(3)}") == ("1.23", "3")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (bool, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (float, ValueError, "only one element tensors can be converted to Python scalars"),
        (int, ValueError, "only one element tensors"),
        (tpc.Tensor.item, RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (operator.index, TypeError, "only integer tensors of a single element can be converted to an index"),
        ("{:.2f}".format, TypeError, "unsupported format string"),
    ],
)
def test_several_elements_are_not(call: Callable, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call(t(1.0, 2.0))


# --- arrays, dtypes, devices --------------------------------------------------------------------


def test_numpy_shares_memory():
    x = t(1.0, 2.0, 3.0)
    a, tail = x.numpy(), x[1:].numpy()
    a[0] = 7
    assert (x * 1).tolist() == [7, 2, 3]
    x.mul_(2)
    assert (a.tolist(), tail.tolist()) == ([14, 4, 6], [4, 6])
    assert np.shares_memory(a, np.asarray(x))


def test_a_recorded_value_is_of_its_moment():
    x = t(1.0)
    y = x + 1
    x.numpy()[0] = 100
    assert y.tolist() == [2]


def test_numpy_of_a_tracked_tensor():
    x = t(1.0, grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."):
        x.numpy()
    assert x.detach().numpy() == 1
    assert x.numpy(force=True) == 1
    with tpc.no_grad():
        assert x.numpy() == 1


def test_arrays_of_other_dtypes_are_copies():
    x = t(1.0, 2.0)
    assert np.array(x, dtype=np.int64).tolist() == [1, 2]
    assert np.array(x).dtype == np.float32
    assert np.from_dlpack(x).tolist() == [1, 2]


def test_conversions_between_dtypes():
    x = t(1.7, 0.0)
    assert [y.dtype for y in (x.double(), x.half(), x.long(), x.int(), x.bool(), x.byte(), x.cfloat())] == [
        tpc.float64, tpc.float16, tpc.int64, tpc.int32, tpc.bool, tpc.uint8, tpc.complex64,
    ]  # fmt: skip
    assert (x.long().tolist(), x.bool().tolist()) == ([1, 0], [True, False])
    assert x.float() is x
    assert (
        x.to(tpc.float64).dtype is x.to("cpu", tpc.float64).dtype is x.to(dtype=tpc.float64).dtype is x.to(x.double()).dtype is tpc.float64
    )
    assert x.to("cpu") is x
    assert x.to(tpc.float32, copy=True) is not x
    assert (x.type(), x.type("torch.DoubleTensor").dtype, x.type(tpc.int64).dtype) == ("torch.FloatTensor", tpc.float64, tpc.int64)
    assert x.type_as(x.double()).dtype is tpc.float64


def test_gradients_pass_through_conversions():
    x = t(1.0, 2.0, grad=True)
    (x.double() * 2).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (tpc.float32, [2, 2])


def test_there_is_one_device():
    x = t(1.0)
    assert (x.device, str(x.device), x.device == "cpu", x.is_cuda, x.cpu() is x) == (device("cpu"), "cpu", True, False, True)
    assert repr(device("cpu:0")) == "device(type='cpu', index=0)"
    for call in (x.cuda, lambda: x.to("cuda"), lambda: device("cuda:1")):
        with pytest.raises(RuntimeError, match="tpc runs on the CPU"):
            call()


def test_layout():
    x = tpc.zeros(2, 3)
    assert (x.stride(), x.t().stride(), x[1:].storage_offset(), x.t().is_contiguous()) == ((3, 1), (1, 3), 3, False)
    assert x.data_ptr() == x.view(6).data_ptr() != x.clone().data_ptr()


# --- attributes ---------------------------------------------------------------------------------


def test_transposes():
    x = tpc.arange(6).reshape(2, 3)
    assert x.T.tolist() == x.mT.tolist() == x.H.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tpc.tensor([[1j]]).mH.tolist() == [[-1j]]
    with pytest.raises(RuntimeError, match=r"tensor.H is only supported on matrices"):
        tpc.zeros(2, 2, 2).H
    with pytest.raises(RuntimeError, match=r"tensor.mT is only supported on matrices"):
        tpc.zeros(2).mT


def test_backward_of_a_tensor():
    x = t(1.0, 2.0, grad=True)
    (x * x).backward(t(1.0, 10.0))
    assert x.grad.tolist() == [2, 40]


def test_detach_in_place():
    x = t(1.0, grad=True)
    y = x * 2
    assert y.detach_() is y
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)


def test_new_tensors_from_a_tensor():
    x = tpc.ones(2, dtype=tpc.float64)
    assert (x.new_zeros(3).dtype, x.new(2, 3).shape, x.new([1, 2]).tolist()) == (tpc.float64, (2, 3), [1, 2])


# --- printing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: t(1.0, 2.0), "tensor([1., 2.])"),
        (lambda: t(1.5, -2.25), "tensor([ 1.5000, -2.2500])"),
        (lambda: t(1, 20), "tensor([ 1, 20])"),
        (lambda: tpc.tensor(3.5), "tensor(3.5000)"),
        (lambda: t(True, False), "tensor([ True, False])"),
        (lambda: t(1e-5, 1.0), "tensor([1.0000e-05, 1.0000e+00])"),
        (lambda: t(math.nan, math.inf, 1.0), "tensor([nan, inf, 1.])"),
        (lambda: t(1 + 2j), "tensor([1.+2.j])"),
        (lambda: tpc.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: tpc.zeros(1, dtype=tpc.float64), "tensor([0.], dtype=tpc.float64)"),
        (lambda: t(1.0, grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: t(1.0, grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (lambda: t([1.0, 2.0], [3.0, 4.0]), "tensor([[1., 2.],\n        [3., 4.]])"),
        (lambda: tpc.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
        (
            lambda: tpc.ones(1001, 1),
            "tensor([[1.],\n        [1.],\n        [1.],\n        ...,\n        [1.],\n        [1.],\n        [1.]])",
        ),
    ],
)
def test_print(make: Callable[[], tpc.Tensor], text: str):
    assert repr(make()) == str(make()) == text


def test_printing_inside_a_compiled_function_shows_the_values_of_the_first_call():
    seen = []

    @tpc.compile
    def double(x: tpc.Tensor) -> tpc.Tensor:
        y = x * 2
        seen.append(repr(y))
        return y

    assert (double(t(1.0)).tolist(), double(t(2.0)).tolist(), seen) == ([2], [4], ["tensor([2.])"])


# --- NumPy's functions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.exp(x), lambda x: np.add(x, 1), lambda x: np.multiply(2, x), lambda x: np.maximum(x, 2), lambda x: np.power(x, 2),
        lambda x: np.sum(x), lambda x: np.sum(x, axis=0), lambda x: np.mean(x, axis=1, keepdims=True), lambda x: np.max(x, axis=0),
        lambda x: np.var(x), lambda x: np.std(x, axis=0, ddof=1), lambda x: np.prod(x, axis=1), lambda x: np.argmax(x, axis=1),
        lambda x: np.where(x > 2, x, 0), lambda x: np.concatenate([x, x], axis=1), lambda x: np.stack([x, x]), lambda x: np.clip(x, 2, 3),
        lambda x: np.transpose(x), lambda x: np.reshape(x, (4,)), lambda x: np.expand_dims(x, 0), lambda x: np.cumsum(x, axis=0),
        lambda x: np.cumsum(x), lambda x: np.dot(x, x), lambda x: np.einsum("ij,jk->ik", x, x), lambda x: np.outer(x[0], x[1]),
        lambda x: np.linalg.norm(x), lambda x: np.linalg.norm(x, axis=1), lambda x: np.sort(x, axis=0), lambda x: np.flip(x),
        lambda x: np.roll(x, 1), lambda x: np.tile(x, 2), lambda x: np.round(x / 3, 1), lambda x: np.zeros_like(x), lambda x: np.trace(x),
        lambda x: np.isnan(x), lambda x: np.logical_not(x), lambda x: np.tensordot(x, x), lambda x: np.matmul(x, x), lambda x: np.square(x),
    ],
)  # fmt: skip
def test_numpy_functions_record(call: Callable):
    array = np.array([[1.0, 2.0], [3.0, 4.0]])
    result = call(tpc.tensor(array))
    assert isinstance(result, tpc.Tensor)
    np.testing.assert_allclose(result.numpy(), call(array))


def test_numpy_functions_are_differentiable():
    x = t(1.0, 2.0, grad=True)
    np.sum(np.square(x) * np.array([1.0, 10.0], np.float32)).backward()
    assert x.grad.tolist() == [2, 40]


def test_numpy_functions_that_ask():
    x = t(1.0, 2.0)
    assert (np.allclose(x, x), np.shape(x), np.ndim(x), np.size(x), np.array_equal(x, np.array([1, 2]))) == (True, (2,), 1, 2, True)
    np.testing.assert_allclose(x, [1, 2])


def test_arrays_take_tensors_in_place():
    a = np.zeros(2)
    a += t(1.0, 2.0)
    assert a.tolist() == [1, 2]
    with pytest.raises(TypeError, match="requires grad"):
        a += t(1.0, 2.0, grad=True)


@pytest.mark.parametrize("call", [np.linalg.svd, np.median, np.fft.fft, np.add.reduce, np.modf])
def test_other_numpy_functions_say_what_to_do(call: Callable):
    with pytest.raises(TypeError, match=r"numpy.*has no counterpart.*t.detach\(\).numpy\(\)"):
        call(t(1.0, 2.0))


# --- copies -------------------------------------------------------------------------------------


def test_deep_copies_are_leaves_with_memory_of_their_own():
    x = t(1.0, 2.0, grad=True)
    (x * x).sum().backward()
    y = copy.deepcopy([x, x])
    assert y[0] is y[1]
    with tpc.no_grad():
        x.fill_(9)
    assert (y[0].tolist(), y[0].grad.tolist(), y[0].requires_grad, y[0].is_leaf) == ([1, 2], [2, 4], True, True)
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_pickling():
    x = pickle.loads(pickle.dumps(t(1.0, 2.0, grad=True)))
    assert (x.tolist(), x.requires_grad) == ([1, 2], True)


def test_every_public_function_is_there():
    assert all(callable(f) for f in public().values())
