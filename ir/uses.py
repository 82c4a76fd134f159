"""Who reads what: computed from a program when asked, never stored in it."""

from __future__ import annotations

from tpc.ir.program import Op, Program, Value


def users(program: Program) -> dict[Value, list[Op]]:
    """For every value of the program the ops that read it, in order, each once; not the program outputs."""
    readers: dict[Value, list[Op]] = {v: [] for v in program.inputs}
    for op in program.ops:
        for value in dict.fromkeys(op.operands):
            readers[value].append(op)
        for result in op.results:
            readers[result] = []
    return readers


def last_uses(program: Program) -> dict[Value, Op | None]:
    """For every value the last op that reads it; None for a program output, which lives to the end.

    A result that nobody reads (the second of two) dies at the op that makes it; an input that nobody reads maps to None.
    """
    last: dict[Value, Op | None] = dict.fromkeys(program.inputs)
    for op in program.ops:
        for result in op.results:
            last[result] = op
        for value in op.operands:
            last[value] = op
    for value in program.outputs:
        last[value] = None
    return last


def producers(program: Program) -> dict[Value, int]:
    """For every value the index of the op that makes it; -1 for the inputs."""
    made = dict.fromkeys(program.inputs, -1)
    for index, op in enumerate(program.ops):
        made.update(dict.fromkeys(op.results, index))
    return made
