"""Schedules of the learning rate by the number of the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tpc.optim.optimizer import Optimizer


class LRScheduler:
    """`step()` after each epoch (or step of the optimiser). Subclasses say by `get_lr` what the rates are at `last_epoch`."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self.step()

    def rates(self) -> list[float]:
        """The rates as they are."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """The rates at `last_epoch`, one for each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch (or the given one) and sets the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not _is_code(v)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)


def _is_code(value: Any) -> bool:
    return callable(value) or (isinstance(value, list) and any(map(callable, value)))


class _ByFactor(LRScheduler):
    """Rates that are multiplied by `factor()` at each epoch but the first."""

    def factor(self) -> float:
        """What the rate of the epoch before is multiplied by."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        return self.rates() if self.last_epoch == 0 else [rate * self.factor() for rate in self.rates()]


class StepLR(_ByFactor):
    """Times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return 1.0 if self.last_epoch % self.step_size else self.gamma


class MultiStepLR(_ByFactor):
    """Times `gamma` at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return float(self.gamma ** self.milestones[self.last_epoch])


class ExponentialLR(_ByFactor):
    """Times `gamma` at each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return self.gamma


class PolynomialLR(_ByFactor):
    """The initial rate times `(1 - epoch / total_iters) ** power`."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        if self.last_epoch > self.total_iters:
            return 1.0
        left = 1.0 - self.last_epoch / self.total_iters
        return float((left / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power)


def _functions(given: Any, optimizer: Optimizer) -> list[Callable[[int], float]]:
    count = len(optimizer.param_groups)
    functions = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(functions) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(functions)}")
    return functions


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions(lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LRScheduler):
    """Times a function of the epoch, at each epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions(lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self.rates()
        return [rate * f(self.last_epoch) for rate, f in zip(self.rates(), self.lr_lambdas, strict=True)]


class LinearLR(LRScheduler):
    """From `start_factor` to `end_factor` times the rate, on a line of `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _at(self, epoch: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * min(epoch, self.total_iters) / self.total_iters

    def get_lr(self) -> list[float]:
        before = 1.0 if self.last_epoch == 0 else self._at(self.last_epoch - 1)
        return [rate * self._at(self.last_epoch) / before for rate in self.rates()]


class ConstantLR(LRScheduler):
    """`factor` times the rate for `total_iters` epochs."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        change = self.factor if self.last_epoch == 0 else 1 / self.factor if self.last_epoch == self.total_iters else 1.0
        return [rate * change for rate in self.rates()]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to `eta_min` in `T_max` epochs, and back (Loshchilov & Hutter 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self.rates()
        low, turn = self.eta_min, math.pi / self.T_max
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [r + (b - low) * (1 - math.cos(turn)) / 2 for b, r in zip(self.base_lrs, self.rates(), strict=True)]
        change = (1 + math.cos(turn * self.last_epoch)) / (1 + math.cos(turn * (self.last_epoch - 1)))
        return [low + change * (rate - low) for rate in self.rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate to `eta_min`, again and again, each `T_mult` times as long as the one before."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        length, at = self.T_0, self.last_epoch
        while at >= length:
            at, length = at - length, length * self.T_mult
        share = (1 + math.cos(math.pi * at / length)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after the other, changing at milestones."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # Each scheduler took its first step when it was made: only that of the first counts.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self.schedulers[0].step(0)
        self._last_lr = self.schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        number = bisect_right(self.milestones, self.last_epoch)
        begins = number > 0 and self.milestones[number - 1] == self.last_epoch
        current = self.schedulers[number]
        if begins:
            current._set(current.base_lrs)
        current.step(0 if begins else None)
        self._last_lr = current.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in super().state_dict().items() if k != "schedulers"}
        return {**own, "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for scheduler, given in zip(self.schedulers, state_dict["schedulers"], strict=True):
            scheduler.load_state_dict(given)
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "schedulers"})


class ChainedScheduler(SequentialLR):
    """Several schedules at once: each changes what the one before has set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.schedulers = list(schedulers)
        self.optimizer = optimizer if optimizer is not None else self.schedulers[0].optimizer
        self._last_lr = self.rates()

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self.schedulers:
            scheduler.step()
        self._last_lr = self.rates()
