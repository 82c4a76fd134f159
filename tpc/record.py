"""`record`: the only door into a graph. Promotes dtypes, makes the autograd node, builds the op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tpc import transforming
from tpc.autograd.rules import make_node
from tpc.checks import check_known
from tpc.dtype import combine, default_dtype, promote, scalar_dtype
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.ops import elementwise, pairs, shape
from tpc.ir.types import TensorType, category, tensor_type
from tpc.recording import NO_ATTRS, Recorded, constant, emit, user_frame
from tpc.state import STATE
from tpc.storage import Storage
from tpc.tensor import Tensor, View
from tpc.writing import NO_GRAD_VIEW, VIEW_OF_LEAF

SCALARS = (bool, int, float, complex, np.bool_, np.number)

_inferred: dict[tuple[OpDef, tuple[TensorType, ...]], Any] = {}


def record(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue] = NO_ATTRS) -> Any:
    """Records `defn` on tensors (Python scalars where the op promotes) and returns its result, a tuple for several.

    Raises `TypeRuleError` (a `RuntimeError`) where the op's type rule refuses the operands.
    """
    if defn.promotion != "none":
        operands = promoted(operands, defn.promotion)
    return record_typed(defn, operands, attrs)


def record_typed(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue] = NO_ATTRS) -> Any:
    """Records an op on operands that have their final dtypes; scalars are recorded constants by now."""
    if STATE.trace is not None:
        operands = STATE.trace.inside(operands)
    if STATE.transforming:
        return transforming.record(defn, operands, attrs)
    return record_plain(defn, operands, attrs)


def record_plain(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue]) -> Any:
    """Records an op on operands of its dtypes, with nothing batched and no tangents."""
    type: Any
    values = tuple([t._read() if isinstance(t, Tensor) else t for t in operands])
    types = tuple([v.type for v in values])
    if attrs:
        type = defn.infer(types, attrs)
    else:
        type = _inferred.get((defn, types))
        if type is None:
            type = defn.infer(types, attrs)
            if len(_inferred) > 50_000:
                _inferred.clear()
            _inferred[defn, types] = type
    if defn.checks:
        check_known(defn, values, attrs)
    value = emit(defn, values, attrs, type)
    if type.__class__ is tuple:
        results: Any = tuple(Tensor(Storage(Recorded(None, (value,), NO_ATTRS, t, i)), t) for i, t in enumerate(type))
    else:
        results = Tensor(Storage(value), type)
    if STATE.trace is not None:
        STATE.trace.look(operands)
    if STATE.grad_enabled:
        for t in operands:
            if t.__class__ is not Recorded and (t._node is not None or t._leaf or t._base is not None) and t._tracked():
                make_node(defn, operands, attrs, results, value.loc)
                break
    return results


def record_view(source: Tensor, view: View) -> Tensor:
    """A view of `source`: the same storage, one step further along the chain."""
    if STATE.trace is not None:
        (source,) = STATE.trace.inside((source,))
    return transforming.record_view(source, view) if STATE.transforming else record_view_plain(source, view)


def record_view_plain(source: Tensor, view: View) -> Tensor:
    """A view of a tensor that is not batched; tangents are not followed."""
    base = source._base if source._base is not None else source
    made = Tensor(source._storage, view.type, (*source._views, view), base)
    if STATE.trace is not None:
        STATE.trace.look((source,))
    if STATE.grad_enabled:
        made._refusal = source._refusal
        if (source._node is not None or source._leaf or source._base is not None) and source._tracked():
            make_node(view.defn, (source,), view.attrs, made, STATE.loc or user_frame())
    else:
        made._refusal = NO_GRAD_VIEW if source._refusal is None or source._refusal is VIEW_OF_LEAF else source._refusal
    return made


def view(source: Tensor, defn: OpDef, attrs: Mapping[str, AttrValue]) -> Tensor:
    """Records a view op."""
    type = defn.infer((source._type,), attrs)
    assert isinstance(type, TensorType)
    return record_view(source, View(defn, dict(attrs), type))


def record_scatter(base: Tensor, steps: Sequence[View], new: Tensor, places: Tensor | None = None) -> Tensor:
    """`base` with the part that `steps` leads to (of that, the elements at `places`) replaced by `new`: differentiable in both."""
    step, rest = steps[0], steps[1:]
    inner = _read_step(base, step) if rest else new
    if step.defn is shape.broadcast_to:
        return _narrowed(base, inner, rest, new, places)
    if rest:
        new = record_scatter(inner, rest, new, places)
    inverse = INVERSE.get(step.defn)
    if inverse is not None:
        return inverse(base, step, new)
    return record(SCATTER[step.defn], (base, new), step.attrs)  # type: ignore[no-any-return]


def _narrowed(base: Tensor, inner: Tensor, rest: Sequence[View], new: Tensor, places: Tensor | None) -> Tensor:
    """`base` after a write to a part of `inner`, which is `base` expanded."""
    from tpc.functions.expanded import narrowed
    from tpc.functions.factories import ones, zeros

    if places is None:
        places = ones(new._type.shape, dtype=bool)
    if not rest:
        return narrowed(base, new, places)
    marked = record_scatter(zeros(inner._type.shape, dtype=bool), rest, places)
    return narrowed(base, record_scatter(inner, rest, new), marked)


def _read_step(base: Tensor, step: View) -> Tensor:
    """The part of a snapshot that `step` shows, as a value of its own."""
    return record(step.defn, (base,), step.attrs)  # type: ignore[no-any-return]


def _unpermute(base: Tensor, step: View, new: Tensor) -> Tensor:
    dims = step.attrs["dims"]
    assert isinstance(dims, tuple)
    inverse = sorted(range(len(dims)), key=lambda i: dims[i])  # type: ignore[arg-type, return-value]
    return record(shape.permute, (new,), {"dims": tuple(inverse)})  # type: ignore[no-any-return]


INVERSE: dict[OpDef, Callable[[Tensor, View, Tensor], Tensor]] = {
    shape.reshape: lambda base, step, new: record(shape.reshape, (new,), {"shape": base._type.shape}),
    shape.permute: _unpermute,
    pairs.as_real: lambda base, step, new: record(pairs.as_complex, (new,)),
    pairs.as_complex: lambda base, step, new: record(pairs.as_real, (new,)),
    elementwise.real: lambda base, step, new: record(pairs.complex_, (new, record(elementwise.imag, (base,)))),
    elementwise.imag: lambda base, step, new: record(pairs.complex_, (record(elementwise.real, (base,)), new)),
}
"""Views that are written by other ops than a scatter: those that show all of their base, and the parts of complex numbers."""

SCATTER = {shape.slice_: shape.slice_scatter, shape.diagonal: shape.diagonal_scatter}
"""Views that show a part: the op that writes it."""


# --- dtypes -------------------------------------------------------------------------------------


def promoted(operands: Sequence[Any], promotion: str) -> list[Any]:
    """Tensors and Python scalars brought to PyTorch's common dtype: casts for tensors, constants for scalars."""
    dtype: str | None = None
    mixed = False
    for x in operands:
        if x.__class__ is Tensor or isinstance(x, Tensor):
            if dtype is None:
                dtype = x._type.dtype
            elif x._type.dtype != dtype:
                mixed = True
        elif _CATEGORY.get(x.__class__, 9) > (category(dtype) if dtype is not None else -1):
            mixed = True
    if mixed or dtype is None:
        dtype = common_dtype(operands)
    if promotion == "float" and category(dtype) < 2:
        dtype = default_dtype()
    out: list[Any] = []
    for x in operands:
        if x.__class__ is Tensor or isinstance(x, Tensor):
            out.append(x if x._type.dtype == dtype else cast(x, dtype))
        else:
            out.append(constant(x.item() if isinstance(x, np.generic) else x, dtype))
    return out


_CATEGORY = {bool: 0, int: 1, float: 2, complex: 3}
"""Category of Python scalars: one that is not above a tensor's leaves its dtype alone."""


def common_dtype(operands: Sequence[Any]) -> str:
    """PyTorch's result type: tensors with dimensions first, then 0-d tensors, then Python scalars, by category."""
    dimensioned: str | None = None
    zero_dim: str | None = None
    scalar: str | None = None
    for x in operands:
        if isinstance(x, Tensor):
            if x._type.shape:
                dimensioned = promote(dimensioned, x._type.dtype)
            else:
                zero_dim = promote(zero_dim, x._type.dtype)
        elif isinstance(x, SCALARS):
            scalar = promote(scalar, scalar_dtype(x))
        else:
            raise TypeError(f"expected Tensor or Number as argument, but got {type(x).__name__}")
    result = combine(combine(dimensioned, zero_dim), scalar)
    assert result is not None
    return result


_CAST_ATTRS = {d: {"dtype": d} for d in ("bool", *(f"{k}{n}" for k in "ui" for n in (8, 16, 32, 64)), "f16", "f32", "f64", "c64", "c128")}


def cast(x: Tensor, dtype: str) -> Tensor:
    """`x` in another dtype (itself where it has it)."""
    return x if x._type.dtype == dtype else record(elementwise.cast, (x,), _CAST_ATTRS[dtype])


def scalar_tensor(value: Any, dtype: str) -> Tensor:
    """A 0-d tensor of a constant (a copy of it: constants are shared and never become arrays)."""
    type = tensor_type(dtype, ())
    return Tensor(Storage(emit(elementwise.copy, (constant(value, dtype),), NO_ATTRS, type)), type)
