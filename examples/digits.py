#!/usr/bin/env python3
"""Trains a classifier of handwritten digits whose layers, activation and loss are custom Functions, as one compiled step.

The data are the 1,797 images of the UCI handwritten digits (scikit-learn's copy); a third is held out. The same step then runs
deferred, for
comparison. Leaves the IR of the step and the drawing of its backward graph in build/digits (or --out DIR).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import tpc

BATCH = 64
EPOCHS = 60


class Linear(tpc.autograd.Function):
    """x @ w + b, in the style in which forward has no ctx."""

    @staticmethod
    def forward(x, w, b):
        return x @ w + b

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, _ = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g, g.sum(0)


class Swish(tpc.autograd.Function):
    """x * sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        s = tpc.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s))


class CrossEntropy(tpc.autograd.Function):
    """Mean of -log softmax(logits)[label]; the labels are integers and get no gradient."""

    @staticmethod
    def forward(ctx, logits, labels):
        logs = tpc.log_softmax(logits, 1)
        ctx.save_for_backward(logs, labels)
        return -logs.gather(1, labels.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, g):
        logs, labels = ctx.saved_tensors
        hot = labels.unsqueeze(1) == tpc.arange(logs.shape[1])
        return g * (logs.exp() - hot.to(logs.dtype)) / logs.shape[0], None


def parameter(*shape):
    """A random matrix of unit gain (He et al. 2015), or zeros for a vector."""
    scale = (2.0 / shape[0]) ** 0.5 if len(shape) == 2 else 0.0
    return (tpc.randn(*shape) * scale).detach().requires_grad_()


tpc.manual_seed(0)
PARAMETERS = [parameter(64, 96), parameter(96), parameter(96, 96), parameter(96), parameter(96, 10), parameter(10)]
OPTIMIZER = tpc.optim.AdamW(PARAMETERS, lr=3e-3)


def model(x):
    """Class scores of a batch of images."""
    w1, b1, w2, b2, w3, b3 = PARAMETERS
    h = Swish.apply(Linear.apply(x, w1, b1))
    h = Swish.apply(Linear.apply(h, w2, b2))
    return Linear.apply(h, w3, b3)


def step(images, labels):
    """One training step: forward, backward, update."""
    loss = CrossEntropy.apply(model(images), labels)
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()
    return loss


def split_data():
    """(training images, labels), (held-out images, labels), in a fixed random order."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images, labels = (digits.data[order] / 16).astype(np.float32), digits.target[order].astype(np.int64)
    held = len(labels) // 3
    return (images[held:], labels[held:]), (images[:held], labels[:held])


class Progress:
    """A bar on a terminal; nothing elsewhere, and nothing in the first second."""

    def __init__(self, total):
        self.total, self.start, self.shown = total, time.monotonic(), False

    def update(self, done, loss):
        if sys.stderr.isatty() and time.monotonic() - self.start > 1:
            bar = "#" * (30 * done // self.total)
            print(f"\r[{bar:<30}] epoch {done}/{self.total}  loss {loss:.4f}", end="", file=sys.stderr)
            self.shown = True

    def close(self):
        if self.shown:
            print(file=sys.stderr)


def train(run, images, labels, epochs):
    """Steps per second of `run` over whole batches."""
    rng = np.random.default_rng(1)
    progress = Progress(epochs)
    steps, start = 0, time.perf_counter()
    for epoch in range(epochs):
        order = rng.permutation(len(labels))
        for i in range(0, len(order) - BATCH + 1, BATCH):
            loss = run(tpc.tensor(images[order[i : i + BATCH]]), tpc.tensor(labels[order[i : i + BATCH]]))
            steps += 1
        progress.update(epoch + 1, loss.item())
    progress.close()
    return steps / (time.perf_counter() - start)


def accuracy(images, labels):
    """Share of images whose class is found."""
    with tpc.no_grad():
        return (model(tpc.tensor(images)).argmax(1) == tpc.tensor(labels)).to(tpc.float32).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("build/digits"), metavar="DIR", help="where the IR and the drawing go (build/digits)"
    )
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"passes over the training images ({EPOCHS})")
    options = parser.parse_args()
    (images, labels), (held_images, held_labels) = split_data()
    print(f"{len(labels)} images to learn from, {len(held_labels)} held out")

    compiled = tpc.compile(step, fullgraph=True)
    compiled(tpc.tensor(images[:BATCH]), tpc.tensor(labels[:BATCH]))
    compiled_rate = train(compiled, images, labels, options.epochs)
    found = accuracy(held_images, held_labels)
    deferred_rate = train(step, images, labels, 2)
    print(f"compiled {compiled_rate:7.0f} steps/s")
    print(f"deferred {deferred_rate:7.0f} steps/s, so compiled is {compiled_rate / deferred_rate:.1f} times as fast\n")

    traced = tpc.trace(step, tpc.spec(f"f32[{BATCH},64]"), tpc.spec(f"i64[{BATCH}]"))
    print(traced.report())
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "digits.tir").write_text(str(traced) + "\n")
    traced.draw(str(options.out / "digits-backward.svg"))
    print(f"\nwrote {options.out / 'digits.tir'} and {options.out / 'digits-backward.svg'}")
    print(f"test accuracy {found:.3f}")


if __name__ == "__main__":
    main()
