"""Reading and writing along one dimension by index tensors: gather, scatter, index_select and their relatives."""

from __future__ import annotations

from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.data import checked_number
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import mul, stored
from tpc.functions.factories import filled, zeros_of
from tpc.functions.shape import broadcast_pair, expand, reshape, reshaped, sliced
from tpc.ir.opdef import OpDef
from tpc.ir.ops import indexing as ops
from tpc.ir.ops import reduction
from tpc.ir.ops import shape as shape_ops
from tpc.ir.types import tensor_type
from tpc.record import cast, record, scalar_tensor
from tpc.tensor import Tensor


def _check_index(index: Any, function: str) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"{function}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index._type.dtype not in ("i64", "i32"):
        raise RuntimeError(f"{function}(): Expected dtype int32/int64 for index, but got {index.dtype}")


def _raised(x: Tensor) -> Tensor:
    """At least one dimension."""
    return x if x._type.shape else reshaped(x, (1,))


def _lowered(result: Tensor, like: Tensor) -> Tensor:
    return result if like._type.shape else reshape(result, ())


# --- index of the same rank ---------------------------------------------------------------------


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """result[i][j] = input[index[i][j]][j] for dim 0, and so on: each element picks its place along `dim`."""
    _check_index(index, "gather")
    at = one_dim(dim, input._type.rank)
    result = record(ops.gather, (_raised(input), _raised(index)), {"dim": at})
    return stored(_lowered(result, index), out)


def _scattered(function: str, defn: OpDef, x: Tensor, dim: int, index: Tensor, src: Any, attrs: dict[str, Any]) -> Tensor:
    _check_index(index, function)
    at, ids = one_dim(dim, x._type.rank), _raised(index)
    if not isinstance(src, Tensor):
        src = filled(tensor_type(x._type.dtype, ids._type.shape), checked_number(src, x._type.dtype))
    elif src._type.dtype != x._type.dtype:
        raise RuntimeError(f"{function}(): Expected self.dtype to be equal to src.dtype")
    src = _raised(src)
    # Only the part of the source that the index covers counts; the gradient of the rest is zero.
    for d, (n, m) in enumerate(zip(src._type.shape, ids._type.shape, strict=False)):
        if len(src._type.shape) == len(ids._type.shape) and n > m:
            src = sliced(src, d, 0, m)
    return _lowered(record(defn, (_raised(x), ids, src), {"dim": at, **attrs}), x)


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None, out: Tensor | None = None
) -> Tensor:
    """A copy with input[index[i][j]][j] = src[i][j] for dim 0, and so on; added or multiplied with `reduce` "add" or "multiply"."""
    given = src if src is not None else value
    if given is None:
        raise TypeError("scatter() missing 1 required argument: 'src' or 'value'")
    if reduce is None:
        return stored(_scattered("scatter", ops.scatter, input, dim, index, given, {}), out)
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    attrs = {"reduce": "sum" if reduce == "add" else "prod", "include_self": True}
    return stored(_scattered("scatter", ops.scatter_reduce, input, dim, index, given, attrs), out)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with src[i][j] added at input[index[i][j]][j] for dim 0, and so on."""
    attrs = {"reduce": "sum", "include_self": True}
    return stored(_scattered("scatter_add", ops.scatter_reduce, input, dim, index, src, attrs), out)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None
) -> Tensor:
    """Elements of `src` that meet at one place of `input` combined: "sum", "prod", "mean", "amax" or "amin"."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    attrs = {"reduce": reduce, "include_self": bool(include_self)}
    return stored(_scattered("scatter_reduce", ops.scatter_reduce, input, dim, index, src, attrs), out)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """`gather` in which both tensors broadcast apart from `dim`; the flat tensor without one."""
    if dim is None:
        return gather(reshape(input, -1), 0, reshape(indices, -1), out=out)
    if input._type.rank != indices._type.rank:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {input._type.rank} dimensions "
            f"for input, and {indices._type.rank} dimensions for indices"
        )
    at = one_dim(dim, input._type.rank)
    a, b = list(input._type.shape), list(indices._type.shape)
    both = broadcast_pair((*a[:at], 1, *a[at + 1 :]), (*b[:at], 1, *b[at + 1 :]))
    a, b = [*both[:at], a[at], *both[at + 1 :]], [*both[:at], b[at], *both[at + 1 :]]
    wrapped = e.where(e.lt(indices, 0), e.add(indices, a[at]), indices)
    return gather(expand(input, a), at, expand(wrapped, b), out=out)


# --- a vector of indices ------------------------------------------------------------------------


def _vector(index: Tensor, function: str) -> Tensor:
    if index.__class__ is not Tensor and not isinstance(index, Tensor):
        raise TypeError(f"{function}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index._type.dtype not in ("i64", "i32"):
        raise RuntimeError(f"{function}(): Expected dtype int32 or int64 for index, but got {index.dtype}")
    if index._type.rank > 1:
        raise IndexError(f"{function}(): Index is supposed to be a vector, but got dim: {index._type.rank}")
    return _raised(index)


def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices along `dim` that a vector names."""
    at, ids = one_dim(dim, input._type.rank), _vector(index, "index_select")
    return stored(_lowered(record(ops.index_select, (_raised(input), ids), {"dim": at}), input), out)


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """A copy with alpha * the slices of `source` added at the places that a vector names."""
    at, ids = one_dim(dim, input._type.rank), _vector(index, "index_add")
    if source._type.dtype != input._type.dtype:
        raise RuntimeError(f"index_add(): self ({input.dtype}) and source ({source.dtype}) must have the same scalar type")
    added = source if alpha == 1 else cast(mul(source, alpha), input._type.dtype)
    result = record(ops.index_add, (_raised(input), ids, _raised(added)), {"dim": at})
    return stored(_lowered(result, input), out)


def _put_along(x: Tensor, dim: int, index: Tensor, values: Tensor) -> Tensor:
    result = record(ops.index_put, (_raised(x), values, index), {"axes": (dim,), "accumulate": False})
    return _lowered(result, x)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy with slices of `source` at the places that a vector names."""
    at, ids = one_dim(dim, input._type.rank), _vector(index, "index_copy")
    if source._type.dtype != input._type.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {input.dtype} and (source) {source.dtype}"
        )
    shape = _raised(input)._type.shape
    wanted = (*shape[:at], ids._type.numel, *shape[at + 1 :])
    if _raised(source)._type.shape != wanted:
        count = source._type.shape[at] if at < source._type.rank else 1
        raise (RuntimeError if count == ids._type.numel else IndexError)(
            "index_copy_(): Source/destination tensor must have same slice shapes and one slice per index: expected "
            f"{list(wanted)}, got {list(source._type.shape)}"
        )
    return stored(_put_along(input, at, ids, _raised(source)), out)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy with one value in the slices that a vector names."""
    at, ids = one_dim(dim, input._type.rank), _vector(index, "index_fill")
    if isinstance(value, Tensor):
        if value._type.shape:
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value._type.rank} dimension(s)."
            )
        filler = cast(value, input._type.dtype)
    else:
        filler = scalar_tensor(checked_number(value, input._type.dtype), input._type.dtype)
    return _put_along(input, at, ids, filler)


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dimension with a 1 at each number's place. Without `num_classes` the largest number is looked at."""
    if input._type.dtype != "i64":
        raise RuntimeError("one_hot is only applicable to index tensor.")
    if num_classes < 0:
        if input._type.numel == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        flat = reshape(input, -1)
        num_classes = int(record(reduction.amax, (flat,), {"dims": (0,), "keepdim": False})._array()) + 1
    elif num_classes == 0 and input._type.numel:
        raise RuntimeError("Class values must be smaller than num_classes.")
    places = reshape(input, (*input._type.shape, 1))
    base = zeros_of(tensor_type("i64", (*input._type.shape, num_classes)))
    return scatter(base, -1, places, 1)


# --- a copy with a part replaced ----------------------------------------------------------------


def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy with `src` at start:end:step of a dimension."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    shape = input._type.shape
    at = one_dim(dim, len(shape))
    first, last, _ = slice(start, end).indices(shape[at])
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[at], limits[at], steps[at] = first, max(first, last), step
    wanted = (*shape[:at], -(-(limits[at] - first) // step), *shape[at + 1 :])
    attrs = {"starts": tuple(starts), "limits": tuple(limits), "steps": tuple(steps)}
    _check_part(src, wanted)
    return record(shape_ops.slice_scatter, (input, _like(src, input)), attrs)  # type: ignore[no-any-return]


def _like(src: Tensor, input: Tensor) -> Tensor:
    return cast(src, input._type.dtype)


def _check_part(src: Tensor, part: tuple[int, ...]) -> None:
    if src._type.shape != part:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src._type.shape)}, slice size = {list(part)}"
        )


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with `src` at one index of a dimension."""
    shape = input._type.shape
    at = one_dim(dim, len(shape))
    if not -shape[at] <= index < shape[at]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {at}")
    index %= shape[at]
    _check_part(src, (*shape[:at], *shape[at + 1 :]))
    return slice_scatter(input, reshape(src, (*shape[:at], 1, *shape[at + 1 :])), at, index, index + 1)


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with `src` on a diagonal."""
    rank = input._type.rank
    attrs = {"offset": offset, "dim1": one_dim(dim1, rank), "dim2": one_dim(dim2, rank)}
    part = shape_ops.diagonal.infer((input._type,), attrs)
    _check_part(src, part.shape)  # type: ignore[union-attr]
    return record(shape_ops.diagonal_scatter, (input, _like(src, input)), attrs)  # type: ignore[no-any-return]
