"""Gradients kept within bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.functions.factories import tensor
from tpc.functions.joining import stack
from tpc.functions.norms import norm
from tpc.tensor import Tensor


def _gradients(parameters: Any) -> list[Any]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in given if p.grad is not None]


def get_total_norm(tensors: Iterable[Any], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None) -> Any:
    """The norm of all tensors as one vector; `RuntimeError` where it is not finite and that is asked for."""
    norms = [norm(t.detach(), norm_type) for t in ([tensors] if isinstance(tensors, Tensor) else tensors)]
    total: Any = norm(stack(norms), norm_type) if norms else tensor(0.0)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
            "error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None) -> Any:
    """Scales all gradients together, so that their norm is at most `max_norm`; returns what it was."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = _gradients(parameters)
    total = get_total_norm(grads, float(norm_type), error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None) -> None:
    """Scales all gradients together by what brings a norm of `total_norm` down to `max_norm`."""
    with no_grad():
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _gradients(parameters):
            grad.mul_(scale)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Brings every element of the gradients into [-clip_value, clip_value]."""
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(-clip_value, clip_value)
