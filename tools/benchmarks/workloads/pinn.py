"""pinn: u, du/dx and d2u/dx2 of a small MLP (1-32-32-1, custom tanh) at 64 points, and the mean squared residual of u'' + u = 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import tanh

SIZES = (1, 32, 32, 1)


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    weights = [rng.standard_normal((a, b), np.float32) / np.float32(a**0.5) for a, b in itertools.pairwise(SIZES)]
    biases = [rng.standard_normal(b, np.float32) for b in SIZES[1:]]
    return {"x": rng.standard_normal((64, 1), np.float32), "weights": weights, "biases": biases}


def by_hand(x: np.ndarray, weights: list[np.ndarray], biases: list[np.ndarray]) -> Callable[[], Any]:
    (w1, w2, w3), (b1, b2, b3) = weights, biases

    def step() -> Any:
        # Value, first and second derivative pushed forward through the layers:
        # y = tanh(z), y' = (1 - y^2) z', y'' = (1 - y^2) (z'' - 2 y z'^2).
        y = np.tanh(x * w1 + b1)
        slope = 1 - y * y
        y1 = slope * w1
        y2 = y1 * w1
        y2 *= y
        y2 *= -2
        z1, z2 = y1 @ w2, y2 @ w2
        y = y @ w2
        y += b2
        np.tanh(y, y)
        slope = 1 - y * y
        y1 = slope * z1
        y2 = z1 * z1
        y2 *= y
        y2 *= -2
        y2 += z2
        y2 *= slope
        u = y @ w3
        u += b3
        u1, u2 = y1 @ w3, y2 @ w3
        residual = u2 + u
        return u, u1, u2, np.mean(residual * residual)

    return step


class Program:
    def __init__(self, lib: Any, x: np.ndarray, weights: list[np.ndarray], biases: list[np.ndarray]) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x).requires_grad_(),)
        self.weights, self.biases = [lib.tensor(w) for w in weights], [lib.tensor(b) for b in biases]
        self.tanh = tanh(lib)

    def forward(self, x: Any) -> Any:
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = self.tanh(x @ w + b)
        return x @ self.weights[-1] + self.biases[-1]

    def step(self, x: Any) -> Any:
        grad = self.lib.autograd.grad
        u = self.forward(x)
        (u1,) = grad(u.sum(), x, create_graph=True)
        (u2,) = grad(u1.sum(), x)
        u, u1 = u.detach(), u1.detach()
        residual = u2 + u
        return u, u1, u2, (residual * residual).mean()
