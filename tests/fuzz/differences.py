"""Gradients of smooth programs against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import tpc
from tests.fuzz.modes import quiet
from tests.fuzz.program import Program

STEP = 1e-6
LARGEST = 1e4
"""Programs whose values or gradients are larger than this are left out: central differences say nothing about them."""


def check_gradients(program: Program) -> str | None:
    """Says which gradient is not the slope."""
    with quiet(), np.errstate(all="ignore"):
        arrays = {leaf.name: leaf.array() for leaf in program.leaves}
        if any("grad(" in step.code and "create_graph" not in step.code for step in program.body):
            return None
        try:
            total, gradients = _total(program, arrays, backward=True)
        except (RuntimeError, IndexError):
            return None  # a program that is meant to fail
        if not abs(total) < LARGEST or any(g is not None and not np.all(np.abs(g) < LARGEST) for g in gradients.values()):
            return None
        for name in [leaf.name for leaf in program.leaves if leaf.tracked]:
            array = arrays[name]
            for index in list(np.ndindex(array.shape))[:4]:
                slope = _slope(program, arrays, name, index, STEP)
                rough = _slope(program, arrays, name, index, 4 * STEP)
                if slope is None or rough is None or abs(slope - rough) > 1e-4 * (1 + abs(slope)):
                    continue  # a kink, or too steep
                gradient = gradients[name]
                found = 0.0 if gradient is None else float(gradient[index])
                if abs(found - slope) > 1e-4 * (1 + abs(slope)):
                    return f"d/d{name}{list(index)} is {found}, but the slope is {slope}"
    return None


def _slope(program: Program, arrays: dict[str, np.ndarray], name: str, index: tuple[int, ...], step: float) -> float | None:
    totals = []
    for sign in (1, -1):
        moved = arrays[name].copy()
        moved[index] += sign * step
        totals.append(_total(program, {**arrays, name: moved})[0])
    slope = (totals[0] - totals[1]) / (2 * step)
    return slope if abs(slope) < LARGEST else None


def _total(program: Program, arrays: dict[str, np.ndarray], backward: bool = False) -> tuple[float, dict[str, np.ndarray | None]]:
    """A weighted sum of all results, and its gradients."""
    tensors: dict[str, Any] = {}
    for leaf in program.leaves:
        tensors[leaf.name] = leaf.make(tpc, arrays[leaf.name], tensors)
    body, _ = program.build(tpc, tensors)
    results = program.flat(body(*[tensors[leaf.name] for leaf in program.arguments]))
    rng = np.random.default_rng(1)
    total: Any = tpc.zeros((), dtype=tpc.float64)
    for t in results:
        weights = tpc.tensor(rng.uniform(0.5, 1.5, tuple(t.shape)))
        total = total + (t * weights).sum()
    if backward and total.requires_grad:
        total.backward()
    return total.item(), {name: None if tensors[name].grad is None else tensors[name].grad.numpy() for name in arrays}
