"""Dimension arguments: negative ones wrapped, ranges checked with PyTorch's errors, NumPy's spellings taken."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any


def one_dim(dim: Any, rank: int) -> int:
    """A dimension as 0 <= dim < rank; a 0-d tensor counts as having one."""
    d: int = dim if dim.__class__ is int else _integer(dim)
    size = rank or 1
    if not -size <= d < size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})")
    return d % size


def _integer(dim: Any) -> int:
    if isinstance(dim, bool):
        raise TypeError("a dimension must be an int, not bool")
    try:
        return dim.__index__()  # type: ignore[no-any-return]
    except AttributeError:
        raise TypeError(f"a dimension must be an int, not {type(dim).__name__}") from None


def some_dims(dim: Any, rank: int) -> tuple[int, ...]:
    """Sorted dimensions; all of them for None and for an empty sequence. `RuntimeError` for repeated ones."""
    if dim is None:
        return tuple(range(rank or 1))
    if not isinstance(dim, (tuple, list)):
        return (one_dim(dim, rank),)
    if not dim:
        return tuple(range(rank or 1))
    dims = [one_dim(d, rank) for d in dim]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(sorted(dims))


def numpy_spelling(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with `axis` and `keepdims` understood as `dim` and `keepdim`."""

    @functools.wraps(function)
    def spelled(*args: Any, **options: Any) -> Any:
        if options:
            if "axis" in options:
                options["dim"] = options.pop("axis")
            if "keepdims" in options:
                options["keepdim"] = options.pop("keepdims")
        return function(*args, **options)

    return spelled


def kept_shape(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """The shape with the given dimensions of size 1."""
    return tuple([1 if i in dims else n for i, n in enumerate(shape)])
