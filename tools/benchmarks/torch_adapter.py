"""PyTorch's side of the benchmarks; see `bench_adapter` for what an adapter has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bench_adapter import record_operators

MODES = ("eager", "compile")


def library() -> Any:
    import torch

    return torch


def prepare(program: Any, mode: str) -> Callable[[], Any]:
    import torch

    if mode == "compile":
        # Forward, backward and update in one graph, where the program takes gradients with autograd.grad.
        torch._dynamo.config.trace_autograd_ops = True
        program.step = torch.compile(program.step)
    arguments, run = program.arguments, program.step
    return lambda: run(*arguments)


def to_numpy(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach())


def _record(tracked: bool) -> float:
    import torch

    return record_operators(torch.ones(16).requires_grad_(tracked), torch.ones(16))


MEASURES = {"operator, not tracked": lambda: _record(False), "operator, tracked": lambda: _record(True)}
