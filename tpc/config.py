"""Settings. This is the only reader of the environment; each `TPC_NAME` has its twin `tpc.config.name`.

with tpc.config.using(verify=True):
    ...
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

verify: bool = False
"""TPC_VERIFY: check every program after every pass."""
dump: str | None = None
"""TPC_DUMP: folder that receives the IR text after each pass that changed something."""
skip: tuple[str, ...] = ()
"""TPC_SKIP: names of passes to leave out, to find the one at fault."""
threads: int = max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
"""TPC_THREADS: threads that large fused groups may use."""
backend: str = "auto"
"""TPC_BACKEND: what compiled programs run on: "numpy", "native" (llvmlite has to be installed), or "auto": native where it can be had."""
blas: str = "auto"
"""TPC_BLAS: what multiplies matrices: "numpy", "mkl" (that package has to be installed), or "auto": MKL where it is there and faster."""
cache_dir: str | None = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tpc")
"""TPC_CACHE_DIR: where machine code is kept between runs; None (an empty text) for nowhere."""

BACKENDS = ("auto", "numpy", "native")
BLAS = ("auto", "numpy", "mkl")

_READERS: dict[str, Callable[[str], Any]] = {
    "verify": lambda text: text not in ("", "0"),
    "dump": lambda text: text or None,
    "skip": lambda text: tuple(p for p in text.split(",") if p),
    "threads": lambda text: max(1, int(text)),
    "backend": lambda text: BACKENDS[BACKENDS.index(text)],
    "blas": lambda text: BLAS[BLAS.index(text)],
    "cache_dir": lambda text: text or None,
}


def _read_environment() -> None:
    for key, text in os.environ.items():
        if not key.startswith("TPC_"):
            continue
        name = key[4:].lower()
        reader = _READERS.get(name)
        if reader is None:
            warnings.warn(f"{key} is not a setting of tpc; there are " + ", ".join(f"TPC_{n.upper()}" for n in _READERS), stacklevel=2)
            continue
        try:
            globals()[name] = reader(text)
        except ValueError:
            warnings.warn(f"{key}={text!r} is not a valid setting and is ignored", stacklevel=2)


@contextmanager
def using(**settings: Any) -> Iterator[None]:
    """Sets some settings for a block."""
    unknown = settings.keys() - _READERS.keys()
    if unknown:
        raise AttributeError(f"tpc.config has no setting {', '.join(sorted(unknown))}; there are {', '.join(_READERS)}")
    before = {name: globals()[name] for name in settings}
    globals().update(settings)
    try:
        yield
    finally:
        globals().update(before)


_read_environment()
