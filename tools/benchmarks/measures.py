"""What is not a workload: the cost of a compiled call, of recording an operator, of importing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from statistics import median

from peers import Peer, PeerError, Process, environment

Cost = tuple[str, str, float]
"""(what, whose, seconds)"""


def call(peers: list[Peer], rounds: int) -> list[Cost]:
    """time of a compiled call with 10 lifted parameters, above its kernels"""
    return _ask(peers, rounds, ("call, 10 parameters read", "call, 10 parameters written"))


def record(peers: list[Peer], rounds: int) -> list[Cost]:
    """time of one recorded operator on 16 elements (torch: of one that is computed)"""
    return _ask(peers, rounds, ("operator, not tracked", "operator, tracked"))


def _ask(peers: list[Peer], rounds: int, names: tuple[str, ...]) -> list[Cost]:
    once = [p for p in peers if p.mode in ("joint", "eager")]
    processes = [Process(p) for p in once]
    costs: list[Cost] = []
    for name in names:
        times: list[list[float]] = [[] for _ in once]
        for _ in range(rounds):
            for process, found in zip(processes, times, strict=True):
                try:
                    found.append(process.ask("measure", name=name)["seconds"])
                except PeerError:
                    break
        costs += [(name, peer.name.split()[0], median(found)) for peer, found in zip(once, times, strict=True) if found]
    for process in processes:
        process.close()
    return costs


def import_(peers: list[Peer], rounds: int) -> list[Cost]:
    """time to import tpc, and NumPy alone, each in fresh processes that find their bytecode"""
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    times: dict[str, list[float]] = {"numpy": [], "tpc": []}
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {**environment(), "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(rounds + 1):
            for module, found in times.items():
                command = [sys.executable, "-c", code.format(module)]
                found.append(float(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=surroundings).stdout))
    return [(f"import {module}", module, median(found[1:])) for module, found in times.items()]


ALL = {"call": call, "record": record, "import": import_}
