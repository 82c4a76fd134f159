"""ewise: tanh-GELU as a custom Function, forward and backward, 4M f32 elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import gelu

C, A = np.float32(0.7978845608028654), np.float32(0.044715)


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    size = 1 << 22
    return {"x": rng.standard_normal(size, np.float32), "g": rng.standard_normal(size, np.float32)}


def by_hand(x: np.ndarray, g: np.ndarray) -> Callable[[], Any]:
    t, y, dx, work = (np.empty_like(x) for _ in range(4))
    half, one, three = np.float32(0.5), np.float32(1), np.float32(3)

    def step() -> Any:
        np.multiply(x, x, work)
        np.multiply(work, A, t)
        np.add(t, one, t)
        np.multiply(t, x, t)
        np.multiply(t, C, t)
        np.tanh(t, t)
        np.add(t, one, y)
        np.multiply(y, x, y)
        np.multiply(y, half, y)
        # d/dx = 0.5 (1 + t) + 0.5 x (1 - t^2) c (1 + 3 a x^2); `work` holds x^2.
        np.multiply(work, three * A, work)
        np.add(work, one, work)
        np.multiply(work, C * half, work)
        np.multiply(work, x, work)
        np.multiply(t, t, dx)
        np.subtract(one, dx, dx)
        np.multiply(dx, work, dx)
        np.add(t, one, t)
        np.multiply(t, half, t)
        np.add(dx, t, dx)
        np.multiply(dx, g, dx)
        return y, dx

    return step


class Program:
    def __init__(self, lib: Any, x: np.ndarray, g: np.ndarray) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x).requires_grad_(), lib.tensor(g))
        self.forward = gelu(lib)

    def step(self, x: Any, g: Any) -> Any:
        y = self.forward(x)
        (dx,) = self.lib.autograd.grad(y, x, g)
        return y, dx
