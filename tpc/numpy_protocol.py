"""NumPy functions called on tensors: `np.exp(t)`, `np.sum(t, axis=0)` record what tpc records for `t.exp()`, `t.sum(0)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpc.functions import elementwise, indexing, linalg, reduction, shape
from tpc.functions.catalogue import find
from tpc.record import SCALARS
from tpc.tensor import Tensor, from_array

_SAME_NAME = """
    exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan tanh sinh cosh floor ceil trunc sign signbit isnan isinf
    isfinite floor_divide remainder fmod maximum minimum hypot copysign heaviside logaddexp logaddexp2 logical_and logical_or
    logical_xor logical_not bitwise_and bitwise_or bitwise_xor matmul positive deg2rad rad2deg float_power ldexp
"""

UFUNCS: dict[str, Callable[..., Any]] = {
    **{name: find(name) for name in _SAME_NAME.split()},
    "add": elementwise.add,
    "subtract": elementwise.sub,
    "multiply": elementwise.mul,
    "divide": elementwise.div,
    "true_divide": elementwise.div,
    "mod": elementwise.remainder,
    "power": elementwise.pow,
    "negative": elementwise.neg,
    "absolute": elementwise.abs,
    "fabs": elementwise.abs,
    "rint": elementwise.round,
    "conjugate": elementwise.conj,
    "invert": elementwise.bitwise_not,
    "left_shift": elementwise.bitwise_left_shift,
    "right_shift": elementwise.bitwise_right_shift,
    "arcsin": elementwise.asin,
    "arccos": elementwise.acos,
    "arctan": elementwise.atan,
    "arcsinh": find("asinh"),
    "arccosh": find("acosh"),
    "arctanh": find("atanh"),
    "arctan2": elementwise.atan2,
    "equal": elementwise.eq,
    "not_equal": elementwise.ne,
    "less": elementwise.lt,
    "less_equal": elementwise.le,
    "greater": elementwise.gt,
    "greater_equal": elementwise.ge,
    "radians": find("deg2rad"),
    "degrees": find("rad2deg"),
}
"""NumPy ufunc -> tpc function."""
_NO_NUMBERS = frozenset("maximum minimum arctan2 hypot heaviside logaddexp logaddexp2 logical_and logical_or logical_xor ldexp".split())
"""Those whose functions take tensors only, as PyTorch's do."""


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """`__array_ufunc__`: records; with an array as `out`, computes into it."""
    function = UFUNCS.get(ufunc.__name__)
    out = options.pop("out", None)
    if method != "__call__" or options or function is None:
        how = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(_refusal(f"numpy.{how}" + (f" with {sorted(options)}" if options else "")))
    operands = [_operand(x) for x in inputs]
    if ufunc.__name__ in _NO_NUMBERS:
        operands = [elementwise.as_operand(x) for x in operands]
    result = function(*operands)
    if out is None:
        return result
    (target,) = out
    if isinstance(target, Tensor):
        return target._write(result)
    if result.requires_grad:
        raise TypeError(f"numpy.{ufunc.__name__} cannot write a tensor that requires grad into an array; use detach() first")
    np.copyto(target, result._array(), casting="same_kind")
    return target


def array_function(self: Tensor, function: Callable[..., Any], types: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """`__array_function__`: records what is in the table; queries run on the values; the rest is a `TypeError`."""
    if function in QUERIES:
        return function(*_values(args), **{k: _values((v,))[0] for k, v in options.items()})
    ours = FUNCTIONS.get(function)
    if ours is None:
        raise TypeError(_refusal(f"{function.__module__}.{function.__name__}"))
    return ours(*args, **options)


def _refusal(name: str) -> str:
    return (
        f"{name} has no counterpart that tpc can record. Use a tpc function, tpc.host_call to run it as a step of the graph, or pass "
        "t.detach().numpy()"
    )


def _operand(x: Any) -> Any:
    if isinstance(x, (Tensor, *SCALARS)):
        return x
    return from_array(np.array(x, copy=True))


def _values(args: Sequence[Any]) -> list[Any]:
    return [x._array() if isinstance(x, Tensor) else type(x)(_values(x)) if isinstance(x, (list, tuple)) else x for x in args]


# --- NumPy functions that are no ufuncs ---------------------------------------------------------


def _over_axis(reduce: Callable[..., Any], **renamed: str) -> Callable[..., Any]:
    """A reduction in NumPy's spelling: `axis`, `keepdims`."""

    def call(a: Any, axis: Any = None, **options: Any) -> Any:
        given = {renamed.get(k, k): v for k, v in options.items() if v is not None}
        if axis is None:
            return reduce(_operand(a), **given)
        return reduce(_operand(a), dim=axis, **given)

    return call


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return function(_operand(a), dim=() if axis is None else axis, keepdim=keepdims)

    return call


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """var and std: NumPy divides by n, so the correction is `ddof`."""

    def call(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        return function(_operand(a), dim=axis, correction=ddof, keepdim=keepdims)

    return call


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(arrays: Sequence[Any], axis: int = 0) -> Any:
        return function([_operand(a) for a in arrays], axis)

    return call


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return function(_operand(a), *args, **options)

    return call


def _all_operands(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return function(*[_operand(a) for a in args])

    return call


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return indexing.nonzero(_operand(condition), as_tuple=True)
    return elementwise.where(_operand(condition), _operand(x), _operand(y))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return elementwise.clamp(_operand(a), a_min if min is None else min, a_max if max is None else max)


def _transpose(a: Tensor, axes: Any = None) -> Tensor:
    return shape.permute(a, tuple(range(a._type.rank - 1, -1, -1)) if axes is None else tuple(axes))


def _expand_dims(a: Tensor, axis: int) -> Tensor:
    return shape.unsqueeze(a, axis)


def _squeeze(a: Tensor, axis: Any = None) -> Tensor:
    return shape.squeeze(a) if axis is None else shape.squeeze(a, axis)


def _cumulative(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Tensor, axis: int | None = None) -> Any:
        return function(shape.flatten(a), 0) if axis is None else function(a, axis)

    return call


def _sort(a: Tensor, axis: int | None = -1) -> Tensor:
    return (find("sort")(shape.flatten(a), 0) if axis is None else find("sort")(a, axis))[0]  # type: ignore[no-any-return]


def _flip(m: Tensor, axis: Any = None) -> Tensor:
    dims = tuple(range(m._type.rank)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return find("flip")(m, dims)  # type: ignore[no-any-return]


def _tile(a: Tensor, reps: Any) -> Tensor:
    return find("tile")(a, (reps,) if isinstance(reps, int) else reps)  # type: ignore[no-any-return]


def _dot(a: Any, b: Any) -> Any:
    a, b = _operand(a), _operand(b)
    if min(_rank(a), _rank(b)) == 0:
        return elementwise.mul(a, b)
    if _rank(a) > 2 or _rank(b) > 2:
        return linalg.tensordot(a, b, ([-1], [-2 if _rank(b) > 1 else -1]))
    return linalg.matmul(a, b)


def _rank(x: Any) -> int:
    return x._type.rank if isinstance(x, Tensor) else 0


def _einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Any:
    return linalg.einsum(subscripts, *[_operand(x) for x in operands])


def _copied(a: Tensor, order: Any = None, subok: bool = False) -> Tensor:
    return elementwise.clone(a)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: _over_axis(reduction.sum, keepdims="keepdim"),
    np.mean: _over_axis(reduction.mean, keepdims="keepdim"),
    np.prod: _over_axis(reduction.prod, keepdims="keepdim"),
    np.any: _over_axis(reduction.any, keepdims="keepdim"),
    np.all: _over_axis(reduction.all, keepdims="keepdim"),
    np.argmax: _over_axis(reduction.argmax, keepdims="keepdim"),
    np.argmin: _over_axis(reduction.argmin, keepdims="keepdim"),
    np.count_nonzero: _over_axis(reduction.count_nonzero),
    np.max: _extreme(reduction.amax),
    np.amax: _extreme(reduction.amax),
    np.min: _extreme(reduction.amin),
    np.amin: _extreme(reduction.amin),
    np.var: _spread(reduction.var),
    np.std: _spread(reduction.std),
    np.cumsum: _cumulative(find("cumsum")),
    np.cumprod: _cumulative(find("cumprod")),
    np.sort: _sort,
    np.argsort: lambda a, axis=-1: find("argsort")(a, axis),
    np.where: _where,
    np.clip: _clip,
    np.round: lambda a, decimals=0: elementwise.round(a, decimals=decimals),
    np.real: elementwise.real,
    np.imag: elementwise.imag,
    np.nan_to_num: _first(find("nan_to_num")),
    np.concatenate: _joined(find("cat")),
    np.stack: _joined(find("stack")),
    np.vstack: lambda tup: find("vstack")([_operand(x) for x in tup]),
    np.hstack: lambda tup: find("hstack")([_operand(x) for x in tup]),
    np.reshape: lambda a, shape_: shape.reshape(a, shape_),
    np.ravel: shape.flatten,
    np.transpose: _transpose,
    np.swapaxes: shape.transpose,
    np.moveaxis: shape.movedim,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.broadcast_to: shape.broadcast_to,
    np.flip: _flip,
    np.roll: find("roll"),
    np.tile: _tile,
    np.tril: lambda m, k=0: find("tril")(m, k),
    np.triu: lambda m, k=0: find("triu")(m, k),
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: shape.diagonal(a, offset, axis1, axis2),
    np.trace: linalg.trace,
    np.dot: _dot,
    np.outer: _all_operands(linalg.outer),
    np.inner: _all_operands(linalg.inner),
    np.vdot: _all_operands(linalg.vdot),
    np.tensordot: lambda a, b, axes=2: linalg.tensordot(_operand(a), _operand(b), axes),
    np.einsum: _einsum,
    np.linalg.norm: lambda x, ord=None, axis=None, keepdims=False: linalg.norm(x, ord, axis, keepdims),
    np.zeros_like: lambda a: find("zeros_like")(a),
    np.ones_like: lambda a: find("ones_like")(a),
    np.full_like: lambda a, fill_value: find("full_like")(a, fill_value),
    np.copy: _copied,
    np.shape: lambda a: a._type.shape,
    np.ndim: lambda a: a._type.rank,
    np.size: lambda a, axis=None: a._type.numel if axis is None else a._type.shape[axis],
}
"""NumPy function -> what records it, with NumPy's parameter names."""


QUERIES = {
    np.allclose, np.array_equal, np.array_equiv, np.array_repr, np.array_str, np.array2string, np.save, np.savez, np.savetxt,
    np.result_type, np.iscomplexobj, np.isrealobj, np.may_share_memory, np.shares_memory,
}  # fmt: skip
"""NumPy functions whose result is no array: they run on the values."""
