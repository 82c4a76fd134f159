"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpc.functions.elementwise import maximum
from tpc.optim.optimizer import Optimizer, check, is_scalar_at_least, no_others
from tpc.tensor import Tensor


class Adam(Optimizer):
    """Kingma & Ba 2015, algorithm 1, with PyTorch's options; weight decay is added to the gradient. `ValueError` for settings out of
    range."""

    DECOUPLED = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **flags: Any,
    ) -> None:
        no_others(flags)
        check(is_scalar_at_least(lr, 0.0), "learning rate", lr)
        check(eps >= 0.0, "epsilon value", eps)
        check(0.0 <= betas[0] < 1.0, "beta parameter at index 0", betas[0])
        check(0.0 <= betas[1] < 1.0, "beta parameter at index 1", betas[1])
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize}
        )

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        names = ("step", "exp_avg", "exp_avg_sq")
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        grad = -grad if group["maximize"] else grad
        if decay and self.DECOUPLED:
            p.mul_(1 - lr * decay)
        elif decay:
            grad = grad + p * decay
        mean, square, step = state["exp_avg"], state["exp_avg_sq"], state["step"]
        mean.mul_(beta1).add_(grad * (1 - beta1))
        square.mul_(beta2).add_(grad * grad * (1 - beta2))
        if group["amsgrad"]:
            state["max_exp_avg_sq"].copy_(maximum(state["max_exp_avg_sq"], square))
            square = state["max_exp_avg_sq"]
        # lr * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), with the scalar factors gathered: a pass less over the parameters.
        root = (1 - beta2**step).sqrt()
        rate = lr / (1 - beta1**step) * root
        p.sub_(mean / (square.sqrt() + group["eps"] * root) * rate)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); `weight_decay` is 0.01 unless given."""

    DECOUPLED = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **flags: Any,
    ) -> None:
        no_others(flags)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
