"""Views, scatters of views, arrays from nothing, joining, scans."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.runtime.kernels.elementwise import copied
from tpc.runtime.kernels.registry import Run, kernel


@kernel("reshape")
def _(op: Op) -> Run:
    shape = op.results[0].type.shape
    return lambda x: x.reshape(shape)


@kernel("permute")
def _(op: Op) -> Run:
    dims: Any = op.attrs["dims"]
    return lambda x: x.transpose(dims)


@kernel("broadcast_to")
def _(op: Op) -> Run:
    shape = op.results[0].type.shape
    return lambda x: np.broadcast_to(x, shape)


def _slices(op: Op) -> Any:
    attrs: Any = op.attrs
    return tuple(slice(a, b, c) for a, b, c in zip(attrs["starts"], attrs["limits"], attrs["steps"], strict=True))


@kernel("slice")
def _(op: Op) -> Run:
    where = _slices(op)
    # With an Ellipsis a 0-d result is an array, not a scalar.
    return lambda x: x[(*where, ...)]


def _diagonal_of(x: np.ndarray, op: Op) -> np.ndarray:
    attrs: Any = op.attrs
    return np.diagonal(x, attrs["offset"], attrs["dim1"], attrs["dim2"])


@kernel("diagonal")
def _(op: Op) -> Run:
    return lambda x: _diagonal_of(x, op)


def based(x: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The array to write into: a copy of the base, unless it is its own buffer already."""
    if out is None:
        return np.array(x, order="C")
    if out is not x and (out.__array_interface__["data"] != x.__array_interface__["data"] or out.strides != x.strides):
        np.copyto(out, x)
    return out


@kernel("slice_scatter")
def _(op: Op) -> Run:
    where = (*_slices(op), ...)

    def run(base: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = based(base, out)
        result[where] = src
        return result

    return run


@kernel("diagonal_scatter")
def _(op: Op) -> Run:
    def run(base: np.ndarray, src: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = based(base, out)
        diagonal = _diagonal_of(result, op)
        diagonal.flags.writeable = True
        diagonal[...] = src
        return result

    return run


def _made(op: Op, array: np.ndarray) -> Run:
    """A kernel that gives a fresh copy of a fixed array."""

    def run(out: np.ndarray | None = None) -> np.ndarray:
        return copied(array, out)

    return run


@kernel("constant")
def _(op: Op) -> Run:
    return _made(op, np.array(op.attrs["value"], op.results[0].type.numpy_dtype))


@kernel("literal")
def _(op: Op) -> Run:
    type, data = op.results[0].type, op.attrs["data"]
    assert isinstance(data, str)
    raw = np.frombuffer(base64.b64decode(data), type.numpy_dtype.newbyteorder("<"))
    return _made(op, raw.astype(type.numpy_dtype).reshape(type.shape))


@kernel("iota")
def _(op: Op) -> Run:
    attrs: Any = op.attrs
    type = op.results[0].type
    work = np.float64 if type.dtype[0] == "f" else np.complex128 if type.dtype[0] == "c" else np.int64
    return _made(op, (attrs["start"] + np.arange(type.shape[0], dtype=work) * attrs["step"]).astype(type.numpy_dtype))


@kernel("linspace")
def _(op: Op) -> Run:
    attrs: Any = op.attrs
    type = op.results[0].type
    n, dtype = type.shape[0], type.numpy_dtype
    start, end = dtype.type(attrs["start"]), dtype.type(attrs["end"])
    if n < 2:
        return _made(op, np.full(n, start, dtype))
    if dtype.kind in "iu":
        step = (np.float64(attrs["end"]) - np.float64(attrs["start"])) / (n - 1)
        return _made(op, (attrs["start"] + step * np.arange(n)).astype(dtype))
    # From both ends to the middle, so that the result is symmetric.
    step = (end - start) / dtype.type(n - 1)
    i = np.arange(n).astype(dtype)
    return _made(op, np.where(np.arange(n) < n // 2, start + step * i, end - step * (dtype.type(n - 1) - i)).astype(dtype))


@kernel("eye")
def _(op: Op) -> Run:
    type = op.results[0].type
    return _made(op, np.eye(*type.shape, dtype=type.numpy_dtype))


@kernel("cat")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    count = len(op.operands)

    def run(*arrays: Any) -> Any:
        out = arrays[count] if len(arrays) > count else None
        return np.concatenate(arrays[:count], axis=dim, out=out)

    return run


@kernel("flip")
def _(op: Op) -> Run:
    dims: Any = op.attrs["dims"]
    return lambda x, out=None: copied(np.flip(x, dims), out)


@kernel("pad")
def _(op: Op) -> Run:
    attrs: Any = op.attrs
    type = op.results[0].type
    value = attrs["value"]
    inside = tuple(slice(low, low + n) for low, n in zip(attrs["low"], op.operands[0].type.shape, strict=True))

    def run(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(type.shape, type.numpy_dtype) if out is None else out
        result[...] = value
        result[inside] = x
        return result

    return run


@kernel("tril", "triu")
def _(op: Op) -> Run:
    diagonal: Any = op.attrs["diagonal"]
    rows, columns = op.results[0].type.shape[-2:]
    lower = np.tri(rows, columns, diagonal if op.name == "tril" else diagonal - 1, dtype=bool)
    mask = lower if op.name == "tril" else ~lower

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return copied(np.where(mask, x, x.dtype.type(0)), out)

    return run


@kernel("cumsum", "cumprod")
def _(op: Op) -> Run:
    dim: Any = op.attrs["dim"]
    dtype = op.results[0].type.numpy_dtype
    scan = np.add if op.name == "cumsum" else np.multiply
    # As in PyTorch, the running total is kept in double precision; for halves, single does.
    wide = np.dtype({"f2": "f4", "f4": "f8", "c8": "c16"}.get(dtype.str[1:], dtype.str))

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        if x.ndim == 0:
            return copied(x.astype(dtype), out)
        totals = scan.accumulate(x, axis=dim, dtype=wide)
        return totals.astype(dtype, copy=False) if out is None else copied(totals, out)

    return run
