"""adam: one Adam update of 5M parameters in four tensors, gradients given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = ((1024, 4096), (1024, 800), (4096,), (1024,))
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    return {name: [rng.standard_normal(s, np.float32) for s in SHAPES] for name in ("parameters", "gradients")}


def by_hand(parameters: list[np.ndarray], gradients: list[np.ndarray]) -> Callable[[], Any]:
    parameters = [p.copy() for p in parameters]
    means, squares = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    works = [np.empty_like(p) for p in parameters]
    steps = 0
    b1, b2, rest1, rest2 = (np.float32(v) for v in (BETA1, BETA2, 1 - BETA1, 1 - BETA2))

    def step() -> Any:
        nonlocal steps
        steps += 1
        rate = np.float32(RATE / (1 - BETA1**steps))
        root = np.float32(1 / (1 - BETA2**steps) ** 0.5)
        for p, g, m, v, work in zip(parameters, gradients, means, squares, works, strict=True):
            m *= b1
            np.multiply(g, rest1, work)
            m += work
            v *= b2
            np.multiply(g, g, work)
            work *= rest2
            v += work
            np.sqrt(v, work)
            work *= root
            work += np.float32(EPSILON)
            np.divide(m, work, work)
            work *= rate
            p -= work
        return parameters

    return step


class Program:
    STATEFUL = True

    def __init__(self, lib: Any, parameters: list[np.ndarray], gradients: list[np.ndarray]) -> None:
        self.arguments = ()
        self.parameters = [lib.tensor(p).requires_grad_() for p in parameters]
        for p, g in zip(self.parameters, gradients, strict=True):
            p.grad = lib.tensor(g)
        fused = {"fused": True} if lib.__name__ == "torch" else {}
        self.optimizer = lib.optim.Adam(self.parameters, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON, **fused)

    def step(self) -> Any:
        self.optimizer.step()
        return ()
