"""Python data as arrays: which dtype numbers get, and PyTorch's errors for what is no tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.dtype import default_dtype, promote, scalar_dtype
from tpc.ir.types import NUMPY_DTYPES, category, dtype_name, is_complex
from tpc.tensor import Tensor

_PLAIN = {bool, int, float, complex}


def array_of(data: Any, dtype: str | None) -> np.ndarray:
    """A new array from numbers, nested sequences, arrays or a tensor.

    Python floats get the default dtype, ints int64; NumPy data and tensors keep theirs.
    """
    if isinstance(data, Tensor):
        return np.array(data._array(), dtype=NUMPY_DTYPES[dtype or data._type.dtype], order="C")
    if isinstance(data, np.ndarray):
        return _from_numpy(data, dtype)
    wanted = dtype or _dtype_of(data) or default_dtype()
    numbers = data if data.__class__ in _PLAIN else _numbers(data)
    try:
        array = np.array(numbers)
    except ValueError:
        _refuse_ragged(data)
        raise
    return _converted(array, wanted)


def _from_numpy(data: np.ndarray, dtype: str | None) -> np.ndarray:
    if data.dtype.kind not in "biufc":
        raise TypeError(not_supported(data.dtype))
    with np.errstate(all="ignore"):
        return np.array(data, dtype=NUMPY_DTYPES[dtype or dtype_name(data.dtype.newbyteorder("="))], order="C")


def not_supported(dtype: np.dtype) -> str:
    return (
        f"can't convert np.ndarray of type {dtype.type.__module__}.{dtype.type.__name__}. The only supported types are: float64, float32, "
        "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
    )


def _is_sequence(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, (str, bytes))


def _dtype_of(data: Any) -> str | None:
    """The common dtype of everything in a tree of sequences; None where there is nothing."""
    if isinstance(data, Tensor):
        return data._type.dtype
    if isinstance(data, (np.generic, np.ndarray)):
        return dtype_name(data.dtype)
    if isinstance(data, (bool, int, float, complex)):
        return scalar_dtype(data)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not _is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    kinds = set(map(type, data))
    parts = [scalar_dtype(kind()) for kind in kinds] if kinds <= _PLAIN else [_dtype_of(x) for x in data]
    common: str | None = None
    for part in parts:
        common = promote(common, part)
    return common


def _numbers(data: Any) -> Any:
    """The same tree with one-element tensors as Python numbers."""
    if isinstance(data, Tensor):
        if data._type.numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data._array().item()
    if not _is_sequence(data) or isinstance(data, range):
        return data
    return data if set(map(type, data)) <= _PLAIN else [_numbers(x) for x in data]


def _refuse_ragged(data: Any, dim: int = 0) -> None:
    """`ValueError` or `TypeError` for the first sequence that has another length than its neighbours."""
    if not _is_sequence(data) or not data:
        return
    first = data[0]
    for x in data:
        if _is_sequence(first) and not _is_sequence(x):
            raise TypeError("not a sequence")
        if _is_sequence(x) and (not _is_sequence(first) or len(x) != len(first)):
            expected = len(first) if _is_sequence(first) else 0
            raise ValueError(f"expected sequence of length {expected} at dim {dim + 1} (got {len(x)})")
    for x in data:
        _refuse_ragged(x, dim + 1)


def _converted(array: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers in another dtype; `RuntimeError` where an integer does not fit."""
    if array.dtype.kind == "O" or (array.dtype.kind == "u" and array.dtype.itemsize == 8 and dtype == "i64"):
        raise ValueError("Overflow when unpacking long long")
    if array.dtype.kind == "c" and not is_complex(dtype):
        raise TypeError("must be real number, not complex")
    if category(dtype) == 1 and array.size:
        _check_range(array, dtype)
    with np.errstate(all="ignore"):
        return array.astype(NUMPY_DTYPES[dtype])


def _check_range(array: np.ndarray, dtype: str) -> None:
    info = np.iinfo(NUMPY_DTYPES[dtype])
    # Unsigned dtypes take negative numbers modulo their range, as in C.
    lowest = info.min if dtype[0] == "i" else -int(info.max)
    if not (lowest <= array.min() and array.max() <= info.max):
        raise RuntimeError(f"value cannot be converted to type {info.dtype.name} without overflow")


def checked_number(value: Any, dtype: str) -> Any:
    """A Python number that a dtype can take; complex numbers for a real one are a `RuntimeError`."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex) and not is_complex(dtype):
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow")
    return value
