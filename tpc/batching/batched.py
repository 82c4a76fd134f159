"""A tensor seen without its batch dimension.

Note: levels. Every active vmap is a level; inner ones lie above outer ones. A `Batched` tensor of level L wraps a physical one, whose
first dimension is
the batch, and which may be batched at levels below L. History and tangents belong to the depth they were made at: those made inside a
vmap live on the batched tensors, those made outside on the physical ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tpc.ir.types import tensor_type
from tpc.recording import Recorded
from tpc.state import STATE, inside
from tpc.tensor import Tensor


class VmapLevel:
    """One application of vmap: its batch size and what random functions do ("error", "same" or "different")."""

    __slots__ = ("batch_size", "depth", "randomness")

    def __init__(self, batch_size: int, randomness: str, depth: int) -> None:
        self.batch_size, self.randomness, self.depth = batch_size, randomness, depth


class entered:  # noqa: N801 - reads as a state
    """Makes a level the innermost one for a block (also a level whose vmap is over: a backward through it runs so)."""

    def __init__(self, level: VmapLevel) -> None:
        self.level = level

    def __enter__(self) -> VmapLevel:
        self.outer = STATE.vmaps, STATE.transforming
        STATE.vmaps, STATE.transforming = (*STATE.vmaps[: self.level.depth - 1], self.level), True
        return self.level

    def __exit__(self, *exc: object) -> None:
        STATE.vmaps, STATE.transforming = self.outer


class Batched(Tensor):
    """A tensor of level `_level` whose `_physical` has the batch as dimension 0."""

    __slots__ = ("_entered", "_level", "_physical")

    def __init__(self, physical: Tensor, level: VmapLevel, entered: tuple[Tensor, int] | None = None) -> None:
        type = physical._type
        super().__init__(physical._storage, tensor_type(type.dtype, type.shape[1:]))
        self._physical, self._level = physical, level
        self._entered = entered if entered is not None else (physical, 0)
        """The tensor that vmap was given, and which of its dimensions is the batch: what a Function's own rule is shown."""

    def _without_history(self) -> Tensor:
        made = Batched(self._physical, self._level, self._entered)
        made._tangent = self._tangent
        return made

    def _read(self) -> Recorded:
        raise RuntimeError("a batched tensor was used outside of the vmap it belongs to")

    def _array(self) -> np.ndarray:
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor (or looking at its values otherwise). We don't support vmap over "
            "calling "
            ".item() on a Tensor, please try to rewrite what you're doing with other operations."
        )

    def _snapshot(self) -> Tensor:
        if (within := inside(self)) is not self:
            return within._snapshot()  # type: ignore[no-any-return]
        made = Batched(self._physical._snapshot(), self._level)
        edge = self._edge()
        if edge is not None:
            made._node, made._slot = edge
        self._copy_tangents(made)
        return made

    def detach(self) -> Tensor:
        if (within := inside(self)) is not self:
            return within.detach()  # type: ignore[no-any-return]
        return Batched(self._physical.detach(), self._level)

    def _unversioned(self) -> Tensor:
        return Batched(self._physical.data, self._level)

    def _store(self, content: Tensor, places: Tensor | None = None) -> None:
        level = self._level
        with lowered(level):
            self._physical._write(physical(content, level), None if places is None else physical(places, level))


class lowered:  # noqa: N801 - reads as a state
    """Within the block only what lies below `level` is active."""

    def __init__(self, level: VmapLevel) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.outer = STATE.vmaps, STATE.duals, STATE.transforming
        STATE.vmaps = STATE.vmaps[: self.level.depth - 1]
        STATE.duals = tuple(d for d in STATE.duals if d.depth < self.level.depth)
        STATE.transforming = bool(STATE.vmaps or STATE.duals)

    def __exit__(self, *exc: object) -> None:
        STATE.vmaps, STATE.duals, STATE.transforming = self.outer


def is_batched(x: Any, level: VmapLevel) -> bool:
    """Whether `x` is batched at this very level."""
    return isinstance(x, Batched) and x._level is level


def physical(x: Tensor, level: VmapLevel) -> Tensor:
    """The tensor with its batch dimension first; one that is not batched at the level is expanded."""
    from tpc.functions.shape import expand, unsqueeze

    if isinstance(x, Batched) and x._level is level:
        return x._physical
    return expand(unsqueeze(x, 0), (level.batch_size, *x._type.shape))


def depth_of(t: Tensor) -> int:
    """How many vmaps were active where the tensor's history began."""
    if t._node is not None:
        return t._node._depth
    return t.__dict__.get("_depth", 0)  # type: ignore[no-any-return]


def innermost(operands: Any) -> VmapLevel | None:
    """The highest level among the operands."""
    found: VmapLevel | None = None
    for t in operands:
        if isinstance(t, Batched) and (found is None or t._level.depth > found.depth):
            found = t._level
    return found
