"""Averages of models along their training (Izmailov et al. 2018), and the schedule for it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.functions.factories import tensor
from tpc.nn.module import Module
from tpc.nn.normalisation import Batch
from tpc.optim.schedules import LRScheduler

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]

Average = Callable[[Any, Any, Any], Any]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """`decay` of the average and the rest of the model."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def average(averaged: Any, current: Any, count: Any) -> Any:
        return averaged * decay + current * (1 - decay)

    return no_grad()(average)


def get_swa_avg_fn() -> Average:
    """The mean of all models so far."""

    def average(averaged: Any, current: Any, count: Any) -> Any:
        return averaged + (current - averaged) / (count + 1)

    return no_grad()(average)


def _for_all(average: Average) -> Callable[[Any, Any, Any], None]:
    def update(averaged: Iterable[Any], current: Iterable[Any], count: Any) -> None:
        with no_grad():
            for old, new in zip(averaged, current, strict=True):
                if old.is_floating_point() or old.is_complex():
                    old.copy_(average(old, new, count))
                else:
                    old.copy_(new)

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """`get_ema_avg_fn` on lists of tensors, in place."""
    return _for_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """`get_swa_avg_fn` on lists of tensors, in place."""
    return _for_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model; `update_parameters(model)` moves it to the average (the mean, if nothing else is said)."""

    n_averaged: Any

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Any = None, use_buffers: bool = False
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", tensor(0))
        self.multi_avg_fn = multi_avg_fn or _for_all(avg_fn or get_swa_avg_fn())
        self.avg_fn, self.use_buffers = avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Moves the average; the first time, it becomes the model."""
        own, given = ([*m.parameters(), *(m.buffers() if self.use_buffers else ())] for m in (self.module, model))
        with no_grad():
            if self.n_averaged == 0:
                for old, new in zip(own, given, strict=True):
                    old.copy_(new)
            else:
                self.multi_avg_fn([p.detach() for p in own], [p.detach() for p in given], self.n_averaged)
            if not self.use_buffers:
                for old, new in zip(self.module.buffers(), model.buffers(), strict=True):
                    old.copy_(new)
            self.n_averaged.add_(1)


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch normalisation anew, from the inputs of a loader (the first part of each batch)."""
    momenta: dict[Any, Any] = {m: m.momentum for m in model.modules() if isinstance(m, Batch)}
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    for batch in loader:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Goes to the rate `swa_lr` in `anneal_epochs` and stays there."""

    def __init__(
        self, optimizer: Any, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        groups = optimizer.param_groups
        for group, rate in zip(groups, swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups), strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        done = max(0.0, min(1.0, epoch / self.anneal_epochs)) if self.anneal_epochs else 1.0
        return (1 - math.cos(math.pi * done)) / 2 if self.anneal_strategy == "cos" else done

    def get_lr(self) -> list[float]:
        # What the rate would be without annealing follows from the last one: others may have changed it.
        before, now = self._share(self.last_epoch - 1), self._share(self.last_epoch)
        rates = []
        for group in self.optimizer.param_groups:
            start = group["swa_lr"] if before == 1 else (float(group["lr"]) - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
