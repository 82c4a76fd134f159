"""Custom Functions that several workloads use, for any library with PyTorch's API."""

from __future__ import annotations

from typing import Any


def swish(lib: Any) -> Any:
    """x * sigmoid(x), as in the README."""

    class Swish(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            s = lib.sigmoid(x)
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, s = ctx.saved_tensors
            return g * (s + x * s * (1 - s))

    return Swish.apply


def tanh(lib: Any) -> Any:
    """tanh with a backward in terms of its result, so that it can be differentiated again."""

    class Tanh(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = lib.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    return Tanh.apply


def gelu(lib: Any) -> Any:
    """The tanh form of GELU."""
    c, a = 0.7978845608028654, 0.044715

    class Gelu(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            t = lib.tanh(c * (x + a * x * x * x))
            ctx.save_for_backward(x, t)
            return 0.5 * x * (1 + t)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, t = ctx.saved_tensors
            inner = c * (1 + 3 * a * x * x)
            return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)

    return Gelu.apply


def cross_entropy(lib: Any) -> Any:
    """Mean cross entropy of logits and class numbers, saving the probabilities."""

    class CrossEntropy(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Any, classes: Any) -> Any:
            logp = lib.log_softmax(logits, 1)
            ctx.save_for_backward(logp.exp(), classes)
            return -logp.gather(1, classes[:, None]).mean()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            p, classes = ctx.saved_tensors
            wanted = lib.arange(p.shape[1]) == classes[:, None]
            return (p - wanted.to(p.dtype)) * (g / p.shape[0]), None

    return CrossEntropy.apply


def layer_norm(lib: Any) -> Any:
    """Normalises the last axis, then scales and shifts it."""

    class LayerNorm(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
            centred = x - x.mean(-1, keepdim=True)
            scale = lib.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
            h = centred * scale
            ctx.save_for_backward(h, scale, weight)
            return h * weight + bias

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            h, scale, weight = ctx.saved_tensors
            gh = g * weight
            gx = scale * (gh - gh.mean(-1, keepdim=True) - h * (gh * h).mean(-1, keepdim=True))
            leading = tuple(range(g.ndim - 1))
            return gx, (g * h).sum(leading), g.sum(leading)

    return LayerNorm.apply


def softmax(lib: Any) -> Any:
    """Softmax over the last axis."""

    class Softmax(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = lib.softmax(x, -1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            gy = g * y
            return gy - y * gy.sum(-1, keepdim=True)

    return Softmax.apply
