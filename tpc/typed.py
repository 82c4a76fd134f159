"""What a tensor's type says."""

from __future__ import annotations

from typing import Any

from tpc.dtype import BY_IR, dtype
from tpc.ir.types import TensorType
from tpc.size import Size


class Typed:
    """Something with a `TensorType`: shape, dtype and what follows from them."""

    __slots__ = ()

    _type: TensorType

    @property
    def shape(self) -> Size:
        """The shape."""
        return Size(self._type.shape)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return BY_IR[self._type.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._type.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._type.shape)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size; `IndexError` for a dimension that there is not."""
        if dim is None:
            return self.shape
        shape = self._type.shape
        if not -len(shape) <= dim < len(shape):
            raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got {dim})")
        return shape[dim]

    def numel(self) -> int:
        """The number of elements."""
        return self._type.numel

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._type.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._type.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._type.nbytes

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating."""
        return self._type.dtype[0] == "f"

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._type.dtype[0] == "c"
