"""Reductions and what works along an axis: sums, extrema, statistics, softmax, sorting. `dims` are sorted axes."""

from __future__ import annotations

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import Infer, OpDef, define
from tpc.ir.ops.rules import Attrs, Types, axis, boolean, integers, listed, require
from tpc.ir.types import TensorType, is_complex, real_dtype, tensor_type


def reduced(op: str, type: TensorType, dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape without `dims`, or with ones there."""
    if any(not 0 <= d < type.rank for d in dims) or list(dims) != sorted(set(dims)):
        raise TypeRuleError(f"Dimension out of range: dims {list(dims)} must be different axes, in order {listed(op, (type,))}")
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(type.shape))
    return tuple(n for i, n in enumerate(type.shape) if i not in dims)


def _reduction(op: str, kinds: str, what: str, result: str | None = None, needs_elements: bool = False) -> Infer:
    def infer(types: Types, attrs: Attrs) -> TensorType:
        (type,) = types
        require(op, types, kinds, what)
        dims, keepdim = integers(attrs, "dims"), boolean(attrs, "keepdim")
        shape = reduced(op, type, dims, keepdim)
        if needs_elements and any(type.shape[d] == 0 for d in dims):
            raise TypeRuleError(
                f"{op}(): Expected reduction dim {list(dims)} to have non-zero size: cannot perform reduction function {op} on a tensor "
                f"with no elements because the operation does not have an identity {listed(op, types)}"
            )
        special = {"wide": _widened, "real": real_dtype}.get(result or "")
        return tensor_type(special(type.dtype) if special else result or type.dtype, shape)

    return infer


def _widened(dtype: str) -> str:
    """Sums of bools and integers are i64."""
    return "i64" if dtype[0] in "bui" else dtype


def _define(op: str, infer: Infer, extra: tuple[str, ...] = (), cost: float = 1.0) -> OpDef:
    return define(OpDef(op, ("x",), infer, ("dims", *extra, "keepdim"), reduction=True, cost=cost))


sum_ = _define("sum", _reduction("sum", "buifc", "every dtype", "wide"))
prod = _define("prod", _reduction("prod", "buifc", "every dtype", "wide"))
mean = _define("mean", _reduction("mean", "fc", "floating and complex dtypes"))
amax = _define("amax", _reduction("amax", "buif", "real numbers", needs_elements=True))
amin = _define("amin", _reduction("amin", "buif", "real numbers", needs_elements=True))
any_ = _define("any", _reduction("any", "buifc", "every dtype", "bool"))
all_ = _define("all", _reduction("all", "buifc", "every dtype", "bool"))
var = _define("var", _reduction("var", "fc", "floating and complex dtypes", "real"), ("correction",), 4.0)
std = _define("std", _reduction("std", "fc", "floating and complex dtypes", "real"), ("correction",), 4.0)
logsumexp = _define("logsumexp", _reduction("logsumexp", "f", "floating dtypes"), cost=10.0)


def _arg(op: str) -> Infer:
    def infer(types: Types, attrs: Attrs) -> TensorType:
        (type,) = types
        require(op, types, "buif", "real numbers")
        keepdim = boolean(attrs, "keepdim")
        dims = tuple(range(type.rank)) if attrs["dim"] is None else (axis(op, attrs, type.rank),) if type.rank else ()
        if type.numel == 0 and (attrs["dim"] is None or any(type.shape[d] == 0 for d in dims)):
            raise TypeRuleError(
                f"{op}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
            )
        return tensor_type("i64", reduced(op, type, dims, keepdim))

    return infer


argmax = define(OpDef("argmax", ("x",), _arg("argmax"), ("dim", "keepdim"), cost=2.0))
argmin = define(OpDef("argmin", ("x",), _arg("argmin"), ("dim", "keepdim"), cost=2.0))


def along(op: str, kinds: str, what: str, wide: bool = False) -> Infer:
    """Same shape; works along `dim`."""

    def infer(types: Types, attrs: Attrs) -> TensorType:
        require(op, types, kinds, what)
        axis(op, attrs, types[0].rank)
        return tensor_type(_widened(types[0].dtype), types[0].shape) if wide else types[0]

    return infer


softmax = define(OpDef("softmax", ("x",), along("softmax", "f", "floating dtypes"), ("dim",), cost=10.0))
log_softmax = define(OpDef("log_softmax", ("x",), along("log_softmax", "f", "floating dtypes"), ("dim",), cost=10.0))


def _sort(types: Types, attrs: Attrs) -> tuple[TensorType, TensorType]:
    (type,) = types
    if is_complex(type.dtype):
        raise TypeRuleError(f"Sort currently does not support complex dtypes {listed('sort', types)}")
    axis("sort", attrs, type.rank)
    boolean(attrs, "descending")
    boolean(attrs, "stable")
    return type, tensor_type("i64", type.shape)


sort = define(OpDef("sort", ("x",), _sort, ("dim", "descending", "stable"), cost=20.0))
