"""deepchain: 30 elementwise custom Functions one after the other, forward and backward, 1M f32 elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import swish, tanh

DEPTH = 30


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    size = 1 << 20
    return {"x": rng.standard_normal(size, np.float32), "g": rng.standard_normal(size, np.float32)}


def by_hand(x: np.ndarray, g: np.ndarray) -> Callable[[], Any]:
    one, two = np.float32(1), np.float32(2)
    values = [x, *(np.empty_like(x) for _ in range(DEPTH))]
    gates = [np.empty_like(x) for _ in range(DEPTH // 2)]
    dx, work = np.empty_like(x), np.empty_like(x)

    def step() -> Any:
        for i in range(0, DEPTH, 2):
            h, s, y, z = values[i], gates[i // 2], values[i + 1], values[i + 2]
            np.negative(h, s)
            np.exp(s, s)
            np.add(s, one, s)
            np.divide(one, s, s)
            np.multiply(h, s, y)
            np.tanh(y, z)
            np.multiply(z, two, z)
        np.copyto(dx, g)
        for i in range(DEPTH - 2, -1, -2):
            h, s, z = values[i], gates[i // 2], values[i + 2]
            # z = 2 tanh(y), so dz/dy = 2 - z^2 / 2
            np.multiply(z, z, work)
            np.divide(work, two, work)
            np.subtract(two, work, work)
            np.multiply(dx, work, dx)
            np.subtract(one, s, work)
            np.multiply(work, h, work)
            np.add(work, one, work)
            np.multiply(work, s, work)
            np.multiply(dx, work, dx)
        return values[DEPTH], dx

    return step


class Program:
    def __init__(self, lib: Any, x: np.ndarray, g: np.ndarray) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x).requires_grad_(), lib.tensor(g))
        self.swish, self.tanh = swish(lib), tanh(lib)

    def forward(self, x: Any) -> Any:
        for _ in range(DEPTH // 2):
            x = 2 * self.tanh(self.swish(x))
        return x

    def step(self, x: Any, g: Any) -> Any:
        y = self.forward(x)
        (dx,) = self.lib.autograd.grad(y, x, g)
        return y, dx
