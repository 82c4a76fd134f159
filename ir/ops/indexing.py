"""Reading and writing by index. Indices are checked when a program runs, not by types."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import OpDef, define
from tpc.ir.ops.rules import Attrs, Types, axis, boolean, broadcast, integer, integers, listed, same_dtype
from tpc.ir.types import TensorType, tensor_type


def _index_dtype(op: str, types: Types, index: Types) -> None:
    for t in index:
        if t.dtype[0] not in "iu" or t.dtype == "bool":
            raise TypeRuleError(f"{op}(): Expected dtype int64 for index, but got {t.dtype} {listed(op, types)}")


def indexed_shape(op: str, x: TensorType, indices: Types, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of x[indices at axes]: the common index shape in place of neighbouring axes, else in front."""
    if not axes or len(axes) != len(indices) or list(axes) != sorted(set(axes)) or axes[0] < 0 or axes[-1] >= x.rank:
        raise TypeRuleError(f"too many indices for tensor of dimension {x.rank}: axes {list(axes)} {listed(op, (x, *indices))}")
    picked = broadcast(op, indices)
    rest = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    at = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    return (*rest[:at], *picked, *rest[at:])


def _index(types: Types, attrs: Attrs) -> TensorType:
    _index_dtype("index", types, types[1:])
    return tensor_type(types[0].dtype, indexed_shape("index", types[0], types[1:], integers(attrs, "axes")))


def _index_put(types: Types, attrs: Attrs) -> TensorType:
    x, values, *indices = types
    boolean(attrs, "accumulate")
    same_dtype("index_put", (x, values))
    _index_dtype("index_put", types, indices)
    shape = indexed_shape("index_put", x, indices, integers(attrs, "axes"))
    target = tensor_type(values.dtype, shape)
    if broadcast("index_put", (target, values)) != shape:
        raise TypeRuleError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape {list(shape)}"
        )
    return x


index = define(OpDef("index", ("x", "*indices"), _index, ("axes",), cost=2.0, checks=True))
index_put = define(OpDef("index_put", ("x", "values", "*indices"), _index_put, ("axes", "accumulate"), into=0, cost=2.0, checks=True))


def _fits_except(op: str, types: Types, dim: int, inner: TensorType, outer: TensorType, what: str) -> None:
    if inner.rank != outer.rank or any(i > o for d, (i, o) in enumerate(zip(inner.shape, outer.shape, strict=True)) if d != dim):
        raise TypeRuleError(
            f"Expected {what} {list(inner.shape)} to be no larger than {list(outer.shape)} apart from dimension {dim} {listed(op, types)}"
        )


def _gather(types: Types, attrs: Attrs) -> TensorType:
    x, ids = types
    dim = axis("gather", attrs, x.rank)
    _index_dtype("gather", types, (ids,))
    if ids.rank != x.rank:
        raise TypeRuleError(f"Index tensor must have the same number of dimensions as input tensor {listed('gather', types)}")
    _fits_except("gather", types, dim, ids, x, "index")
    return tensor_type(x.dtype, ids.shape)


def _scatter_rule(op: str, types: Types, attrs: Attrs) -> TensorType:
    x, ids, src = types
    dim = axis(op, attrs, x.rank)
    same_dtype(op, (x, src))
    _index_dtype(op, types, (ids,))
    if not ids.rank == x.rank == src.rank:
        raise TypeRuleError(f"Index tensor must have the same number of dimensions as self tensor and src {listed(op, types)}")
    _fits_except(op, types, dim, ids, x, "index")
    _fits_except(op, types, -1, ids, src, "index")
    return x


def _scatter(types: Types, attrs: Attrs) -> TensorType:
    return _scatter_rule("scatter", types, attrs)


def _scatter_reduce(types: Types, attrs: Attrs) -> TensorType:
    boolean(attrs, "include_self")
    if attrs["reduce"] not in ("sum", "prod", "amax", "amin", "mean"):
        raise TypeRuleError(f"reduce argument must be one of sum, prod, mean, amax, amin, got {attrs['reduce']!r} (scatter_reduce)")
    return _scatter_rule("scatter_reduce", types, attrs)


gather = define(OpDef("gather", ("x", "index"), _gather, ("dim",), cost=2.0, checks=True))
scatter = define(OpDef("scatter", ("x", "index", "src"), _scatter, ("dim",), into=0, cost=2.0, checks=True))
scatter_reduce = define(
    OpDef("scatter_reduce", ("x", "index", "src"), _scatter_reduce, ("dim", "reduce", "include_self"), into=0, cost=4.0, checks=True)
)


def _index_select(types: Types, attrs: Attrs) -> TensorType:
    x, ids = types
    dim = axis("index_select", attrs, x.rank)
    _index_dtype("index_select", types, (ids,))
    if ids.rank != 1 or x.rank == 0:
        raise TypeRuleError(f"index_select(): Index is supposed to be a vector {listed('index_select', types)}")
    return tensor_type(x.dtype, (*x.shape[:dim], ids.shape[0], *x.shape[dim + 1 :]))


def _index_add(types: Types, attrs: Attrs) -> TensorType:
    x, ids, src = types
    dim = axis("index_add", attrs, x.rank)
    same_dtype("index_add", (x, src))
    _index_dtype("index_add", types, (ids,))
    if ids.rank != 1 or x.rank == 0:
        raise TypeRuleError(f"index_add_(): Index is supposed to be a vector {listed('index_add', types)}")
    if src.shape != (*x.shape[:dim], ids.shape[0], *x.shape[dim + 1 :]):
        raise TypeRuleError(
            "index_add_(): Number of indices should be equal to source.size(dim), and all other sizes those of self "
            f"{listed('index_add', types)}"
        )
    return x


def _masked_scatter(types: Types, attrs: Attrs) -> TensorType:
    x, mask, src = types
    same_dtype("masked_scatter", (x, src))
    if mask.dtype != "bool" or mask.shape != x.shape:
        raise TypeRuleError(f"masked_scatter_ only supports boolean masks of the shape of self {listed('masked_scatter', types)}")
    return x


def _nonzero(types: Types, attrs: Attrs) -> TensorType:
    count = integer(attrs, "count")
    if not 0 <= count <= types[0].numel:
        raise TypeRuleError(f"nonzero: {types[0]} cannot have {count} non-zero elements")
    return tensor_type("i64", (count, types[0].rank))


index_select = define(OpDef("index_select", ("x", "index"), _index_select, ("dim",), cost=2.0, checks=True))
index_add = define(OpDef("index_add", ("x", "index", "src"), _index_add, ("dim",), into=0, cost=4.0, checks=True))
masked_scatter = define(OpDef("masked_scatter", ("x", "mask", "src"), _masked_scatter, into=0, cost=4.0, checks=True))
nonzero = define(OpDef("nonzero", ("mask",), _nonzero, ("count",), foldable=False, cost=4.0, checks=True))
