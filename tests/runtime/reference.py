"""What an executable has to give, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np

from tpc.ir.program import Op, Program
from tpc.runtime import interpreter
from tpc.runtime.kernels.registry import Run, bind


def reference(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The interpreter's results where every op writes row-major arrays, as in an executable: sums add in memory order."""
    with mock.patch.object(interpreter, "bind", _row_major):
        return interpreter.interpret(program, [np.array(a, order="C") for a in arrays])


def _row_major(op: Op) -> Run:
    run = bind(op)
    if op.defn.view:
        return run

    def in_order(*arrays: np.ndarray):
        got = run(*arrays)
        return tuple(np.asarray(a, order="C") for a in got) if isinstance(got, tuple) else np.asarray(got, order="C")

    return in_order
