"""tiny: a handful of operators on 16-element tensors, forward, backward and update. What is measured is overhead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import swish

RATE = 1e-3


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    return {name: rng.standard_normal(16, np.float32) for name in ("x", "w", "b")}


def by_hand(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> Callable[[], Any]:
    w, b = w.copy(), b.copy()
    rate = np.float32(RATE)

    def step() -> Any:
        h = x * w + b
        s = 1 / (1 + np.exp(-h))
        loss = (h * s).sum()
        dh = s + h * s * (1 - s)
        w[:] -= rate * (dh * x)
        b[:] -= rate * dh
        return loss, w, b

    return step


class Program:
    STATEFUL = True

    def __init__(self, lib: Any, x: np.ndarray, w: np.ndarray, b: np.ndarray) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x),)
        self.parameters = [lib.tensor(w).requires_grad_(), lib.tensor(b).requires_grad_()]
        self.swish = swish(lib)

    def forward(self, x: Any) -> Any:
        w, b = self.parameters
        return self.swish(x * w + b).sum()

    def step(self, x: Any) -> Any:
        loss = self.forward(x)
        gradients = self.lib.autograd.grad(loss, self.parameters)
        with self.lib.no_grad():
            for p, g in zip(self.parameters, gradients, strict=True):
                p.sub_(g * RATE)
        return (loss.detach(),)
