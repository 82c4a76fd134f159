"""Optimisers that step by signs, or that keep the average of where they have been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpc.functions.elementwise import where
from tpc.functions.factories import full_like
from tpc.optim.optimizer import Optimizer, check, directed, is_scalar_at_least, no_others
from tpc.tensor import Tensor


class Rprop(Optimizer):
    """Each element has a step of its own, which grows while its gradient keeps its sign (Riedmiller & Braun 1993).

    Where the sign has changed, the element stays where it is and the next gradient counts as the first.
    """

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), *, maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        no_others(flags)
        check(is_scalar_at_least(lr, 0.0), "learning rate", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize, "weight_decay": 0.0})

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", "prev", "step_size")

    def initial_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Every step begins at `lr`."""
        return {**super().initial_state(p, group), "step_size": full_like(p.detach(), float(group["lr"]))}

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad, (shrink, grow), size = directed(p, grad, group), group["etas"], state["step_size"]
        turned = grad * state["prev"]
        size.copy_(where(turned > 0, size * grow, where(turned < 0, size * shrink, size)).clamp(*group["step_sizes"]))
        grad = where(turned < 0, 0.0, grad)
        p.sub_(grad.sign() * size)
        state["prev"].copy_(grad)


class ASGD(Optimizer):
    """Gradient descent with a falling rate that also averages its way, in the state `ax` (Polyak & Juditsky 1992; Bottou 2012)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        no_others(flags)
        check(is_scalar_at_least(lr, 0.0), "learning rate", lr)
        check(weight_decay >= 0.0, "weight_decay value", weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize})

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", "ax", "eta", "mu")

    def initial_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """The rate begins at `lr`; while `mu` is one, the average is the parameter itself."""
        made = super().initial_state(p, group)
        return {**made, "eta": full_like(made["step"], float(group["lr"])), "mu": full_like(made["step"], 1.0)}

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad, rate, share, average, step = directed(p, grad, group), state["eta"], state["mu"], state["ax"], state["step"]
        p.mul_(1 - group["lambd"] * rate).sub_(grad * rate)
        average.copy_(where(share == 1, p, average + (p - average) * share))
        rate.copy_(group["lr"] / (1 + group["lr"] * group["lambd"] * step) ** group["alpha"])
        share.copy_(1 / (step - group["t0"]).clamp(min=1))
