"""rnn: 64 steps of h = tanh(x[t] @ W + h @ U + b) with 16 hidden units, batch 8, as one custom Function a step, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS, BATCH, HIDDEN = 64, 8, 16


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    made = {name: rng.standard_normal((HIDDEN, HIDDEN), np.float32) / np.float32(HIDDEN**0.5) for name in ("w", "u")}
    return {"x": rng.standard_normal((STEPS, BATCH, HIDDEN), np.float32), **made, "b": np.zeros(HIDDEN, np.float32)}


def by_hand(x: np.ndarray, w: np.ndarray, u: np.ndarray, b: np.ndarray) -> Callable[[], Any]:
    h = np.zeros((STEPS + 1, BATCH, HIDDEN), np.float32)
    dz = np.empty_like(x)
    z, g = np.empty((BATCH, HIDDEN), np.float32), np.empty((BATCH, HIDDEN), np.float32)
    steps = [(x[t], h[t], h[t + 1], dz[t]) for t in range(STEPS)]
    ut = u.T
    flat_x, flat_h, flat_dz = x.reshape(-1, HIDDEN), h[:-1].reshape(-1, HIDDEN), dz.reshape(-1, HIDDEN)
    one = np.float32(1)

    def step() -> Any:
        for xt, before, after, _ in steps:
            np.matmul(xt, w, after)
            np.matmul(before, u, z)
            np.add(after, z, after)
            np.add(after, b, after)
            np.tanh(after, after)
        last = h[STEPS]
        loss = (last * last).sum()
        np.multiply(last, 2, g)
        for _, _, after, d in reversed(steps):
            np.multiply(after, after, d)
            np.subtract(one, d, d)
            np.multiply(d, g, d)
            np.matmul(d, ut, g)
        # Weights are shared by all steps: their gradients are one product each.
        return loss, flat_x.T @ flat_dz, flat_h.T @ flat_dz, flat_dz.sum(0)

    return step


class Program:
    def __init__(self, lib: Any, x: np.ndarray, w: np.ndarray, u: np.ndarray, b: np.ndarray) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x),)
        self.parameters = [lib.tensor(p).requires_grad_() for p in (w, u, b)]
        self.cell = _cell(lib)

    def forward(self, x: Any) -> Any:
        h = self.lib.zeros(BATCH, HIDDEN)
        for t in range(STEPS):
            h = self.cell(x[t], h, *self.parameters)
        return (h * h).sum()

    def step(self, x: Any) -> Any:
        loss = self.forward(x)
        return loss.detach(), *self.lib.autograd.grad(loss, self.parameters)


def _cell(lib: Any) -> Any:
    class Cell(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
            y = lib.tanh(x @ w + h @ u + b)
            ctx.save_for_backward(x, h, u, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, h, u, y = ctx.saved_tensors
            d = g * (1 - y * y)
            return None, d @ u.T, x.T @ d, h.T @ d, d.sum(0)

    return Cell.apply
