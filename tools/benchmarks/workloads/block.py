"""block: a transformer block (layer norm, 4 heads of attention, GELU MLP; width 256, 4 x 128 tokens), forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from workloads.functions import gelu, layer_norm, softmax

BATCH, TOKENS, WIDTH, HEADS = 4, 128, 256, 4
HEAD = WIDTH // HEADS
C, A = np.float32(0.7978845608028654), np.float32(0.044715)
NAMES = ("scale1", "shift1", "qkv", "out", "scale2", "shift2", "up", "up_bias", "down", "down_bias")


def inputs(rng: np.random.Generator) -> dict[str, Any]:
    def weight(a: int, b: int) -> np.ndarray:
        return rng.standard_normal((a, b), np.float32) / np.float32(a**0.5)

    ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    wide = 4 * WIDTH
    parameters = (
        ones, zeros, weight(WIDTH, 3 * WIDTH), weight(WIDTH, WIDTH), ones, zeros,
        weight(WIDTH, wide), np.zeros(wide, np.float32), weight(wide, WIDTH), zeros,
    )  # fmt: skip
    x, g = (rng.standard_normal((BATCH, TOKENS, WIDTH), np.float32) for _ in range(2))
    return {"x": x, "g": g, "parameters": list(parameters)}


def by_hand(x: np.ndarray, g: np.ndarray, parameters: list[np.ndarray]) -> Callable[[], Any]:
    scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = parameters
    rows = BATCH * TOKENS
    x2, g2 = x.reshape(rows, WIDTH), g.reshape(rows, WIDTH)
    factor = np.float32(HEAD**-0.5)

    def heads(flat: np.ndarray) -> np.ndarray:
        return flat.reshape(BATCH, TOKENS, HEADS, HEAD).transpose(0, 2, 1, 3)

    def joined(split: np.ndarray) -> np.ndarray:
        return split.transpose(0, 2, 1, 3).reshape(rows, WIDTH)

    def step() -> Any:
        n1, h1, s1 = _norm(x2, scale1, shift1)
        projected = n1 @ qkv
        q, k, v = (heads(projected[:, i * WIDTH : (i + 1) * WIDTH]) for i in range(3))
        p = q @ k.swapaxes(2, 3)
        p *= factor
        p -= p.max(-1, keepdims=True)
        np.exp(p, p)
        p /= p.sum(-1, keepdims=True)
        attended = joined(p @ v)
        middle = attended @ out
        middle += x2
        n2, h2, s2 = _norm(middle, scale2, shift2)
        z = n2 @ up
        z += up_bias
        t = z * z
        t *= A
        t += 1
        t *= z
        t *= C
        np.tanh(t, t)
        y = t + 1
        y *= z
        y *= np.float32(0.5)
        result = y @ down
        result += down_bias
        result += middle
        # Backward.
        d_down, d_down_bias = y.T @ g2, g2.sum(0)
        dz = g2 @ down.T
        inner = z * z
        inner *= 3 * A
        inner += 1
        inner *= z
        inner *= C
        inner *= 1 - t * t
        inner += t
        inner += 1
        inner *= np.float32(0.5)
        dz *= inner
        d_up, d_up_bias = n2.T @ dz, dz.sum(0)
        dmiddle, d_scale2, d_shift2 = _norm_backward(dz @ up.T, h2, s2, scale2)
        dmiddle += g2
        d_out = attended.T @ dmiddle
        dattended = heads(dmiddle @ out.T)
        dv = p.swapaxes(2, 3) @ dattended
        dp = dattended @ v.swapaxes(2, 3)
        dp *= p
        dp -= p * dp.sum(-1, keepdims=True)
        dp *= factor
        dprojected = np.concatenate([joined(dp @ k), joined(dp.swapaxes(2, 3) @ q), joined(dv)], 1)
        d_qkv = n1.T @ dprojected
        dx, d_scale1, d_shift1 = _norm_backward(dprojected @ qkv.T, h1, s1, scale1)
        dx += dmiddle
        shape = (BATCH, TOKENS, WIDTH)
        gradients = (d_scale1, d_shift1, d_qkv, d_out, d_scale2, d_shift2, d_up, d_up_bias, d_down, d_down_bias)
        return result.reshape(shape), dx.reshape(shape), *gradients

    return step


def _norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    h = x - x.mean(-1, keepdims=True)
    s = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + np.float32(1e-5))
    h *= s
    y = h * scale
    y += shift
    return y, h, s


def _norm_backward(g: np.ndarray, h: np.ndarray, s: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    gh = g * scale
    projected = h * (gh * h).mean(-1, keepdims=True)
    gh -= gh.mean(-1, keepdims=True)
    gh -= projected
    gh *= s
    return gh, (g * h).sum(0), g.sum(0)


class Program:
    def __init__(self, lib: Any, x: np.ndarray, g: np.ndarray, parameters: list[np.ndarray]) -> None:
        self.lib = lib
        self.arguments = (lib.tensor(x).requires_grad_(), lib.tensor(g))
        self.weights = [lib.tensor(p).requires_grad_() for p in parameters]
        self.gelu, self.norm, self.softmax = gelu(lib), layer_norm(lib), softmax(lib)

    def forward(self, x: Any) -> Any:
        scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = self.weights
        projected = self.norm(x, scale1, shift1) @ qkv
        q, k, v = (projected[..., i * WIDTH : (i + 1) * WIDTH].reshape(BATCH, TOKENS, HEADS, HEAD).transpose(1, 2) for i in range(3))
        p = self.softmax((q @ k.transpose(2, 3)) * HEAD**-0.5)
        middle = x + (p @ v).transpose(1, 2).reshape(BATCH, TOKENS, WIDTH) @ out
        z = self.norm(middle, scale2, shift2) @ up + up_bias
        return middle + self.gelu(z) @ down + down_bias

    def step(self, x: Any, g: Any) -> Any:
        y = self.forward(x)
        return y, *self.lib.autograd.grad(y, [x, *self.weights], g)
