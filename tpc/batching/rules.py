"""What each op does with a batch: a call on tensors with hidden batch dimensions becomes one on the physical tensors.

A rule gets the op, operands (physical where batched at the level, else without batch), flags saying which are batched, and the level;
it returns the
physical result, batch first. Families share rules; an op of its own kind has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpc.ir.opdef import AttrValue, OpDef, all_ops
from tpc.ir.ops import indexing, reduction, shape
from tpc.record import record_typed as record
from tpc.recording import Recorded
from tpc.tensor import Tensor

Rule = Callable[[OpDef, Sequence[Any], Sequence[bool], Mapping[str, AttrValue], int], Any]

RULES: dict[OpDef, Rule] = {}


def batching(*defns: OpDef) -> Callable[[Rule], Rule]:
    """Enters a rule for these ops."""

    def enter(rule: Rule) -> Rule:
        for defn in defns:
            RULES[defn] = rule
        return rule

    return enter


def rule_of(defn: OpDef) -> Rule | None:
    """The rule of an op: its own, or that of elementwise ops."""
    return RULES.get(defn) or (_elementwise if defn.elementwise else None)


def has_rule(defn: OpDef) -> bool:
    """Whether an op may be batched (ops without operands never are)."""
    return rule_of(defn) is not None or not defn.operands or defn.random


def rank_of(x: Any, batched: bool) -> int:
    type = x.type if x.__class__ is Recorded else x._type
    return len(type.shape) - batched


def reshaped(x: Tensor, new: tuple[int, ...]) -> Tensor:
    return record(shape.reshape, (x,), {"shape": new})  # type: ignore[no-any-return]


def aligned(x: Any, batched: bool, rank: int) -> Any:
    """A batched operand with ones behind the batch, so that its other axes meet those of an operand of that rank."""
    if not batched or rank_of(x, True) == rank:
        return x
    size = x._type.shape
    return reshaped(x, (size[0], *[1] * (rank - len(size) + 1), *size[1:]))


def expanded(x: Tensor, batched: bool, batch: int) -> Tensor:
    """An operand with a batch dimension, made up where it has none."""
    if batched:
        return x
    return record(shape.broadcast_to, (reshaped(x, (1, *x._type.shape)),), {"shape": (batch, *x._type.shape)})  # type: ignore[no-any-return]


def _elementwise(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    rank = max(rank_of(x, f) for x, f in zip(xs, flags, strict=True))
    return record(defn, [aligned(x, f, rank) for x, f in zip(xs, flags, strict=True)], attrs)


# --- along axes ---------------------------------------------------------------------------------


def _shifted(attrs: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {k: (tuple(d + 1 for d in v) if isinstance(v, tuple) else v + 1) if k in names else v for k, v in attrs.items()}


_REDUCTIONS = [d for d in all_ops() if "dims" in d.attrs and d.reduction]


@batching(*_REDUCTIONS, shape.flip)
def _over_dims(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    return record(defn, xs, _shifted(attrs, "dims"))


@batching(reduction.softmax, reduction.log_softmax, reduction.sort, shape.cumsum, shape.cumprod)
def _along_dim(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    (x,) = xs
    if rank_of(x, True) == 0:
        # A scalar has one element along its only axis.
        results = record(defn, (reshaped(x, (batch, 1)),), {**attrs, "dim": 1})
        return tuple(reshaped(r, (batch,)) for r in results) if isinstance(results, tuple) else reshaped(results, (batch,))
    return record(defn, xs, _shifted(attrs, "dim"))


@batching(reduction.argmax, reduction.argmin)
def _arg(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    (x,) = xs
    inner = x._type.shape[1:]
    if attrs["dim"] is None or not inner:
        flat = record(defn, (reshaped(x, (batch, _count(inner))),), {"dim": 1, "keepdim": False})
        return reshaped(flat, (batch, *[1] * len(inner))) if attrs["keepdim"] else flat
    return record(defn, xs, _shifted(attrs, "dim"))


def _count(shape: Sequence[int]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


@batching(shape.tril, shape.triu)
def _last_two(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    return record(defn, xs, attrs)


@batching(shape.pad)
def _pad(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    return record(defn, xs, {"low": (0, *attrs["low"]), "high": (0, *attrs["high"]), "value": attrs["value"]})


@batching(shape.cat)
def _cat(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    return record(defn, [expanded(x, f, batch) for x, f in zip(xs, flags, strict=True)], _shifted(attrs, "dim"))


# --- views and what writes through them ---------------------------------------------------------


def view_attrs(defn: OpDef, attrs: Mapping[str, Any], batch: int) -> dict[str, Any]:
    """The attributes of a view op that leaves a leading batch dimension alone."""
    if defn in (shape.reshape, shape.broadcast_to):
        return {"shape": (batch, *attrs["shape"])}
    if defn is shape.permute:
        return {"dims": (0, *[d + 1 for d in attrs["dims"]])}
    if defn in (shape.slice_, shape.slice_scatter):
        return {"starts": (0, *attrs["starts"]), "limits": (batch, *attrs["limits"]), "steps": (1, *attrs["steps"])}
    return _shifted(attrs, "dim1", "dim2")


@batching(shape.reshape, shape.permute, shape.slice_, shape.diagonal, shape.broadcast_to)
def _view(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    (x,) = xs
    if defn is shape.broadcast_to:
        x = aligned(x, True, len(attrs["shape"]))  # type: ignore[arg-type]
    return record(defn, (x,), view_attrs(defn, attrs, batch))


@batching(shape.slice_scatter, shape.diagonal_scatter)
def _scatter_view(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    return record(defn, [expanded(x, f, batch) for x, f in zip(xs, flags, strict=True)], view_attrs(defn, attrs, batch))


# --- indexing -----------------------------------------------------------------------------------


def _positions(batch: int, rank: int) -> Tensor:
    """0 .. batch-1 along the first of `rank` + 1 axes: the index of the batch dimension itself."""
    return reshaped(record(shape.iota, (), {"start": 0, "step": 1, "size": batch, "dtype": "i64"}), (batch, *[1] * rank))


def _indices(indices: Sequence[Any], flags: Sequence[bool], batch: int) -> list[Any]:
    """Indices that lead to each sample's own elements: the batch's own, then the given ones, batch first."""
    rank = max(rank_of(i, f) for i, f in zip(indices, flags, strict=True))
    spread = [aligned(i, f, rank) for i, f in zip(indices, flags, strict=True)]
    return [_positions(batch, rank), *spread]


@batching(indexing.index)
def _index(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    x, *indices = xs
    axes = attrs["axes"]
    if not any(flags[1:]):
        moved = record(defn, xs, {"axes": tuple(a + 1 for a in axes)})
        return moved if _adjacent(axes) else _to_front(moved, max(rank_of(i, False) for i in indices))
    rank = max(rank_of(i, f) for i, f in zip(indices, flags[1:], strict=True))
    x = expanded(x, flags[0], batch)
    # With the batch index all picked axes come first: (batch, picked, rest). They belong where the axes were, if those were neighbours.
    result = record(defn, [x, *_indices(indices, flags[1:], batch)], {"axes": (0, *[a + 1 for a in axes])})
    return _inserted(result, rank, axes[0]) if _adjacent(axes) and not _adjacent((0, *[a + 1 for a in axes])) else result


def _adjacent(axes: Sequence[int]) -> bool:
    return axes[-1] - axes[0] == len(axes) - 1


def _to_front(x: Tensor, picked: int) -> Tensor:
    """(picked..., batch, rest...) as (batch, picked..., rest...)."""
    rank = len(x._type.shape)
    return record(shape.permute, (x,), {"dims": (picked, *range(picked), *range(picked + 1, rank))})  # type: ignore[no-any-return]


def _inserted(x: Tensor, picked: int, at: int) -> Tensor:
    """(batch, picked..., rest...) with the picked axes at position `at` of the rest."""
    rank = len(x._type.shape)
    rest = list(range(1 + picked, rank))
    dims = (0, *rest[:at], *range(1, 1 + picked), *rest[at:])
    return record(shape.permute, (x,), {"dims": dims})  # type: ignore[no-any-return]


@batching(indexing.index_put)
def _index_put(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    x, values, *indices = xs
    axes, picked = attrs["axes"], max(rank_of(i, f) for i, f in zip(indices, flags[2:], strict=True))
    inner = rank_of(x, flags[0])
    shifted = (0, *[a + 1 for a in axes])
    rank = picked + inner - len(axes)
    values = aligned(values, flags[1], rank)
    values = values if flags[1] else reshaped(values, (1, *[1] * (rank - len(values._type.shape)), *values._type.shape))
    if _adjacent(axes) and not _adjacent(shifted):
        # The picked axes come first now: move them there in the values too.
        at = axes[0]
        order = (0, *range(1 + at, 1 + at + picked), *range(1, 1 + at), *range(1 + at + picked, 1 + rank))
        values = record(shape.permute, (values,), {"dims": order})
    return record(defn, [expanded(x, flags[0], batch), values, *_indices(indices, flags[2:], batch)], {**attrs, "axes": shifted})


@batching(indexing.gather, indexing.scatter, indexing.scatter_reduce)
def _gathering(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    spread = [expanded(x, f, batch) for x, f in zip(xs, flags, strict=True)]
    if len(spread[0]._type.shape) == 1:
        result = record(defn, [reshaped(x, (batch, 1)) for x in spread], {**attrs, "dim": 1})
        return reshaped(result, (batch,))
    return record(defn, spread, _shifted(attrs, "dim"))


@batching(indexing.index_select)
def _index_select(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    if not flags[1]:
        return record(defn, xs, _shifted(attrs, "dim"))
    return _index(indexing.index, xs, flags, {"axes": (attrs["dim"],)}, batch)


@batching(indexing.index_add)
def _index_add(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    x, index, src = xs
    x, src = expanded(x, flags[0], batch), expanded(src, flags[2], batch)
    if not flags[1]:
        return record(defn, (x, index, src), _shifted(attrs, "dim"))
    rank, dim = len(x._type.shape) - 1, attrs["dim"]
    wide = reshaped(index, (batch, *[1] * dim, index._type.shape[1], *[1] * (rank - dim - 1)))
    wide = record(shape.broadcast_to, (wide,), {"shape": src._type.shape})
    return record(indexing.scatter_reduce, (x, wide, src), {"dim": dim + 1, "reduce": "sum", "include_self": True})


@batching(indexing.masked_scatter)
def _masked_scatter(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    raise RuntimeError("vmap: masked_scatter takes as many elements as the mask has, which differs between samples; use tpc.where instead")


@batching(indexing.nonzero)
def _nonzero(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, AttrValue], batch: int) -> Any:
    raise RuntimeError(
        "vmap: the result of nonzero has another shape for each sample (dynamic shape), which vmap does not support; use tpc.where instead"
    )


def missing() -> list[str]:
    """Ops without a rule."""
    return [d.name for d in all_ops() if not has_rule(d) and d.name != "fusion"]


from tpc.batching import fft as _fft  # noqa: E402, F401 - enters the rules of its family
from tpc.batching import host as _host  # noqa: E402, F401 - enters the rules of its family
from tpc.batching import linalg as _linalg  # noqa: E402, F401 - enters the rules of its family
from tpc.batching import nn as _nn  # noqa: E402, F401 - enters the rules of its family
from tpc.batching import numbers as _numbers  # noqa: E402, F401 - enters the rules of its family
from tpc.batching import pairs as _pairs  # noqa: E402, F401 - enters the rules of its family
