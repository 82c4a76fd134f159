"""chain: 24 times (x @ W, Swish), width 512, batch 512, forward and backward for the input and all weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import swish

DEPTH, WIDTH, BATCH = 24, 512, 512


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    weights = [rng.standard_normal((WIDTH, WIDTH), np.float32) * np.float32(1.4 / WIDTH**0.5) for _ in range(DEPTH)]
    return {"x": rng.standard_normal((BATCH, WIDTH), np.float32), "g": rng.standard_normal((BATCH, WIDTH), np.float32), "weights": weights}


def by_hand(x: np.ndarray, g: np.ndarray, weights: list[np.ndarray]) -> Callable[[], Any]:
    products, gates = ([np.empty_like(x) for _ in weights] for _ in range(2))
    values = [x, *(np.empty_like(x) for _ in weights)]
    gradients = [np.empty_like(w) for w in weights]
    dx, dz = np.empty_like(x), np.empty_like(x)
    one = np.float32(1)

    def step() -> Any:
        for i, w in enumerate(weights):
            z, s = products[i], gates[i]
            np.matmul(values[i], w, out=z)
            np.negative(z, s)
            np.exp(s, s)
            np.add(s, one, s)
            np.divide(one, s, s)
            np.multiply(z, s, values[i + 1])
        np.copyto(dx, g)
        for i in range(DEPTH - 1, -1, -1):
            z, s = products[i], gates[i]
            np.subtract(one, s, dz)
            np.multiply(dz, z, dz)
            np.add(dz, one, dz)
            np.multiply(dz, s, dz)
            np.multiply(dz, dx, dz)
            np.matmul(values[i].T, dz, out=gradients[i])
            np.matmul(dz, weights[i].T, out=dx)
        return values[DEPTH], dx, *gradients

    return step


class Program:
    def __init__(self, lib: Any, x: np.ndarray, g: np.ndarray, weights: list[np.ndarray]) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x).requires_grad_(), lib.tensor(g))
        self.weights = [lib.tensor(w).requires_grad_() for w in weights]
        self.swish = swish(lib)

    def forward(self, x: Any) -> Any:
        for w in self.weights:
            x = self.swish(x @ w)
        return x

    def step(self, x: Any, g: Any) -> Any:
        y = self.forward(x)
        return y, *self.lib.autograd.grad(y, [x, *self.weights], g)
