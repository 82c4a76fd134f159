"""Recording while transforms are active: batches first, then tangents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.autograd import tangents
from tpc.autograd.rules import make_node
from tpc.batching.batched import Batched, VmapLevel, depth_of, innermost, is_batched, lowered
from tpc.ir.opdef import AttrValue, OpDef
from tpc.recording import Recorded, user_frame
from tpc.state import STATE
from tpc.tensor import Tensor, View


def record(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue]) -> Any:
    """Records an op whose operands may be batched or carry tangents."""
    from tpc.record import record_plain

    level = innermost(operands)
    if level is None:
        results = record_plain(defn, operands, attrs)
        if STATE.duals:
            tangents.propagate(defn, operands, attrs, results)
        return results
    results = _batched(level, defn, operands, attrs)
    own = [_own(t, level) for t in operands]
    _track(defn, own, attrs, results)
    _propagate_above(level, defn, own, attrs, results)
    return results


def _batched(level: VmapLevel, defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue]) -> Any:
    from tpc.batching.rules import rule_of

    rule = rule_of(defn)
    if rule is None:
        raise RuntimeError(f"vmap: {defn.name} has no batching rule")
    flags = [is_batched(t, level) for t in operands]
    with lowered(level):
        got = rule(defn, [_below(t, level) for t in operands], flags, attrs, level.batch_size)
    return tuple(Batched(r, level) for r in got) if got.__class__ is tuple else Batched(got, level)


def _below(t: Any, level: VmapLevel) -> Any:
    """The operand as what lies below the level sees it: physical, and without history from above."""
    if t.__class__ is Recorded:
        return t
    if is_batched(t, level):
        return t._physical
    return t._without_history() if t._tracked() and depth_of(t) >= level.depth else t


def _own(t: Any, level: VmapLevel) -> Any:
    """The operand as the level itself sees it: without history from below."""
    if t.__class__ is Recorded or is_batched(t, level):
        return t
    return t if not t._tracked() or depth_of(t) >= level.depth else t._without_history()


def _track(defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue], results: Any) -> None:
    if STATE.grad_enabled and any(t.__class__ is not Recorded and t._tracked() for t in operands):
        make_node(defn, operands, attrs, results, STATE.loc or user_frame())


def _propagate_above(level: VmapLevel, defn: OpDef, operands: Sequence[Any], attrs: Mapping[str, AttrValue], results: Any) -> None:
    outer = STATE.duals
    STATE.duals = tuple(d for d in outer if d.depth >= level.depth)
    try:
        if STATE.duals:
            tangents.propagate(defn, operands, attrs, results)
    finally:
        STATE.duals = outer


def record_view(source: Tensor, view: View) -> Tensor:
    """Records a view of a tensor that may be batched or carry tangents."""
    from tpc.record import record_view_plain

    if not isinstance(source, Batched):
        made = record_view_plain(source, view)
        _view_tangents(source, view, made)
        return made
    level = source._level
    made = _batched_view(source, view)
    made._base = source._base if source._base is not None else source
    made._views = (*source._views, view)
    made._base_edits = made._base._edits
    _track(view.defn, (_own(source, level),), view.attrs, made)
    _view_tangents(source, view, made)
    return made


def _batched_view(source: Batched, view: View) -> Batched:
    from tpc.batching.rules import aligned, view_attrs
    from tpc.ir.ops import shape
    from tpc.record import view as see

    level = source._level
    with lowered(level):
        physical = source._physical
        if view.defn is shape.broadcast_to:
            physical = aligned(physical, True, len(view.type.shape))
        return Batched(see(physical, view.defn, view_attrs(view.defn, view.attrs, level.batch_size)), level)


def _view_tangents(source: Tensor, view: View, made: Tensor) -> None:
    """The tangent of a view is the same view of the tangent."""
    for level in STATE.duals:
        tangent = tangents.tangent_of(source, level)
        if tangent is not None:
            from tpc.record import view as see

            with tangents.below(level):
                tangents.set_tangent(made, level, see(tangent, view.defn, view.attrs))


def written(x: Tensor, new: Tensor) -> None:
    """After `x` took the content of `new` in place: its tangent does the same."""
    for level in STATE.duals:
        old, tangent = tangents.tangent_of(x, level), tangents.tangent_of(new, level)
        if old is None and tangent is None:
            continue
        with tangents.below(level):
            if old is not None:
                from tpc.functions.factories import zeros_of

                old._write(tangent if tangent is not None else zeros_of(x._type))
            elif tangent is not None:
                tangents.set_tangent(x, level, tangent._snapshot())
