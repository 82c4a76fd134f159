"""Tensors from nothing, from Python data and from NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.dtype import default_dtype, get_default_dtype, ir_dtype, scalar_dtype
from tpc.ir.errors import TpcError
from tpc.ir.ops import shape as ops
from tpc.ir.types import MAX_ELEMENTS, NUMPY_DTYPES, TensorType, is_floating, tensor_type
from tpc.recording import constant, emit
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor, from_array


def filled(type: TensorType, value: Any) -> Tensor:
    """A tensor of one value: a broadcast constant, which takes no memory until it is written or looked at."""
    scalar = constant(value, type.dtype)
    if not type.shape:
        return Tensor(Storage(emit(_copy(), (scalar,), {}, type)), type)
    return Tensor(Storage(emit(ops.broadcast_to, (scalar,), {"shape": type.shape}, type)), type)


def _copy() -> Any:
    from tpc.ir.ops.elementwise import copy

    return copy


def zeros_of(type: TensorType) -> Tensor:
    """Zeros of a type."""
    return filled(type, 0)


def ones_of(type: TensorType) -> Tensor:
    """Ones of a type."""
    return filled(type, 1)


def checked_shape(size: Sequence[Any]) -> tuple[int, ...]:
    """A shape from `zeros(2, 3)` or `zeros((2, 3))`; `RuntimeError` for negative and for absurd sizes."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    shape = tuple([n if n.__class__ is int else _dimension(n) for n in size])
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    if math.prod(shape) > MAX_ELEMENTS:
        raise RuntimeError(f"a tensor of shape {list(shape)} has more elements than fit any memory")
    return shape


def _dimension(n: Any) -> int:
    if isinstance(n, Tensor):
        return int(n.item())  # type: ignore[attr-defined]
    try:
        return n.__index__()  # type: ignore[no-any-return]
    except AttributeError:
        raise TypeError(f"a size must be an int, not {type(n).__name__}") from None


def _made(type: TensorType, value: Any, requires_grad: bool) -> Tensor:
    return filled(type, value).requires_grad_(requires_grad) if requires_grad else filled(type, value)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, out: Tensor | None = None, layout: Any = None) -> Tensor:
    """Zeros of a shape."""
    return _made(tensor_type(ir_dtype(dtype) if dtype is not None else default_dtype(), checked_shape(size)), 0, requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, out: Tensor | None = None, layout: Any = None) -> Tensor:
    """Ones of a shape."""
    return _made(tensor_type(ir_dtype(dtype) if dtype is not None else default_dtype(), checked_shape(size)), 1, requires_grad)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor from numbers, nested sequences, arrays or tensors; always a copy.

    Python floats get the default dtype, ints int64; NumPy data keeps its dtype.
    """
    array = _array_of(data, ir_dtype(dtype) if dtype is not None else None)
    made = from_array(array)
    return made.requires_grad_(True) if requires_grad else made


def _array_of(data: Any, dtype: str | None) -> np.ndarray:
    if isinstance(data, Tensor):
        data = data._array()
    if isinstance(data, (np.ndarray, np.generic)):
        return np.array(data, dtype=NUMPY_DTYPES[dtype] if dtype else None, order="C", copy=True)
    data = _plain(data)
    array = np.array(data)
    if dtype is None:
        if array.dtype.kind == "f" or (array.dtype.kind not in "biuc" and array.size == 0):
            dtype = default_dtype()
        elif array.dtype.kind == "c":
            dtype = scalar_dtype(1j)
        elif array.dtype.kind not in "biu":
            raise TypeError(f"new(): data must be numbers or (nested) sequences of numbers, got {type(data).__name__} of {array.dtype}")
        else:
            dtype = scalar_dtype(array.flat[0]) if array.size else default_dtype()
    return np.array(data, dtype=NUMPY_DTYPES[dtype])


def _plain(data: Any) -> Any:
    """Nested sequences with tensors inside become nested sequences of arrays."""
    if isinstance(data, Tensor):
        return data._array()
    if isinstance(data, (list, tuple)):
        return [_plain(x) for x in data]
    return data


__all__ = ["STATE", "TpcError", "get_default_dtype", "is_floating", "ones", "tensor", "zeros"]
