"""Functions that combine elements along dimensions: sums, extremes, statistics, norms, tests of equality.

`dim` is None for all dimensions, one or several of them. A 0-d tensor counts as having one dimension.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

from tpc.dtype import BY_IR, default_dtype, ir_dtype
from tpc.functions import elementwise as e
from tpc.functions.dims import one_dim, some_dims
from tpc.functions.elementwise import stored
from tpc.functions.shape import reshape
from tpc.ir.opdef import OpDef
from tpc.ir.ops import reduction as ops
from tpc.ir.types import category, is_differentiable
from tpc.record import cast, record
from tpc.state import STATE
from tpc.tensor import Tensor


def with_dims(x: Tensor) -> Tensor:
    """At least one dimension, so that there is one to reduce."""
    if x.__class__ is not Tensor and not isinstance(x, Tensor):
        raise TypeError(f"argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    return x if x._type.shape else reshape(x, (1,))


def _reduced(defn: OpDef, x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Records a reduction; a 0-d tensor stays one whatever `keepdim` says."""
    if keepdim.__class__ is not bool:
        raise TypeError(f"{defn.name}(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")
    if x._type.shape:
        return record(defn, (x,), {"dims": dims, "keepdim": keepdim})  # type: ignore[no-any-return]
    return record(defn, (with_dims(x),), {"dims": (0,), "keepdim": False})  # type: ignore[no-any-return]


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Sum. Bool and small integers add up in int64."""
    if dtype is not None:
        input = cast(input, ir_dtype(dtype))
        return stored(cast(_reduced(ops.sum_, input, some_dims(dim, input._type.rank), keepdim), ir_dtype(dtype)), out)
    return stored(_reduced(ops.sum_, input, some_dims(dim, input._type.rank), keepdim), out)


def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`x` summed down to a shape that broadcasts to its own."""
    have = x._type.shape
    if have == shape:
        return x
    extra = len(have) - len(shape)
    dims = tuple([i for i, n in enumerate(have) if i < extra or (n != 1 and shape[i - extra] == 1)])
    if dims:
        x = record(ops.sum_, (x,), {"dims": dims, "keepdim": extra == 0})
    return x if x._type.shape == shape else reshape(x, shape)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Summed down to `size`, which must broadcast to the shape."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    have = input._type.shape
    fits = len(wanted) <= len(have) and builtins.all(w in (1, n) for w, n in zip(reversed(wanted), reversed(have), strict=False))
    if not fits:
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(have)}}}.")
    return sum_to(input, wanted)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Mean, of a floating or complex tensor."""
    if dtype is not None:
        input = cast(input, ir_dtype(dtype))
    if not is_differentiable(input._type.dtype):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{BY_IR[input._type.dtype].name}"
        )
    return stored(_reduced(ops.mean, input, some_dims(dim, input._type.rank), keepdim), out)


def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Product, over all dimensions or one."""
    if dtype is not None:
        input = cast(input, ir_dtype(dtype))
    result = _reduced(ops.prod, input, some_dims(dim, input._type.rank), keepdim)
    return stored(result if dtype is None else cast(result, ir_dtype(dtype)), out)


def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Sum with NaN counted as 0."""
    known = e.where(e.isnan(input), 0, input) if is_differentiable(input._type.dtype) else input
    return sum(known, dim, keepdim, dtype=dtype, out=out)


def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """Mean of the elements that are not NaN."""
    if not is_differentiable(input._type.dtype):
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype}")
    count = sum(e.logical_not(e.isnan(input)), dim, keepdim)
    return stored(e.div(nansum(input, dim, keepdim, dtype=dtype), count), out)


# --- truth --------------------------------------------------------------------------------------


def _truth(defn: OpDef, name: str, doc: str) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        if isinstance(dim, (tuple, list)) and not dim:
            result = e.ne(input, 0)
        else:
            result = _reduced(defn, input, some_dims(dim, input._type.rank), keepdim)
        return stored(cast(result, "u8") if input._type.dtype == "u8" else result, out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


any = _truth(ops.any_, "any", "Whether any element is non-zero.")
all = _truth(ops.all_, "all", "Whether every element is non-zero.")


def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0."""
    return sum(e.ne(input, 0), dim)


def isclose(input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Elementwise: |input - other| <= atol + rtol * |other|."""
    e.tensor_operand("isclose", input, "input", 1)
    e.tensor_operand("isclose", other)
    for name, allowance in (("rtol", rtol), ("atol", atol)):
        if allowance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {allowance}")
    if input._type.dtype != other._type.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    close = e.eq(input, other)
    if equal_nan and is_differentiable(input._type.dtype):
        close = e.logical_or(close, e.logical_and(e.isnan(input), e.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    if category(input._type.dtype) < 2:
        input, other = cast(input, default_dtype()), cast(other, default_dtype())
    difference = e.abs(e.sub(input, other))
    allowed = e.add(e.abs(e.mul(other, rtol)), atol)
    return e.logical_or(close, e.logical_and(e.isfinite(difference), e.le(difference, allowed)))


def allclose(input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds for every element."""
    return bool(all(isclose(input.detach(), other, rtol, atol, equal_nan)))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shape and every element are the same."""
    if input._type.shape != other._type.shape:
        return False
    return bool(all(e.eq(input.detach(), other)))


# --- extremes -----------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Elements and where they were found."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    min: Tensor
    max: Tensor


def picked(x: Tensor, indices: Tensor, dim: int) -> Tensor:
    """Elements of `x` by index along `dim`; gradients go to exactly those."""
    from tpc.functions.gathering import gather

    return gather(x, dim, indices)


def _extreme(name: str, defn: OpDef, arg: OpDef, binary: Callable[..., Tensor], doc: str) -> Callable[..., Any]:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
        if isinstance(dim, Tensor) or other is not None:
            return binary(input, dim if other is None else other, out=out)
        if dim is None:
            refuse_empty(name, input)
            return stored(_reduced(defn, input, some_dims(None, input._type.rank), False), out)
        dim = one_dim(dim, input._type.rank)
        x = with_dims(input)
        if x._type.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        indices = record(arg, (x,), {"dim": dim, "keepdim": True})
        tracked = (STATE.grad_enabled and x._tracked()) or x._tangent is not None
        values = picked(x, indices, dim) if tracked else record(defn, (x,), {"dims": (dim,), "keepdim": True})
        if not keepdim or not input._type.shape:
            kept = x._type.shape[:dim] + x._type.shape[dim + 1 :]
            values, indices = reshape(values, kept), reshape(indices, kept)
        if out is not None:
            return Pair(stored(values, out[0]), stored(indices, out[1]))
        return Pair(values, indices)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def refuse_empty(name: str, x: Tensor, error: type[Exception] = RuntimeError) -> None:
    if x._type.numel == 0:
        raise error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )


max = _extreme("max", ops.amax, ops.argmax, e.maximum, "Largest element; along `dim` also its index; with another tensor, elementwise.")
min = _extreme("min", ops.amin, ops.argmin, e.minimum, "Smallest element; along `dim` also its index; with another tensor, elementwise.")


def _amount(name: str, defn: OpDef, doc: str) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        dims = some_dims(dim, input._type.rank)
        if input._type.numel == 0 and builtins.any(input._type.shape[d] == 0 for d in dims):
            if dim is None or dim == () or dim == []:
                refuse_empty(name, input)
            raise IndexError(f"{name}(): Expected reduction dim {dims[0]} to have non-zero size.")
        return stored(_reduced(defn, input, dims, keepdim), out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


amax = _amount("amax", ops.amax, "Largest element; equal ones share the gradient.")
amin = _amount("amin", ops.amin, "Smallest element; equal ones share the gradient.")


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """(min, max)."""
    dims = () if dim is None else dim
    return MinMax(amin(input, dims, keepdim), amax(input, dims, keepdim))


def _index_of(name: str, defn: OpDef, doc: str) -> Callable[..., Tensor]:
    def function(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        x = with_dims(input)
        if x._type.dtype == "bool":
            raise RuntimeError(f"{name}(): does not support bool input")
        if dim is None:
            refuse_empty(name, input, IndexError)
            return stored(record(defn, (x,), {"dim": None, "keepdim": keepdim and builtins.bool(input._type.shape)}), out)
        dim = one_dim(dim, input._type.rank)
        if x._type.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        return stored(record(defn, (x,), {"dim": dim, "keepdim": keepdim and builtins.bool(input._type.shape)}), out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


argmax = _index_of("argmax", ops.argmax, "Index of the largest element (the first of them); in the flattened tensor without `dim`.")
argmin = _index_of("argmin", ops.argmin, "Index of the smallest element (the first of them); in the flattened tensor without `dim`.")


# --- statistics ---------------------------------------------------------------------------------


def _spread(name: str, defn: OpDef, doc: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise TypeError(f"{name}() takes `unbiased` or `correction`, not both")
        if not is_differentiable(input._type.dtype):
            raise RuntimeError("std and var only support floating point and complex dtypes")
        by = correction if correction is not None else 1 if unbiased is None or unbiased else 0
        x = with_dims(input)
        keep = keepdim and builtins.bool(input._type.shape)
        return stored(record(defn, (x,), {"dims": some_dims(dim, input._type.rank), "correction": by, "keepdim": keep}), out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


var = _spread("var", ops.var, "Variance, divided by n - correction (1 unless given).")
std = _spread("std", ops.std, "Standard deviation, divided by n - correction (1 unless given).")


def var_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, **options: Any) -> tuple[Tensor, Tensor]:
    """(variance, mean)."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return var(input, dim, unbiased, keepdim, **options), mean(input, dim, keepdim)


def std_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, **options: Any) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean)."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    return std(input, dim, unbiased, keepdim, **options), mean(input, dim, keepdim)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(x))), without overflow."""
    if category(input._type.dtype) < 2:
        input = cast(input, default_dtype())
    return stored(_reduced(ops.logsumexp, input, some_dims(dim, input._type.rank), keepdim), out)


def _along(defn: OpDef, input: Tensor, dim: Any, dtype: Any) -> Tensor:
    dim = one_dim(dim, input._type.rank)
    if dtype is not None:
        input = cast(input, ir_dtype(dtype))
    if not is_differentiable(input._type.dtype):
        raise NotImplementedError(f"{defn.name} is not implemented for {input.dtype}; give dtype=")
    made: Tensor = record(defn, (with_dims(input),), {"dim": dim})
    return made if input._type.shape else reshape(made, ())


def softmax(input: Tensor, dim: Any, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
    return stored(_along(ops.softmax, input, dim, dtype), out)


def log_softmax(input: Tensor, dim: Any, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """log(softmax(x)), computed stably."""
    return stored(_along(ops.log_softmax, input, dim, dtype), out)
