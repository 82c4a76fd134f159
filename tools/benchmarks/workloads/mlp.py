"""mlp: a training step, batch 64, 784-256-256-10, custom Swish and cross entropy, SGD with momentum."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import cross_entropy, swish

SIZES = (784, 256, 256, 10)
RATE, MOMENTUM = 0.01, 0.9


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    weights = [rng.standard_normal((a, b), np.float32) / np.float32(a**0.5) for a, b in itertools.pairwise(SIZES)]
    biases = [np.zeros(b, np.float32) for b in SIZES[1:]]
    return {"x": rng.standard_normal((64, SIZES[0]), np.float32), "labels": rng.integers(0, 10, 64), "weights": weights, "biases": biases}


def by_hand(x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray], biases: list[np.ndarray]) -> Callable[[], Any]:
    weights, biases = [w.copy() for w in weights], [b.copy() for b in biases]
    parameters = [*weights, *biases]
    momenta = [np.zeros_like(p) for p in parameters]
    gradients = [np.empty_like(p) for p in parameters]
    rows = np.arange(64)
    rate, momentum = np.float32(RATE), np.float32(MOMENTUM)

    def step() -> Any:
        h, saved = x, []
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            z = h @ w
            z += b
            s = np.negative(z)
            np.exp(s, s)
            s += 1
            np.reciprocal(s, s)
            saved.append((h, z, s))
            h = z * s
        logits = h @ weights[-1]
        logits += biases[-1]
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(1, keepdims=True)
        loss = (np.log(total[:, 0]) - logits[rows, labels]).mean()
        p /= total
        p[rows, labels] -= 1
        p /= 64
        for layer in (2, 1, 0):
            np.matmul(h.T, p, out=gradients[layer])
            p.sum(0, out=gradients[3 + layer])
            if layer:
                g = p @ weights[layer].T
                h, z, s = saved[layer - 1]
                p = 1 - s
                p *= z
                p += 1
                p *= s
                p *= g
        for param, v, g in zip(parameters, momenta, gradients, strict=True):
            v *= momentum
            v += g
            np.multiply(v, rate, out=g)
            param -= g
        return loss, *parameters

    return step


class Program:
    STATEFUL = True

    def __init__(self, lib: Any, x: np.ndarray, labels: np.ndarray, weights: list[np.ndarray], biases: list[np.ndarray]) -> None:
        self.arguments = (lib.tensor(x), lib.tensor(labels))
        self.weights = [lib.tensor(w).requires_grad_() for w in weights]
        self.biases = [lib.tensor(b).requires_grad_() for b in biases]
        self.parameters = [*self.weights, *self.biases]
        self.optimizer = lib.optim.SGD(self.parameters, lr=RATE, momentum=MOMENTUM)
        self.swish, self.cross_entropy = swish(lib), cross_entropy(lib)

    def forward(self, x: Any, labels: Any) -> Any:
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = self.swish(x @ w + b)
        return self.cross_entropy(x @ self.weights[-1] + self.biases[-1], labels)

    def step(self, x: Any, labels: Any) -> Any:
        loss = self.forward(x, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return (loss.detach(),)
