"""A peer in a process of its own: obeys one JSON command a line on standard input, answers with one line each.

Processes keep the thread pools, allocators and caches of the libraries apart, and let each have its own Python.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np


class Worker:
    def __init__(self, adapter: str, mode: str) -> None:
        self.adapter, self.mode = importlib.import_module(adapter), mode
        self.step: Callable[[], Any] = lambda: None
        self.program: Any = None
        self.base = 0

    def build(self, workload: str) -> dict[str, Any]:
        module = importlib.import_module(f"workloads.{workload}")
        library = self.adapter.library()
        inputs = module.inputs(np.random.default_rng(0))
        if library is np:
            self.step = module.by_hand(**inputs)
        else:
            self.program = module.Program(library, **inputs)
            self.step = self.adapter.prepare(self.program, self.mode)
        self.base = _forget_peak()
        return {}

    def values(self, path: str) -> dict[str, Any]:
        """Runs three steps and writes what they came to: results of the last one, then parameters. The first is the first call."""
        start = perf_counter()
        self.step()
        first = perf_counter() - start
        self.step()
        found = self.step()
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        if getattr(self.program, "STATEFUL", False):
            results += self.program.parameters
        np.savez(path, *[self.adapter.to_numpy(x) for x in results])
        return {"first": first}

    def time(self, seconds: float) -> dict[str, Any]:
        """The median time of a call, over as many calls as fit."""
        step, times = self.step, []
        end = perf_counter() + seconds
        step()
        while True:
            start = perf_counter()
            step()
            stop = perf_counter()
            times.append(stop - start)
            if stop > end and len(times) >= 3:
                return {"seconds": median(times), "calls": len(times)}

    def memory(self) -> dict[str, Any]:
        """Peak bytes of this process above what it had when the inputs were made."""
        return {"bytes": _status("VmHWM") - self.base}

    def measure(self, name: str) -> dict[str, Any]:
        return {"seconds": self.adapter.MEASURES[name]()}


def _forget_peak() -> int:
    """Makes the peak of this process what it has now, and returns that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _status("VmHWM")
    return _status("VmRSS")


def _status(name: str) -> int:
    """A number of bytes from what Linux knows of this process; 0 elsewhere."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(text.split(f"{name}:")[1].split()[0]) * 1024


def main(adapter: str, mode: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    worker: Worker | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            worker = worker or Worker(adapter, mode)
            answer = getattr(worker, command.pop("do"))(**command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)
