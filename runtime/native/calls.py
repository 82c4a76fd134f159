"""Lists of kernel calls that run as one call from Python.

A segment is a table of 64-bit words: which kernels run, in what order, on which memory. One native function, the driver,
walks the table. It is a method of the kind that CPython calls without making a tuple (METH_FASTCALL), and reads the data
pointers right out of the array objects that it is given: a call costs some tens of nanoseconds, however many kernels it runs.

Note: the table. Its header is `[count, most operands, None, PyLong_FromLongLong, PyEval_SaveThread or 0, PyEval_RestoreThread,
ndarray]`; then for every call `[kernel, start, stop, n, n times (base, offset)]`. Base 0 is address 0, base i + 1 the memory of
argument i.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tpc.runtime.native import jit

METH_FASTCALL = 0x80
HEADER = object.__basicsize__
"""Bytes before the first field of an object; in an array that is the pointer to its elements."""
COUNTS_NONE = sys.version_info < (3, 12)
"""Whether None has to be counted: later it is immortal."""


class Pointer(NamedTuple):
    """Where a kernel's operand lies: `offset` bytes into argument `base` - 1, or at the address `offset` if `base` is 0."""

    base: int
    offset: int


class KernelCall(NamedTuple):
    """One entry of a segment: the kernel at `address` over [start, stop) of its outermost loop."""

    address: int
    start: int
    stop: int
    pointers: tuple[Pointer, ...]


_DRIVER = """
define ptr @k(ptr %self, ptr %args, i64 %given) {{
entry:
  %self.data = getelementptr i8, ptr %self, i64 {header}
  %table = load ptr, ptr %self.data
  %count = load i64, ptr %table
  %most.at = getelementptr i64, ptr %table, i64 1
  %most = load i64, ptr %most.at
  %none.at = getelementptr i64, ptr %table, i64 2
  %none = load ptr, ptr %none.at
  %number.at = getelementptr i64, ptr %table, i64 3
  %number = load ptr, ptr %number.at
  %save.at = getelementptr i64, ptr %table, i64 4
  %save = load ptr, ptr %save.at
  %restore.at = getelementptr i64, ptr %table, i64 5
  %restore = load ptr, ptr %restore.at
  %type.at = getelementptr i64, ptr %table, i64 6
  %array = load ptr, ptr %type.at
  %first = getelementptr i64, ptr %table, i64 7
  %slots = add i64 %given, 1
  %bases = alloca i64, i64 %slots
  %pointers = alloca i64, i64 %most
  store i64 0, ptr %bases
  br label %resolve
resolve:
  %r = phi i64 [ 0, %entry ], [ %r.next, %known ]
  %r.done = icmp uge i64 %r, %given
  br i1 %r.done, label %resolved, label %look
look:
  %object.at = getelementptr ptr, ptr %args, i64 %r
  %object = load ptr, ptr %object.at
  %class.at = getelementptr i8, ptr %object, i64 {class_offset}
  %class = load ptr, ptr %class.at
  %is.array = icmp eq ptr %class, %array
  br i1 %is.array, label %known, label %foreign
known:
  %data.at = getelementptr i8, ptr %object, i64 {header}
  %data = load i64, ptr %data.at
  %r.next = add i64 %r, 1
  %base.at = getelementptr i64, ptr %bases, i64 %r.next
  store i64 %data, ptr %base.at
  br label %resolve
foreign:
  %strange = call ptr %number(i64 -1)
  ret ptr %strange
resolved:
  %holds = icmp eq ptr %save, null
  br i1 %holds, label %calls, label %release
release:
  %state = call ptr %save()
  br label %calls
calls:
  %kept = phi ptr [ null, %resolved ], [ %state, %release ]
  br label %next
next:
  %i = phi i64 [ 0, %calls ], [ %i.next, %ran ]
  %entry.at = phi ptr [ %first, %calls ], [ %entry.next, %ran ]
  %all = icmp uge i64 %i, %count
  br i1 %all, label %end, label %load
load:
  %kernel = load ptr, ptr %entry.at
  %start.at = getelementptr i64, ptr %entry.at, i64 1
  %start = load i64, ptr %start.at
  %stop.at = getelementptr i64, ptr %entry.at, i64 2
  %stop = load i64, ptr %stop.at
  %n.at = getelementptr i64, ptr %entry.at, i64 3
  %n = load i64, ptr %n.at
  %operands = getelementptr i64, ptr %entry.at, i64 4
  br label %point
point:
  %p = phi i64 [ 0, %load ], [ %p.next, %pointed ]
  %p.done = icmp uge i64 %p, %n
  br i1 %p.done, label %run, label %pointed
pointed:
  %pair = shl i64 %p, 1
  %which.at = getelementptr i64, ptr %operands, i64 %pair
  %which = load i64, ptr %which.at
  %offset.at = getelementptr i64, ptr %which.at, i64 1
  %offset = load i64, ptr %offset.at
  %memory.at = getelementptr i64, ptr %bases, i64 %which
  %memory = load i64, ptr %memory.at
  %where = add i64 %memory, %offset
  %pointer.at = getelementptr i64, ptr %pointers, i64 %p
  store i64 %where, ptr %pointer.at
  %p.next = add i64 %p, 1
  br label %point
run:
  %status = call i64 %kernel(ptr %pointers, i64 %start, i64 %stop)
  %failed = icmp ne i64 %status, 0
  br i1 %failed, label %end, label %ran
ran:
  %i.next = add i64 %i, 1
  %words = shl i64 %n, 1
  %entry.next = getelementptr i64, ptr %operands, i64 %words
  br label %next
end:
  br i1 %holds, label %back, label %acquire
acquire:
  call void %restore(ptr %kept)
  br label %back
back:
  br i1 %all, label %good, label %bad
good:
  {count_none}
  ret ptr %none
bad:
  %error = call ptr %number(i64 %i)
  ret ptr %error
}}
"""
_COUNT = "%refs = load i64, ptr %none\n  %more = add i64 %refs, 1\n  store i64 %more, ptr %none"


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def _symbol(name: str) -> int:
    """The address of a function of Python's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def _method(folder: Path | None) -> _MethodDef:
    """The driver as a method. It has to stay: functions point at it."""
    text = _DRIVER.format(header=HEADER, class_offset=HEADER - 8, count_none=_COUNT if COUNTS_NONE else "")
    return _MethodDef(b"segment", jit.address(f"driver {HEADER} {COUNTS_NONE}", lambda: text, folder), METH_FASTCALL, None)


def segment(calls: Sequence[KernelCall], releases: bool, folder: Path | None = None) -> Callable[..., int | None]:
    """The calls as one function of arrays, which must be exact `ndarray`s.

    It returns None; or the number of the call whose kernel said that it failed, after which none ran; or -1 if an argument is no array.
    `releases`: whether other Python threads may run meanwhile.
    """
    words = [
        len(calls),
        max((len(c.pointers) for c in calls), default=0),
        id(None),
        _symbol("PyLong_FromLongLong"),
        _symbol("PyEval_SaveThread") if releases else 0,
        _symbol("PyEval_RestoreThread"),
        id(np.ndarray),
    ]
    for call in calls:
        words += [call.address, call.start, call.stop, len(call.pointers), *(word for pointer in call.pointers for word in pointer)]
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Any = make(ctypes.addressof(_method(folder)), np.array(words, np.int64), None)
    return function  # type: ignore[no-any-return]
