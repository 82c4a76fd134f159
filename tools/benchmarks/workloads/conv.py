"""conv: a training step of a small convolutional network, batch 64, 1 x 28 x 28: two times 3 x 3 convolution, Swish, max pooling; SGD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import cross_entropy, swish

CHANNELS = (1, 16, 32)
BATCH, SIZE = 64, 28
RATE = 0.01
"""Small, because rounding decides which of two nearly equal elements is the largest of its window and gets the gradient."""


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    def weight(*shape: int) -> np.ndarray:
        fan = int(np.prod(shape[1:]))
        return rng.standard_normal(shape, np.float32) / np.float32(fan**0.5)

    a, b, c = CHANNELS
    parameters = [weight(b, a, 3, 3), weight(c, b, 3, 3), weight(10, c * (SIZE // 4) ** 2), np.zeros(10, np.float32)]
    x = rng.standard_normal((BATCH, a, SIZE, SIZE), np.float32)
    return {"x": x, "labels": rng.integers(0, 10, BATCH), "parameters": parameters}


# --- by hand ------------------------------------------------------------------------------------


def _columns(x: np.ndarray) -> np.ndarray:
    """The 3 x 3 windows of x [n, c, h, w] with zeros around, as [n, c * 9, h * w]."""
    n, c, h, w = x.shape
    padded = np.zeros((n, c, h + 2, w + 2), x.dtype)
    padded[:, :, 1:-1, 1:-1] = x
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * 9, h * w)


def _convolved(columns: np.ndarray, w: np.ndarray, size: int) -> np.ndarray:
    return (w.reshape(len(w), -1) @ columns).reshape(len(columns), len(w), size, size)


def _pooled(x: np.ndarray) -> np.ndarray:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def _unpooled(g: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    n, c, h, w = g.shape
    windows = x.reshape(n, c, h, 2, w, 2)
    return ((windows == y[:, :, :, None, :, None]) * g[:, :, :, None, :, None]).reshape(x.shape)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(x: np.ndarray, labels: np.ndarray, parameters: list[np.ndarray]) -> Callable[[], Any]:
    parameters = [p.copy() for p in parameters]
    rows = np.arange(BATCH)

    def step() -> Any:
        first, second, last, bias = parameters
        h, saved = x, []
        for w in (first, second):
            columns = _columns(h)
            z = _convolved(columns, w, h.shape[2])
            s = _sigmoid(z)
            active = z * s
            h = _pooled(active)
            saved.append((columns, z, s, active, h))
        flat = h.reshape(BATCH, -1)
        logits = flat @ last.T + bias
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(1, keepdims=True)
        loss = (np.log(total[:, 0]) - logits[rows, labels]).mean()
        p /= total
        p[rows, labels] -= 1
        p /= BATCH
        gradients = [p.T @ flat, p.sum(0)]
        g = (p @ last).reshape(h.shape)
        for w, (columns, z, s, active, pooled) in zip((second, first), reversed(saved), strict=True):
            gz = _unpooled(g, active, pooled)
            gz *= s * (1 + z * (1 - s))
            flat_gz = gz.reshape(BATCH, len(w), -1)
            gradients.insert(0, (flat_gz @ columns.swapaxes(1, 2)).sum(0).reshape(w.shape))
            if w is second:
                turned = np.ascontiguousarray(w[:, :, ::-1, ::-1].swapaxes(0, 1))
                g = _convolved(_columns(gz), turned, gz.shape[2])
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= np.float32(RATE) * gradient
        return loss, *parameters

    return step


class Program:
    STATEFUL = True

    def __init__(self, lib: Any, x: np.ndarray, labels: np.ndarray, parameters: list[np.ndarray]) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x), lib.tensor(labels))
        self.parameters = [lib.tensor(p).requires_grad_() for p in parameters]
        self.optimizer = lib.optim.SGD(self.parameters, lr=RATE)
        self.swish, self.cross_entropy = swish(lib), cross_entropy(lib)

    def forward(self, x: Any, labels: Any) -> Any:
        f = self.lib.nn.functional
        first, second, last, bias = self.parameters
        for w in (first, second):
            x = f.max_pool2d(self.swish(f.conv2d(x, w, padding=1)), 2)
        return self.cross_entropy(f.linear(x.flatten(1), last, bias), labels)

    def step(self, x: Any, labels: Any) -> Any:
        loss = self.forward(x, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return (loss.detach(),)
