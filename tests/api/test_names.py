"""Names that PyTorch files use beside the operators: old constructors, storages, dtypes, decorators; and what is said of missing ones."""

from __future__ import annotations

import math
import pickle

import pytest

import tpc


def test_old_constructors():
    assert tpc.Tensor(2, 3).shape == (2, 3)
    assert tpc.Tensor(2, 1, 1, 1, 1, 2).shape == (2, 1, 1, 1, 1, 2)
    assert (tpc.Tensor([1, 2]).dtype, tpc.Tensor().shape) == (tpc.float32, (0,))
    assert tpc.LongTensor([1, 2]).dtype is tpc.int64
    assert isinstance(tpc.ones(2), tpc.FloatTensor)
    assert not isinstance(tpc.ones(2), tpc.DoubleTensor)
    assert tpc.ones(2).type(tpc.DoubleTensor).type() == "torch.DoubleTensor"
    assert tpc.typename(tpc.ones(2, dtype=tpc.int64)) == "torch.LongTensor"


def test_storages_tell_shared_memory():
    x = tpc.arange(6.0).reshape(2, 3)
    assert x[1].storage().data_ptr() == x.untyped_storage().data_ptr() != x.clone().storage().data_ptr()
    assert (len(x[1].storage()), x.untyped_storage().nbytes()) == (6, 24)
    assert x.t().storage().tolist() == [0, 1, 2, 3, 4, 5]


def test_python_functions_on_elements():
    x = tpc.tensor([1.0, 2.0])
    assert x.apply_(lambda v: v * 10) is x
    assert x.map_(tpc.tensor(1.0), lambda a, b: a + b).tolist() == [11, 21]
    with pytest.raises(TypeError, match="requires grad"):
        x.clone().requires_grad_().apply_(abs)


def test_resizing_keeps_elements_in_order():
    x = tpc.arange(4.0)
    assert x.resize_(3).tolist() == [0, 1, 2]
    assert x.resize_((2, 2)).shape == (2, 2)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        tpc.ones(2, requires_grad=True).resize_(3)


def test_an_out_argument_is_brought_to_the_shape_of_the_result():
    out = tpc.Tensor()
    assert tpc.add(tpc.ones(2), 1, out=out) is out
    assert out.tolist() == [2, 2]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        tpc.exp(tpc.zeros(2), out=tpc.ones(3))


def test_writing_where_elements_share_memory():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        tpc.ones(3, 1).expand(3, 4)[0] = 2.0


def test_dtypes_that_numpy_has_not_can_be_named_but_not_used():
    assert tpc.ones(2).dtype != tpc.bfloat16
    assert (tpc.finfo(tpc.float8_e4m3fn).max, tpc.finfo(tpc.bfloat16).eps) == (448, 0.0078125)
    assert pickle.loads(pickle.dumps(tpc.bfloat16)) is tpc.bfloat16
    for use in (lambda: tpc.ones(2, dtype=tpc.bfloat16), lambda: tpc.ones(2).to(tpc.float8_e5m2)):
        with pytest.raises(TypeError, match="use float16 or float32"):
            use()


def test_questions_about_dtypes():
    assert tpc.promote_types(tpc.int32, tpc.float16) is tpc.float16
    assert tpc.result_type(tpc.tensor([1], dtype=tpc.int8), 2.5) is tpc.float32
    assert (tpc.can_cast(tpc.float64, tpc.float16), tpc.can_cast(tpc.float32, tpc.int64)) == (True, False)
    with pytest.raises(TypeError, match="requires a floating point input type"):
        tpc.finfo(tpc.int32)


def test_decorators_of_other_compilers_leave_functions_as_they_are():
    def double(x):
        return 2 * x

    assert tpc.jit.script(double) is tpc.jit.ignore(double) is tpc.compiler.disable()(double) is double
    assert tpc.jit.ignore(drop=True)(double) is double
    assert tpc.jit.trace(double, tpc.ones(1))(tpc.ones(2)).tolist() == [2, 2]
    assert not tpc.jit.is_scripting()
    assert not tpc.distributed.is_initialized()
    tpc.backends.cudnn.benchmark = True


def test_numbers_are_preferred_to_nan():
    nan = math.nan
    x, y = tpc.tensor([1.0, nan, nan, 2.0]), tpc.tensor([nan, 3.0, nan, 5.0])
    assert str(tpc.fmax(x, y).tolist()) == "[1.0, 3.0, nan, 5.0]"
    assert str(x.fmin(y).tolist()) == "[1.0, 3.0, nan, 2.0]"
    assert tpc.view_as_complex(tpc.view_as_real(tpc.tensor([1 + 2j]))).tolist() == [1 + 2j]


def test_assert_close():
    tpc.testing.assert_close(tpc.tensor([1.0]), tpc.tensor([1.0 + 1e-6]))
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        tpc.testing.assert_close(tpc.tensor([1.0, 2.0]), tpc.tensor([1.0, 2.1]))
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        tpc.testing.assert_close(tpc.tensor([1]), tpc.tensor([1.0]))


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (lambda: tpc.sofmax, "module 'tpc' has no attribute 'sofmax'; the nearest it has is 'softmax'"),
        (lambda: tpc.mps, "no devices, there is one device, the CPU"),
        (lambda: tpc.nn.functional.relux, "module 'tpc.nn.functional' has no attribute 'relux'; the nearest it has is 'relu"),
        (lambda: tpc.ones(1).cumsumm, "'Tensor' object has no attribute 'cumsumm'; the nearest it has is 'cumsum'"),
        (lambda: tpc.ones(1).smm, "no sparse layouts, tensors are dense"),
    ],
)
def test_missing_names_say_why_or_what_is_nearest(look, said: str):
    with pytest.raises(AttributeError) as error:
        look()
    assert said in str(error.value)
