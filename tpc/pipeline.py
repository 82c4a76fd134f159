"""From recorded programs to executables: the passes, with what the settings ask to see of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

import numpy as np

from tpc import config
from tpc.ir.program import Program
from tpc.runtime import blas

blas.follow(lambda: config.blas)
_dumps = count()


def evaluate(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What passes fold constants with."""
    from tpc.runtime.interpreter import interpret

    return interpret(program, arrays)


def optimized(program: Program, memory_budget: float = 1.0, only: Collection[str] | None = None) -> Program:
    """The program after the standard passes (`only` some of them); `TPC_VERIFY`, `TPC_DUMP` and `TPC_SKIP` take effect here."""
    from tpc.ir.verify import verify
    from tpc.passes.pipeline import pass_name, run, standard

    passes = standard(evaluate, memory_budget, config.skip)
    if only is not None:
        passes = tuple(p for p in passes if pass_name(p) in only)
    watch = _Dump(program.name, config.dump) if config.dump else None
    return run(program, passes, watch=watch, verify=verify if config.verify else None)


def compile_program(program: Program, donate: Collection[int] = (), backend: str | None = None) -> Any:
    """An executable for a program that the passes have seen. `donate` are inputs that it may overwrite; `backend` is `config.backend`
    unless given."""
    from pathlib import Path

    from tpc.runtime.executable import Executable

    folder = Path(config.cache_dir, "native") if config.cache_dir else None
    return Executable(program, donate=donate, threads=config.threads, native=runs_native(backend or config.backend), folder=folder)


def runs_native(backend: str) -> bool:
    """Whether a backend means machine code here; `RuntimeError` where it is asked for and cannot be had, `ValueError` for no backend."""
    from tpc.runtime.native.jit import is_available

    if backend not in config.BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; there are {', '.join(map(repr, config.BACKENDS))}")
    if backend == "native" and not is_available():
        raise RuntimeError("the native backend needs llvmlite and CPython on a 64-bit machine: pip install 'tpc[native]'")
    return backend != "numpy" and is_available()


class _Dump:
    """Writes `03-f-cse.tir` into a folder for each pass that changed the text."""

    def __init__(self, program: str, folder: str) -> None:
        from pathlib import Path

        self.prefix = f"{next(_dumps):04d}-{program}"
        self.folder = Path(folder)
        self.step = 0
        self.last = ""
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, program: Program) -> None:
        text = str(program)
        if text != self.last:
            (self.folder / f"{self.prefix}-{self.step:02d}-{name}.tir").write_text(text)
        self.last = text
        self.step += 1


EARLY = ("simplify", "cse")
"""Passes that run on a joint program before it is split."""

LATE = ("fuse", "schedule")
"""Passes that run on its halves."""
