"""Tensors from nothing and from data: dtypes, shapes, shared memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tpc

# --- from data ---


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, tpc.int64),
        (1.5, tpc.float32),
        (True, tpc.bool),
        (1j, tpc.complex64),
        ([1, 2.5], tpc.float32),
        ([True, 2], tpc.int64),
        ([], tpc.float32),
        (range(3), tpc.int64),
        (np.float64(3), tpc.float64),
        ([np.float32(1), 2], tpc.float32),
        ([np.int32(1), 2], tpc.int64),
        (np.arange(3, dtype=np.int16), tpc.int16),
        (np.ones(2), tpc.float64),
    ],
)
def test_numbers_have_pytorchs_dtypes(data: object, dtype: tpc.dtype):
    assert tpc.tensor(data).dtype is dtype


def test_nested_sequences_give_dimensions():
    assert tpc.tensor([[1, 2, 3], (4, 5, 6)]).shape == (2, 3)
    assert tpc.tensor([[], []]).shape == (2, 0)
    assert tpc.tensor([tpc.tensor(1.0), 2.0]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ("a", TypeError, "invalid data type 'str'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        (2**70, ValueError, "Overflow when unpacking long"),
    ],
)
def test_what_is_no_tensor_is_refused(data: object, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        tpc.tensor(data)


def test_a_dtype_converts():
    assert tpc.tensor([1.9], dtype=tpc.int32).tolist() == [1]
    assert tpc.tensor([0, 2], dtype=tpc.bool).tolist() == [False, True]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
        tpc.tensor([300], dtype=tpc.uint8)


def test_tensor_copies():
    array = np.zeros(2)
    x = tpc.tensor(array)
    array[0] = 5.0
    assert x.tolist() == [0, 0]
    with pytest.warns(UserWarning, match="it is recommended to use sourceTensor.detach"):
        tpc.tensor(x)


def test_only_floating_tensors_require_gradients():
    assert tpc.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        tpc.tensor([1], requires_grad=True)


# --- shared memory ---


def test_from_numpy_shares_memory_both_ways():
    array = np.zeros((2, 2))
    x = tpc.from_numpy(array)
    array[0, 0] = 1.0
    x[1] = 5.0
    x.t()[1].add_(1)
    assert x.tolist() == array.tolist() == [[1, 1], [5, 6]]


def test_what_was_recorded_before_a_write_keeps_the_old_values():
    array = np.zeros(2)
    doubled = tpc.from_numpy(array) * 2
    array[0] = 5.0
    assert doubled.tolist() == [0, 0]


def test_transposed_and_strided_arrays_are_shared_too():
    array = np.zeros((2, 3))
    tpc.from_numpy(array.T)[2] = 1.0
    tpc.from_numpy(array[:, ::2])[0] = 2.0
    assert array.tolist() == [[2, 0, 2], [0, 0, 1]]
    assert tpc.from_numpy(array.T).stride() == (1, 3)


def test_from_numpy_takes_arrays_it_can_share():
    with pytest.raises(TypeError, match=r"expected np\.ndarray"):
        tpc.from_numpy([1])
    with pytest.raises(ValueError, match="At least one stride in the given numpy array is negative"):
        tpc.from_numpy(np.ones(3)[::-1])
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type numpy\.str_"):
        tpc.from_numpy(np.array(["a"]))


def test_as_tensor_copies_only_where_it_must():
    x, array = tpc.ones(2), np.zeros(2)
    assert tpc.as_tensor(x) is x
    tpc.as_tensor(array)[0] = 1.0
    tpc.as_tensor(array, dtype=tpc.float32)[1] = 1.0
    assert array.tolist() == [1, 0]


def test_asarray_can_be_told_to_copy_or_not():
    array = np.zeros(2)
    tpc.asarray(array, copy=True)[0] = 1.0
    tpc.asarray(array, copy=False)[1] = 1.0
    assert array.tolist() == [0, 1]
    with pytest.raises(ValueError, match="can't alias"):
        tpc.asarray([1.0], copy=False)


# --- one value ---


def test_zeros_ones_and_full():
    assert tpc.zeros(2, 3).tolist() == tpc.zeros((2, 3)).tolist() == tpc.zeros(size=(2, 3)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert tpc.ones(2, dtype=tpc.int64).tolist() == [1, 1]
    assert tpc.full((2,), 7).dtype is tpc.int64
    assert tpc.full((2,), 0.5).tolist() == [0.5, 0.5]
    assert tpc.full((2,), True).dtype is tpc.bool
    assert tpc.empty(2).tolist() == [0, 0]
    assert tpc.zeros(2, requires_grad=True).requires_grad


def test_sizes_are_checked():
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        tpc.zeros(2, -1)
    with pytest.raises(TypeError, match="argument 'size' must be tuple of ints, not float"):
        tpc.zeros(2.5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        tpc.zeros(2, color="red")
    with pytest.raises(RuntimeError, match="no device 'cuda'"):
        tpc.zeros(2, device="cuda")


def test_like_and_new_take_shape_or_dtype_from_a_tensor():
    x = tpc.ones(2, 3, dtype=tpc.float64)
    assert tpc.zeros_like(x).dtype is tpc.float64
    assert tpc.full_like(x, 2).tolist() == [[2, 2, 2], [2, 2, 2]]
    assert tpc.ones_like(x, dtype=tpc.int32).dtype is tpc.int32
    assert x.new_zeros(4).dtype is x.new_tensor([1]).dtype is x.new_full((2,), 1).dtype is tpc.float64


def test_out_receives_the_result():
    x = tpc.ones(2)
    assert tpc.zeros(2, out=x) is x
    assert x.tolist() == [0, 0]


# --- sequences ---


def test_arange():
    assert tpc.arange(3).tolist() == [0, 1, 2]
    assert tpc.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert tpc.arange(3, 0, -1).tolist() == [3, 2, 1]
    assert tpc.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert tpc.arange(3.0).dtype is tpc.float32
    assert tpc.arange(3, dtype=tpc.float64).dtype is tpc.float64
    with pytest.raises(RuntimeError, match="upper bound and lower bound inconsistent with step sign"):
        tpc.arange(3, 0)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        tpc.arange(0, 1, 0)


def test_linspace_and_logspace():
    assert tpc.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert tpc.linspace(3, 9, 1).tolist() == [3]
    assert tpc.logspace(0, 3, 4, base=2).tolist() == [1, 2, 4, 8]
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        tpc.linspace(0, 1, -1)


def test_eye_and_triangle_indices():
    assert tpc.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert tpc.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert tpc.triu_indices(2, 2, 1).tolist() == [[0], [1]]


def test_complex_puts_two_tensors_together():
    x, y = tpc.ones(2).requires_grad_(), tpc.ones(2).requires_grad_()
    z = tpc.complex(x, y)
    assert z.tolist() == [1 + 1j, 1 + 1j]
    assert z.dtype is tpc.complex64
    (z * z.conj()).real.sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [2, 2]


def test_nothing_warns_without_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tpc.tensor(1e300).tolist()
        tpc.full((2,), float("inf")).tolist()
        tpc.from_numpy(np.ones(2)).tolist()
