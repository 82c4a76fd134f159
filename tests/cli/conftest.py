"""A user's program in a file, and a way to call the command line without a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tpc.cli import main

MODEL = """\
import sys

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


class NoForward(tpc.autograd.Function):
    pass


class Scale:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by


twice = Scale(2.0)
number = 3
weight = tpc.ones(4, 2, requires_grad=True)


def square(x):
    print("printed while traced")
    return (x * x).sum()


def power(x, exponent=2):
    return x**exponent


def step(x):
    loss = Swish.apply(x @ weight).sum()
    weight.grad = None
    loss.backward()
    with tpc.no_grad():
        weight.sub_(0.1 * weight.grad)
    return loss


def example():
    return (tpc.spec("f32[3,4]"),)


def named():
    return {"x": tpc.spec("f32[5]"), "exponent": 3}


def boom(x):
    return inner(x)


def inner(x):
    raise KeyError("the user's own")


def branches(x):
    return x if (x.sum() > 0) else -x


def leaves(x):
    sys.exit(7)
"""

TEXT = """\
tpc 1

program @f (%x: f32[3], %y: f32[3]) -> (f32[3]) {
  %0 = exp %x : f32[3]
  %1 = exp %x : f32[3]
  %2 = add %0, %1 : f32[3]
  %3 = mul %2, %y : f32[3]
  return %3
}
"""


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return str(path)


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "in.tir"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def tpc(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """``tpc("opt", path)``: exit code, stdout, stderr."""

    def run(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return run
