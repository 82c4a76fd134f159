"""`tpc.autograd.forward_ad`: forward mode, by dual tensors."""

from __future__ import annotations

from typing import NamedTuple

from tpc.autograd.tangents import Level, set_tangent, tangent_of
from tpc.ir.types import is_differentiable
from tpc.state import STATE
from tpc.tensor import Tensor


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent (None where it has none)."""

    primal: Tensor
    tangent: Tensor | None


def enter_level() -> Level:
    """Makes a new innermost level."""
    level = Level()
    STATE.duals = (*STATE.duals, level)
    STATE.transforming = True
    return level


def exit_level(level: Level) -> None:
    """Ends a level; its tangents are out of reach from now on."""
    STATE.duals = tuple(d for d in STATE.duals if d is not level)
    STATE.transforming = bool(STATE.duals or STATE.vmaps)


def enter_dual_level() -> Level:
    """Begins forward mode; `RuntimeError` where it is on already."""
    if STATE.duals:
        raise RuntimeError("Nested forward mode AD is not supported at the moment. If you need it, use tpc.func.jvp, whose levels nest.")
    return enter_level()


def exit_dual_level(*, level: Level | None = None) -> None:
    """Ends forward mode."""
    if not STATE.duals:
        raise RuntimeError("Trying to exit a forward AD level but no level exists")
    exit_level(level if level is not None else STATE.duals[-1])


class dual_level:  # noqa: N801 - PyTorch's spelling
    """Forward mode for a block."""

    def __enter__(self) -> Level:
        self.level = enter_dual_level()
        return self.level

    def __exit__(self, *exc: object) -> None:
        exit_level(self.level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Level | None = None) -> Tensor:
    """An alias of `tensor` that carries `tangent` (same shape and dtype); `RuntimeError` outside of a level."""
    if not STATE.duals:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    if not is_differentiable(tensor._type.dtype):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not is_differentiable(tangent._type.dtype):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor._type.shape != tangent._type.shape:
        raise RuntimeError(
            f"Expected primal and tangent to have the same shape: {list(tensor._type.shape)} and {list(tangent._type.shape)} "
            "(different size)"
        )
    level = level if level is not None else STATE.duals[-1]
    made = _alias(tensor)
    if tensor._tangent is not None:
        made._tangent = dict(tensor._tangent)
    set_tangent(made, level, tangent)
    return made


def _alias(tensor: Tensor) -> Tensor:
    """A view of the whole tensor, without tangents."""
    from tpc.ir.ops import shape
    from tpc.record import view

    outer, STATE.duals = STATE.duals, ()
    try:
        return view(tensor, shape.reshape, {"shape": tensor._type.shape})
    finally:
        STATE.duals = outer


def unpack_dual(tensor: Tensor, *, level: Level | None = None) -> UnpackedDualTensor:
    """The value without tangent, and the tangent; outside of a level (tensor, None)."""
    level = level if level is not None else STATE.duals[-1] if STATE.duals else None
    if level is None:
        return UnpackedDualTensor(tensor, None)
    primal = _alias(tensor)
    if tensor._tangent is not None:
        primal._tangent = {k: v for k, v in tensor._tangent.items() if k is not level}
    return UnpackedDualTensor(primal, tangent_of(tensor, level))


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
