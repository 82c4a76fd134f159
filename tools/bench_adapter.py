"""tpc's side of the benchmarks: how a program written against PyTorch's API runs on tpc, and what only tpc can measure.

An adapter has `MODES`, `library()`, `prepare(program, mode)`, `to_numpy(tensor)` and `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

MODES = ("joint", "numpy", "split", "deferred")
"""Forward, backward and update as one compiled call; the same without native code; forward compiled alone; nothing compiled."""


def library() -> Any:
    import tpc

    return tpc


def prepare(program: Any, mode: str) -> Callable[[], list[Any]]:
    """The program's step as a function without arguments, whose results are computed when it returns."""
    import tpc
    from tpc.deferred import flush

    if mode == "split" and hasattr(program, "forward"):
        program.forward = tpc.compile(program.forward, fullgraph=True)
    elif mode != "deferred":
        program.step = tpc.compile(program.step, fullgraph=True, backend="numpy" if mode == "numpy" else None)
    arguments, run = program.arguments, program.step
    if mode in ("joint", "numpy"):
        return lambda: run(*arguments)

    def step() -> Any:
        results = run(*arguments)
        flush()
        return results

    return step


def to_numpy(tensor: Any) -> np.ndarray:
    # A clone: memory that NumPy has seen is written by copying from then on.
    return tensor.detach().clone().numpy()


# --- what a call and an operator cost -----------------------------------------------------------


def _seconds(function: Callable[[], Any], calls: int, repeats: int = 30) -> float:
    """Median over repeats of the time of one call."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(calls):
            function()
        times.append((perf_counter() - start) / calls)
    return median(times)


def _call(written: bool) -> float:
    """Time of a compiled call with 10 lifted parameters above that of its kernels."""
    import tpc

    parameters = [tpc.tensor(np.full(16, float(i), np.float32)) for i in range(10)]

    def step(x: Any) -> Any:
        total = x
        for p in parameters:
            total = total + p
            if written:
                p.mul_(0.5)
        return total

    compiled, x = tpc.compile(step, fullgraph=True), tpc.tensor(np.ones(16, np.float32))
    compiled(x)
    ((variant,),) = compiled.variants.values()
    executable = variant.body.forward
    arrays = [np.ones(16, np.float32) for _ in executable.program.inputs]
    executable.run(arrays)
    return _seconds(lambda: compiled(x), 200) - _seconds(lambda: executable.run(arrays), 200)


def _record(tracked: bool) -> float:
    """Time to record one operator on small tensors, with the memory it takes given back."""
    import tpc

    x = tpc.tensor(np.ones(16, np.float32)).requires_grad_(tracked)
    y = tpc.tensor(np.ones(16, np.float32))
    return record_operators(x, y)


def record_operators(x: Any, y: Any) -> float:
    def chain() -> None:
        z = x
        for _ in range(250):
            z = z * y
            z = z + y

    return _seconds(chain, 1) / 500


MEASURES = {
    "call, 10 parameters read": lambda: _call(False),
    "call, 10 parameters written": lambda: _call(True),
    "operator, not tracked": lambda: _record(False),
    "operator, tracked": lambda: _record(True),
}
