"""What functions of matrices check first, in PyTorch's words."""

from __future__ import annotations

from typing import Any

from tpc.functions.elementwise import stored
from tpc.ir.errors import DtypeError
from tpc.ir.types import is_differentiable
from tpc.tensor import Tensor


def spelled(dtype: str) -> str:
    """PyTorch's name of a scalar type: Double."""
    from tpc.conversions import TYPE_NAMES

    return next(name for name, ir in TYPE_NAMES.items() if ir == dtype)


def matrices(name: str, a: Any, argument: str = "A") -> Tensor:
    """A floating or complex tensor of at least two dimensions; half precision is refused."""
    if not isinstance(a, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(a).__name__}")
    if a._type.rank < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    if not is_differentiable(a._type.dtype):
        raise DtypeError(f"{name}: Expected a floating point or complex tensor as input. Got {spelled(a._type.dtype)}")
    if a._type.dtype == "f16":
        raise DtypeError(f"{name}: Low precision dtypes not supported. Got Half")
    return a


def squares(name: str, a: Any, argument: str = "A") -> Tensor:
    """The same of square matrices."""
    matrices(name, a, argument)
    rows, columns = a._type.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices")
    return a  # type: ignore[no-any-return]


def same_dtypes(name: str, a: Tensor, b: Any) -> None:
    """Refuses two operands of different dtypes."""
    if not isinstance(b, Tensor):
        raise TypeError(f"{name}(): argument 'B' must be Tensor, not {type(b).__name__}")
    if a._type.dtype != b._type.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {spelled(a._type.dtype)} and B of type "
            f"{spelled(b._type.dtype)} instead"
        )


def fitting(name: str, a: Tensor, b: Tensor, left: bool) -> None:
    """Refuses sizes for which the equation has no meaning."""
    (n, m), (rows, columns) = a._type.shape[-2:], b._type.shape[-2:]
    if n != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {equation} ({n}x{m} and {rows}x{columns})")


def all_stored(results: Any, out: Any) -> Any:
    """A named tuple, written into the tensors `out` where the user gave them."""
    return results if out is None else type(results)(*[stored(x, place) for x, place in zip(results, out, strict=True)])
