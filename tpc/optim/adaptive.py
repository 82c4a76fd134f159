"""Optimisers that scale each element's step by the gradients it has seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpc.functions.elementwise import maximum, where
from tpc.functions.factories import full_like
from tpc.optim.optimizer import Optimizer, check, check_betas, directed, is_scalar_at_least, no_others
from tpc.tensor import Tensor


class _Adaptive(Optimizer):
    """Checks what all have in common."""

    def __init__(self, params: Iterable[Any], flags: Mapping[str, Any], **settings: Any) -> None:
        no_others(flags)
        check(is_scalar_at_least(settings["lr"], 0.0), "learning rate", settings["lr"])
        check(settings["eps"] >= 0.0, "epsilon value", settings["eps"])
        check(settings["weight_decay"] >= 0.0, "weight_decay value", settings["weight_decay"])
        if "betas" in settings:
            check_betas(settings["betas"])
        super().__init__(params, settings)


class RMSprop(_Adaptive):
    """p -= lr * g / (sqrt(mean of g**2) + eps) (Hinton's lecture 6e; `centered`: Graves 2013, without the square of the mean)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        check(momentum >= 0.0, "momentum value", momentum)
        check(alpha >= 0.0, "alpha value", alpha)
        super().__init__(
            params, flags, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered, maximize=maximize
        )

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        more = (("momentum_buffer",) if group["momentum"] else ()) + (("grad_avg",) if group["centered"] else ())
        return ("step", "square_avg", *more)

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad, alpha, square = directed(p, grad, group), group["alpha"], state["square_avg"]
        square.mul_(alpha).add_(grad * grad * (1 - alpha))
        if "grad_avg" in state:
            mean = state["grad_avg"]
            mean.mul_(alpha).add_(grad * (1 - alpha))
            square = square - mean * mean
        step = grad / (square.sqrt() + group["eps"])
        if "momentum_buffer" in state:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        p.sub_(step * group["lr"])


class Adagrad(_Adaptive):
    """p -= lr * g / (sqrt(sum of g**2) + eps) (Duchi et al. 2011)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        check(lr_decay >= 0.0, "lr_decay value", lr_decay)
        check(initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value)
        super().__init__(
            params, flags, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value,
            eps=eps, maximize=maximize,
        )  # fmt: skip

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", "sum")

    def initial_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """The sums begin at `initial_accumulator_value`."""
        return {**super().initial_state(p, group), "sum": full_like(p.detach(), group["initial_accumulator_value"])}

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad = directed(p, grad, group)
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        state["sum"].add_(grad * grad)
        p.sub_(grad / (state["sum"].sqrt() + group["eps"]) * rate)


class Adadelta(_Adaptive):
    """Steps as large as the steps before, in root mean square (Zeiler 2012)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
        maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        check(0.0 <= rho <= 1.0, "rho value", rho)
        super().__init__(params, flags, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", "square_avg", "acc_delta")

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad, rho, eps = directed(p, grad, group), group["rho"], group["eps"]
        square, moved = state["square_avg"], state["acc_delta"]
        square.mul_(rho).add_(grad * grad * (1 - rho))
        step = (moved + eps).sqrt() / (square + eps).sqrt() * grad
        moved.mul_(rho).add_(step * step * (1 - rho))
        p.sub_(step * group["lr"])


class Adamax(_Adaptive):
    """Adam with the largest gradient in place of the mean square (Kingma & Ba 2015, section 7)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, *, maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, flags, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_inf")

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad, (beta1, beta2) = directed(p, grad, group), group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.mul_(beta1).add_(grad * (1 - beta1))
        largest.copy_(maximum(largest * beta2, grad.abs() + group["eps"]))
        p.sub_(mean / largest * (group["lr"] / (1 - beta1 ** state["step"])))


class _Decoupling(_Adaptive):
    def __init__(
        self, params: Iterable[Any], lr: float | Tensor, betas: tuple[float, float], eps: float, weight_decay: float, decoupled: bool,
        maximize: bool, flags: Mapping[str, Any], **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            params, flags, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, decoupled_weight_decay=decoupled, maximize=maximize,
            **more,
        )  # fmt: skip

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_avg_sq")

    def moments(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """The gradient, its running mean, its running mean square."""
        grad = directed(p, grad, group, group["decoupled_weight_decay"])
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(beta1).add_(grad * (1 - beta1))
        square.mul_(beta2).add_(grad * grad * (1 - beta2))
        return grad, mean, square


class NAdam(_Decoupling):
    """Adam with Nesterov momentum (Dozat 2016, with the momentum schedule of the appendix)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, maximize: bool = False,
        **flags: Any,
    ) -> None:  # fmt: skip
        check(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        super().__init__(params, lr, betas, eps, weight_decay, decoupled_weight_decay, maximize, flags, momentum_decay=momentum_decay)

    def initial_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """The product of momenta begins at one."""
        made = super().initial_state(p, group)
        return {**made, "mu_product": full_like(made["step"], 1.0)}

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        grad, mean, square = self.moments(p, grad, state, group)
        (beta1, beta2), step, decay, lr = group["betas"], state["step"], group["momentum_decay"], group["lr"]
        now = (1 - 0.96 ** (step * decay) * 0.5) * beta1
        following = (1 - 0.96 ** ((step + 1) * decay) * 0.5) * beta1
        product = state["mu_product"].mul_(now)
        root = (square / (1 - beta2**step)).sqrt() + group["eps"]
        p.sub_(grad / root * (lr * (1 - now) / (1 - product)))
        p.sub_(mean / root * (lr * following / (1 - product * following)))


class RAdam(_Decoupling):
    """Adam that waits with scaling until the mean square can be trusted (Liu et al. 2020)."""

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False, **flags: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, decoupled_weight_decay, maximize, flags)

    def update(self, p: Any, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        _, mean, square = self.moments(p, grad, state, group)
        (beta1, beta2), step = group["betas"], state["step"]
        left = 1 - beta2**step
        limit = 2 / (1 - beta2) - 1
        length = limit - step * beta2**step * 2 / left
        rectified = ((length - 4) * (length - 2) * limit / (length * ((limit - 4) * (limit - 2)))).clamp(min=0).sqrt()
        scaled = rectified * left.sqrt() / (square.sqrt() + group["eps"])
        p.sub_(mean * where(length > 5, scaled, 1.0) * (group["lr"] / (1 - beta1**step)))
