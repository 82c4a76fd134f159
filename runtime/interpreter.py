"""The reference: a program run op by op. Every optimisation is tested against it; it is never clever."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tpc.ir.program import Op, Program, Value
from tpc.ir.types import type_of
from tpc.ir.uses import last_uses
from tpc.runtime.kernels.control import bound
from tpc.runtime.kernels.registry import bind
from tpc.runtime.notes import op_note


def interpret(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the program: arrays of their own, which alias neither inputs nor each other.

    `ValueError` where number, dtype or shape of the inputs is wrong. An error of an op keeps its class and gets a note that
    says which op it was.
    """
    check_inputs(program, arrays)
    with np.errstate(all="ignore"):
        return _owned(_run(program, [np.asarray(a, order="C") for a in arrays]), arrays)


def check_inputs(program: Program, arrays: Sequence[np.ndarray]) -> None:
    """`ValueError` unless the arrays have the types of the program's inputs."""
    if len(arrays) != len(program.inputs):
        raise ValueError(f"@{program.name} takes {len(program.inputs)} inputs, but {len(arrays)} were given")
    for i, (value, array) in enumerate(zip(program.inputs, arrays, strict=True)):
        if array.shape != value.type.shape or array.dtype != value.type.numpy_dtype:
            raise ValueError(f"input {value.name or i} of @{program.name} is {value.type}, but the array given is {type_of(array)}")


def _run(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    env: dict[Value, np.ndarray] = dict(zip(program.inputs, arrays, strict=True))
    dying = _dying(program)
    for op in program.ops:
        operands = [env[v] for v in op.operands]
        try:
            results = _run_op(op, operands)
        except Exception as error:
            error.add_note(op_note(op, program))
            raise
        env.update(zip(op.results, results, strict=True))
        for value in dying.get(op, ()):
            env.pop(value, None)
    return [env[v] for v in program.outputs]


def _run_op(op: Op, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    if op.body is not None:
        return _run(op.body, operands)
    if op.bodies:
        return bound(op, lambda body: partial(_run, body))(operands)
    got = bind(op)(*operands)
    if op.defn.view:
        return [np.asarray(got)]
    # Row-major whatever the operands' order, so that later sums run in one order everywhere.
    return [np.asarray(r, order="C") for r in (got if len(op.results) > 1 else (got,))]


def _dying(program: Program) -> dict[Op, list[Value]]:
    dying: dict[Op, list[Value]] = {}
    for value, op in last_uses(program).items():
        if op is not None:
            dying.setdefault(op, []).append(value)
    return dying


def _owned(outputs: list[np.ndarray], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs with memory of their own: views, inputs and repeated outputs are copied."""
    seen = {id(a) for a in inputs}
    owned = []
    for array in outputs:
        if array.base is not None or not array.flags.owndata or not array.flags.c_contiguous or id(array) in seen:
            array = np.array(array, order="C")
        seen.add(id(array))
        owned.append(array)
    return owned
