"""Tensor types: an element type and a static shape."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

NUMPY_DTYPES: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
"""Every element type of the IR, in the order of PyTorch's promotion within a category."""

_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}

MAX_ELEMENTS = 2**40
"""Shapes with more elements are refused: no machine that runs tpc holds them."""


class TensorType(NamedTuple):
    """Element type (a key of `NUMPY_DTYPES`) and shape; prints as ``f32[64,784]``."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return NUMPY_DTYPES[self.dtype].itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * NUMPY_DTYPES[self.dtype].itemsize

    @property
    def numpy_dtype(self) -> np.dtype:
        return NUMPY_DTYPES[self.dtype]


@lru_cache(maxsize=1 << 16)
def tensor_type(dtype: str, shape: tuple[int, ...]) -> TensorType:
    """The type with this element type and shape; equal calls share one object."""
    return TensorType(dtype, shape)


def dtype_name(dtype: DTypeLike) -> str:
    """IR name of a NumPy dtype; `TypeError` for one that the IR has not."""
    try:
        return _NAMES[np.dtype(dtype)]
    except KeyError:
        raise TypeError(f"can't convert np.ndarray of type {np.dtype(dtype)}: tpc has {', '.join(NUMPY_DTYPES)}") from None


def type_of(array: np.ndarray) -> TensorType:
    """Type of an array."""
    return tensor_type(dtype_name(array.dtype), array.shape)


CATEGORIES = {"bool": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def category(dtype: str) -> int:
    """0 bool, 1 integer, 2 floating, 3 complex: PyTorch's promotion categories."""
    return 0 if dtype == "bool" else CATEGORIES[dtype[0]]


def is_floating(dtype: str) -> bool:
    return dtype[0] == "f"


def is_complex(dtype: str) -> bool:
    return dtype[0] == "c"


def is_differentiable(dtype: str) -> bool:
    """Only floating and complex values carry gradients."""
    return dtype[0] in "fc"


def real_dtype(dtype: str) -> str:
    """f32 for c64, f64 for c128; every other dtype is its own."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def complex_dtype(dtype: str) -> str:
    """c128 for f64 and c128, else c64."""
    return "c128" if dtype in ("f64", "c128") else "c64"
