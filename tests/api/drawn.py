"""What tests of drawings and reports trace."""

from __future__ import annotations

import tpc


class Swish(tpc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = tpc.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s))


class Linear(tpc.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.mT, x.mT @ g


class Block(tpc.autograd.Function):
    """Applies other Functions inside its forward."""

    @staticmethod
    def forward(ctx, x, w):
        h = Linear.apply(x, w)
        ctx.save_for_backward(x, w, h)
        return Swish.apply(h)

    @staticmethod
    def backward(ctx, g):
        x, w, h = ctx.saved_tensors
        s = tpc.sigmoid(h)
        g = g * (s + h * s * (1 - s))
        return g @ w.mT, x.mT @ g


def network(layers: int, size: int = 8):
    """A function of one input that applies `layers` pairs of Functions, and its weights."""
    weights = [tpc.full((size, size), 0.1, requires_grad=True) for _ in range(layers)]

    def loss(x):
        for w in weights:
            x = Swish.apply(Linear.apply(x, w))
        return x.sum()

    return loss, weights


def training_step(layers: int, size: int = 8):
    """Forward, backward and update of `network`."""
    loss, weights = network(layers, size)

    def step(x):
        value = loss(x)
        for w in weights:
            w.grad = None
        value.backward()
        with tpc.no_grad():
            for w in weights:
                w.sub_(0.1 * w.grad)
        return value

    return step
