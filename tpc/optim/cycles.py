"""Schedules of single steps that cycle rate and momentum, and one that follows a measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tpc.optim.optimizer import Optimizer
from tpc.optim.schedules import LRScheduler


def _each(value: Any, count: int, name: str) -> list[float]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)} values, not {count}.")
    return values


class _Cycling(LRScheduler):
    """Momentum goes against the rate. It is kept in tensors, so that a compiled step needs no new recording."""

    cycles_momentum = False

    def _cycle_momentum(self, first: list[float]) -> None:
        self.cycles_momentum = True
        for group in self.optimizer.param_groups:
            if "betas" not in group and not group.get("momentum"):
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            group.vary("betas" if "betas" in group else "momentum")
        self._set_momentum(first)

    def _set_momentum(self, values: list[float]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            if "betas" in group:
                group["betas"] = (value, *[float(b) for b in group["betas"][1:]])
            else:
                group["momentum"] = value

    def momenta(self) -> list[float]:
        """The momenta at `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        if self.cycles_momentum:
            self._set_momentum(self.momenta())


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def _linear(start: float, end: float, share: float) -> float:
    return start + (end - start) * share


class OneCycleLR(_Cycling):
    """From `max_lr / div_factor` up to `max_lr` and down to almost nothing, in `total_steps` (Smith & Topin 2018)."""

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
        base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.optimizer, self.total_steps, self.anneal_strategy = optimizer, total_steps, anneal_strategy
        self.ends = [pct_start * total_steps - 1, total_steps - 1.0]
        if three_phase:
            self.ends.insert(1, 2 * pct_start * total_steps - 2)
        count = len(optimizer.param_groups)
        self.corners = [
            [top / div_factor, top, *([top / div_factor] if three_phase else []), top / div_factor / final_div_factor]
            for top in _each(max_lr, count, "max_lr")
        ]
        low, high = _each(base_momentum, count, "base_momentum"), _each(max_momentum, count, "max_momentum")
        self.momentum_corners = [[h, b, h, *([h] if three_phase else [])] for b, h in zip(low, high, strict=True)]
        if last_epoch == -1:
            for group, corners in zip(optimizer.param_groups, self.corners, strict=True):
                group["initial_lr"] = corners[0]
        if cycle_momentum:
            self._cycle_momentum(high)
        super().__init__(optimizer, last_epoch)

    def _at(self, corners: list[float]) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        phase = next((i for i, end in enumerate(self.ends) if step <= end), len(self.ends) - 1)
        begin = self.ends[phase - 1] if phase else 0.0
        anneal = _cosine if self.anneal_strategy == "cos" else _linear
        return anneal(corners[phase], corners[phase + 1], (step - begin) / (self.ends[phase] - begin))

    def get_lr(self) -> list[float]:
        return [self._at(corners) for corners in self.corners]

    def momenta(self) -> list[float]:
        return [self._at(corners) for corners in self.momentum_corners]


class CyclicLR(_Cycling):
    """Up and down between `base_lr` and `max_lr` (Smith 2017); mode "triangular", "triangular2" (half as high each time), "exp_range"."""

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        count = len(optimizer.param_groups)
        base, self.optimizer = _each(base_lr, count, "base_lr"), optimizer
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base, strict=True):
                group["lr"] = rate
                group["initial_lr"] = rate
        self.max_lrs = _each(max_lr, count, "max_lr")
        self.up, self.down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.base_momenta = _each(base_momentum, count, "base_momentum")
        self.max_momenta = _each(max_momentum, count, "max_momentum")
        if cycle_momentum:
            self._cycle_momentum(self.max_momenta)
        super().__init__(optimizer, last_epoch)

    def _height(self) -> float:
        """How far up it is, from 0 to 1, scaled by the mode."""
        total = self.up + self.down
        cycle = math.floor(1 + self.last_epoch / total)
        at = 1 + self.last_epoch / total - cycle
        up = self.up / total
        height = at / up if at <= up else (at - 1) / (up - 1)
        x = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self.scale_fn is not None:
            return height * self.scale_fn(x)
        scale = {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}
        return float(height * scale[self.mode])

    def get_lr(self) -> list[float]:
        height = self._height()
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def momenta(self) -> list[float]:
        height = self._height()
        return [high - (high - low) * height for low, high in zip(self.base_momenta, self.max_momenta, strict=True)]


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure, given to `step`, has not got better for `patience` epochs."""

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience, self.cooldown = optimizer, mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.eps = threshold, threshold_mode, eps
        self.min_lrs = _each(min_lr, len(optimizer.param_groups), "min_lr")
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self.rates()

    def is_better(self, a: float, best: float) -> bool:
        """Whether a measure is better by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        margin = sign * self.threshold
        return sign * a > sign * (best * (1 + margin) if self.threshold_mode == "rel" else best + margin)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the measure of the epoch."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            lower = [max(rate * self.factor, low) for rate, low in zip(self.rates(), self.min_lrs, strict=True)]
            self._set([new if old - new > self.eps else old for old, new in zip(self.rates(), lower, strict=True)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self.rates()
