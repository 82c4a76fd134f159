"""The peers of a run: processes that time one workload each, and which of them can be had here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent

SLOWED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Settings that make NumPy's products slower than they are on some processors."""


class Peer(NamedTuple):
    """A library in one of its modes, and the Python that has it."""

    name: str
    python: str
    adapter: str
    mode: str


class PeerError(Exception):
    """A peer that could not do what it was asked."""


def find(torch_python: str | None) -> list[Peer]:
    """Hand-written NumPy and tpc's modes in this Python; PyTorch in this one or another, where it can be imported."""
    here = sys.executable
    peers = [Peer("NumPy", here, "numpy_adapter", "by hand")]
    peers += [Peer(f"tpc {mode}", here, "bench_adapter", mode) for mode in ("joint", "numpy", "split", "deferred")]
    python = torch_python or here
    if can_import(python, "torch"):
        peers += [Peer("torch eager", python, "torch_adapter", "eager"), Peer("torch.compile", python, "torch_adapter", "compile")]
    return peers


def can_import(python: str, module: str) -> bool:
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", look], check=False).returncode == 0


THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TPC_THREADS")


def limit_threads(count: int) -> None:
    """Has every peer use so many threads."""
    os.environ.update(dict.fromkeys(THREADS, str(count)))


def environment() -> dict[str, str]:
    """The environment of the processes that are measured."""
    return {name: value for name, value in os.environ.items() if name not in SLOWED}


class Process:
    """A running peer."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        arguments = [peer.python, str(HERE), "--worker", peer.adapter, peer.mode]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Sends one command and waits for its answer; `PeerError` if the peer says that it cannot."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
