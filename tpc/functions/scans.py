"""Running extremes and sums of exponentials along a dimension, and what is summed up between places on an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.arranging import cumsum
from tpc.functions.derived import logaddexp
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import stored
from tpc.functions.factories import arange
from tpc.functions.joining import cat
from tpc.functions.ordering import pair
from tpc.functions.reduction import Pair, picked, sum, with_dims
from tpc.functions.shape import broadcast_to, reshape, reshaped, sliced
from tpc.ir.types import is_differentiable
from tpc.tensor import Tensor


def _doubling(parts: list[Tensor], dim: int, combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]]) -> list[Tensor]:
    """Each place combined with all before it, in log2(n) steps over distances 1, 2, 4, ...; `combine` takes (earlier, later)."""
    size = parts[0]._type.shape[dim]
    distance = 1
    while distance < size:
        earlier = [sliced(x, dim, 0, size - distance) for x in parts]
        later = [sliced(x, dim, distance, size) for x in parts]
        done = [sliced(x, dim, 0, distance) for x in parts]
        parts = [cat((x, y), dim) for x, y in zip(done, combine(earlier, later), strict=True)]
        distance *= 2
    return parts


def places(x: Tensor, dim: int) -> Tensor:
    """Each element's index along `dim`."""
    size = x._type.shape[dim]
    return broadcast_to(reshaped(arange(size), (size, *(1,) * (x._type.rank - 1 - dim))), x._type.shape)


def _running(name: str, better: Callable[[Tensor, Tensor], Tensor], which: str) -> Callable[..., Pair]:
    def take(earlier: list[Tensor], later: list[Tensor]) -> list[Tensor]:
        (a, i), (b, j) = earlier, later
        new = better(b, a)
        if is_differentiable(b._type.dtype):
            new = e.logical_or(new, e.isnan(b))
        return [e.where(new, b, a), e.where(new, j, i)]

    def function(input: Tensor, dim: int, *, out: Any = None) -> Pair:
        at, x = one_dim(dim, input._type.rank), with_dims(input)
        _, indices = _doubling([x.detach(), places(x, at)], at, take)
        values = picked(x, indices, at)
        if not input._type.shape:
            values, indices = reshape(values, ()), reshape(indices, ())
        return pair(values, indices, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"(values, indices) of the {which} element so far along `dim`, the last of equal ones; NaN stays."
    return function


cummax = _running("cummax", e.ge, "largest")
cummin = _running("cummin", e.le, "smallest")


def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the sums of exponentials up to each element, without overflow."""
    at, x = one_dim(dim, input._type.rank), with_dims(input)
    if not is_differentiable(input._type.dtype):
        raise NotImplementedError(f"logcumsumexp is for floating tensors, not {input.dtype}")
    (found,) = _doubling([x], at, lambda earlier, later: [logaddexp(earlier[0], later[0])])
    return stored(found if input._type.shape else reshape(found, ()), out)


# --- areas under sampled curves -----------------------------------------------------------------


def _areas(function: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    """The trapezium between each two neighbours."""
    at = one_dim(dim, y._type.rank)
    if not y._type.shape:
        raise IndexError(f"{function}: expected at least one dimension")
    size = y._type.shape[at]
    width: Any = 1 if dx is None else dx
    if x is not None:
        if dx is not None:
            raise TypeError(f"{function}() takes the places `x` or the spacing `dx`, not both")
        along = at if x._type.rank == y._type.rank else x._type.rank - 1
        if x._type.rank == 1:
            width = reshaped(_steps(x, 0), (max(size - 1, 0), *(1,) * (y._type.rank - 1 - at))) if x._type.shape[0] == size else None
        else:
            width = _steps(x, along)
        if width is None:
            raise RuntimeError(f"{function}(): There must be one `x` value for each sample point")
    both = e.add(sliced(y, at, min(1, size), size), sliced(y, at, 0, max(size - 1, 0)))
    return e.div(e.mul(both, width), 2), at


def _steps(x: Tensor, dim: int) -> Tensor:
    size = x._type.shape[dim]
    return e.sub(sliced(x, dim, min(1, size), size), sliced(x, dim, 0, max(size - 1, 0)))


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Area under the curve through `y`, at places `x` or `dx` (1) apart, by the trapezoidal rule."""
    areas, at = _areas("trapezoid", y, x, dx, dim)
    return sum(areas, at)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The area under the curve up to each place but the first."""
    areas, at = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, at)


trapz = trapezoid
