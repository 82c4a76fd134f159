"""Programs lowered once to straight lines of calls on prepared arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tpc.ir.plan import Plan, plan_memory
from tpc.ir.program import Program
from tpc.runtime.arena import RECYCLED_FROM, aligned, recycler
from tpc.runtime.code import Code
from tpc.runtime.lowering import Lowering
from tpc.runtime.notes import op_note
from tpc.runtime.workers import available_threads

if TYPE_CHECKING:
    from tpc.runtime.native.segments import Segments


class Executable:
    """A plan made ready to run: any number of times, from any number of threads at once.

    A run gives arrays that belong to the caller: none aliases an input, another output or memory of the executable,
    except that an output that is the new content of a donated input may be that input's array, overwritten. The memory
    of an output that the caller has let go of is used again by later runs.

    `native` runs what it can as machine code (llvmlite has to be there); `folder` keeps that code for other processes.
    """

    def __init__(
        self,
        plan: Plan | Program,
        donate: Collection[int] = (),
        threads: int | None = None,
        native: bool = False,
        folder: Path | None = None,
    ) -> None:
        if isinstance(plan, Program):
            plan = plan_memory(plan, donate)
        self.plan = plan
        self.native = native
        self.folder = folder
        self.threads = max(1, available_threads() if threads is None else threads)
        self.code = Code(f"@{plan.program.name}", ["arrays"])
        self.scratch_bytes = 0
        self._codes: dict[str, Code] = {self.code.filename: self.code}
        self._frames: list[Callable[[Sequence[np.ndarray]], list[np.ndarray]]] = []
        self._made: set[str] = set()
        self._write()

    @property
    def program(self) -> Program:
        return self.plan.program

    @property
    def source(self) -> str:
        """The generated Python, for people who want to see it."""
        return self.code.source()

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs for these inputs, whose dtypes and shapes must be those of the program (they are not checked here)."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._frame()
        try:
            return frame(arrays)
        except Exception as error:
            self._explain(error)
            raise
        finally:
            self._frames.append(frame)

    def release(self) -> None:
        """Gives back all memory that is kept between runs."""
        self._frames.clear()

    def _frame(self) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
        """A copy of the program over its own memory. It runs in a context of its own, where NumPy's warnings are off for good: turning them
        off for each run would take as long as two small kernels."""
        context = Context()
        context.run(np.seterr, all="ignore")
        function = self.code.function({"arena": aligned(self.plan.arena_bytes), "scratch": aligned(self.scratch_bytes)})
        return partial(context.run, function)

    def _write(self) -> None:
        code, plan, program = self.code, self.plan, self.plan.program
        code.shared.update(copyto=np.copyto, empty=np.empty, contiguous=np.ascontiguousarray)
        inputs = [f"a{i}" for i in range(len(program.inputs))]
        if inputs:
            code.line(f"({', '.join(inputs)},) = arrays")
        # Sums depend on memory order in their last bits, so it is the same whatever arrays come in.
        for name, value in zip(inputs, program.inputs, strict=True):
            if value.type.rank:
                code.line(f"if not {name}.flags.c_contiguous: {name} = contiguous({name})")
        lowering = Lowering(code, plan, inputs, self._output, "arena", self.threads, self._segments if self.native else None)
        lowering.lower()
        self.scratch_bytes = lowering.scratch_bytes
        for blocks in lowering.blocked:
            self._codes.update((c.filename, c) for c in blocks.codes)
        code.line(f"return [{', '.join(map(self._returned, range(len(program.outputs))))}]")

    def _segments(self, lowering: Lowering) -> Segments:
        from tpc.runtime.native.segments import Segments

        return Segments(lowering, self.folder)

    def _output(self, j: int) -> str:
        """The name of output j's array; the line that makes it is written when it is first asked for."""
        name, type = f"o{j}", self.plan.program.outputs[j].type
        if name not in self._made:
            self._made.add(name)
            if type.nbytes >= RECYCLED_FROM:
                shape, dtype = type.shape, type.numpy_dtype
                take = self.code.recipe("take", lambda names: recycler(shape, dtype))
                self.code.line(f"{name} = {take}()")
            else:
                self.code.line(f"{name} = empty({type.shape}, {self.code.bind('dtype', type.numpy_dtype)})")
        return name

    def _returned(self, j: int) -> str:
        place = self.plan.places[self.plan.program.outputs[j]]
        return f"a{place.index}" if place.kind == "input" and j not in self.plan.copied else f"o{j}"

    def _explain(self, error: Exception) -> None:
        """Notes which op raised, found by the line of generated code that the traceback leads through."""
        notes, traceback = [], error.__traceback__
        while traceback is not None:
            code = self._codes.get(traceback.tb_frame.f_code.co_filename)
            op = code.op_at(traceback.tb_lineno) if code is not None else None
            if op is not None:
                notes.append(op_note(op, self.plan.program))
            traceback = traceback.tb_next
        if notes:
            error.add_note(notes[-1])
