"""Memory that tensors see: one current value and a version. Views and detached aliases share it."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from tpc.recording import Recorded, leaf
from tpc.state import STATE

if TYPE_CHECKING:
    from tpc.tracing import Trace

FLUSH_AFTER = 4096
"""Recorded values that may wait in one thread before they are computed, so that graphs nobody asks about stay bounded."""


class _Rearranged:
    """How often something changed that recordings depend on: which memory a tensor has or how it sees it, modules, the default dtype."""

    count = 0


REARRANGED = _Rearranged()


class Storage:
    """One current `Recorded` value and the number of writes so far.

    `trace` is the trace the storage was made in (None outside). `shared` is the array that NumPy code sees too:
    such memory is read by copy at recording time and written at once. `inference` says that it was made under `inference_mode`.
    """

    __slots__ = ("__weakref__", "inference", "shared", "trace", "value", "version")

    def __init__(self, value: Recorded, shared: np.ndarray | None = None) -> None:
        self.value = value
        self.version = 0
        self.shared = shared
        self.inference = STATE.inference
        self.trace: Trace | None = STATE.trace
        if value.data is None and self.trace is None:
            pending = STATE.pending
            pending.append(ref(self))
            if len(pending) > FLUSH_AFTER:
                from tpc.deferred import flush

                flush()

    @classmethod
    def unknown(cls, value: Recorded) -> Storage:
        """Memory that no array stands behind: the argument of a trace from types."""
        made = cls.__new__(cls)
        made.value, made.version, made.shared, made.trace, made.inference = value, 0, None, None, False
        return made

    def read(self) -> Recorded:
        """The current value; inside a trace, memory from outside is lifted to an input."""
        trace = STATE.trace
        if trace is self.trace and self.shared is None:
            return self.value
        return self._read_elsewhere(trace)

    def _read_elsewhere(self, trace: Trace | None) -> Recorded:
        if self.trace is not None and self.trace is not trace and (trace is None or not trace.is_outside(self)):
            raise RuntimeError(
                "a tensor that was recorded inside tpc.compile or tpc.trace is used outside of it: its value exists only within "
                "one compiled call. Return it from the function instead"
            )
        if trace is not None and trace.is_outside(self):
            return trace.read(self)
        assert self.shared is not None
        return leaf(self.shared.copy())

    def write(self, value: Recorded) -> None:
        """Replaces the value and counts the write."""
        self.set(value)
        trace = STATE.trace
        if trace is not None and trace.is_outside(self):
            trace.count_write(self)
        else:
            self.version += 1

    def set(self, value: Recorded) -> None:
        """Replaces the value."""
        trace = STATE.trace
        if trace is not None and trace.is_outside(self):
            trace.set(self, value)
        elif self.shared is not None:
            from tpc.deferred import compute, flush

            flush()
            np.copyto(self.shared, compute(value))
        else:
            self.value = value
            if value.data is None and trace is None:
                STATE.pending.append(ref(self))

    def current_version(self) -> int:
        trace = STATE.trace
        return self.version if trace is self.trace or trace is None else trace.version(self)

    def array(self) -> np.ndarray:
        """The memory itself, computed if need be; not to be written except through `share`."""
        if self.shared is not None:
            return self.shared
        if self.value.data is None:
            from tpc.deferred import compute

            return compute(self.value)
        return self.value.data

    def share(self) -> np.ndarray:
        """The array that from now on NumPy code sees too."""
        if self.shared is None:
            from tpc.deferred import flush

            array = self.array()
            flush()
            # References: the value's, this frame's, getrefcount's argument; the value's: the storage's, getrefcount's argument. Anyone
            # else who holds the array counts on its never changing.
            if not array.flags.writeable or array.base is not None or getrefcount(array) > 3 or getrefcount(self.value) > 2:
                array = array.copy()
            self.shared = array
        return self.shared

    def replace(self, array: np.ndarray) -> None:
        """Takes a new content that was computed elsewhere (a compiled call's write-back)."""
        if self.shared is not None:
            np.copyto(self.shared, array)
        else:
            self.value = leaf(array)
        self.version += 1


class Alias(Storage):
    """The memory of another storage under a version count of its own: what `x.data` gives."""

    __slots__ = ("target",)

    def __init__(self, target: Storage) -> None:
        self.target = target
        self.trace = target.trace
        self.inference = target.inference
        self.version = 0

    def read(self) -> Recorded:
        return self.target.read()

    def set(self, value: Recorded) -> None:
        self.target.set(value)

    def array(self) -> np.ndarray:
        return self.target.array()

    def share(self) -> np.ndarray:
        return self.target.share()
