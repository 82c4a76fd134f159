"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpc.functions.elementwise import where
from tpc.optim.optimizer import Optimizer, check, is_scalar_at_least, no_others
from tpc.tensor import Tensor


class SGD(Optimizer):
    """p -= lr * v with v = momentum * v + (1 - dampening) * g (Sutskever et al. 2013 in PyTorch's form); `ValueError` for settings out
    of range."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **flags: Any,
    ) -> None:
        no_others(flags)
        check(is_scalar_at_least(lr, 0.0), "learning rate", lr)
        check(momentum >= 0.0, "momentum value", momentum)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        settings = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        if not group["momentum"]:
            return ()
        return ("step", "momentum_buffer") if group["dampening"] else ("momentum_buffer",)

    def update(self, p: Tensor, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            grad = grad + p * group["weight_decay"]
        if "momentum_buffer" in state:
            buffer = state["momentum_buffer"]
            # The first step takes the gradient as it is, whatever the dampening.
            scale = where(state["step"] == 1, 1.0, 1.0 - group["dampening"]) if group["dampening"] else 1.0
            buffer.mul_(group["momentum"]).add_(grad * scale)
            grad = grad + buffer * group["momentum"] if group["nesterov"] else buffer
        p.sub_(grad * group["lr"])
