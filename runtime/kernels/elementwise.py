"""Elementwise kernels: ufuncs, and a few short sequences of them that work in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tpc.ir.program import Op
from tpc.ir.types import category, is_complex
from tpc.runtime.kernels.registry import Run, kernel, ufunc

for _name, _ufunc in {
    "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "reciprocal": np.reciprocal,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "neg": np.negative, "square": np.square, "conj": np.conjugate, "bitwise_not": np.invert,
    "logical_not": np.logical_not, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "abs": np.absolute,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "atan2": np.arctan2,
    "maximum": np.maximum, "minimum": np.minimum, "clamp_min": np.maximum, "clamp_max": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
}.items():  # fmt: skip
    ufunc(_name, _ufunc)


def copied(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if out is None:
        return np.array(x, order="C")
    np.copyto(out, x)
    return out


ufunc("copy", copied)


def _in_single(run: Run) -> Run:
    """Half precision computed in single precision and rounded once, as PyTorch does."""

    def half(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        result = run(x.astype(np.float32)).astype(np.float16)
        return result if out is None else copied(result, out)

    return half


def _composite(name: str) -> Callable[[Run], Run]:
    """Enters a sequence of ufuncs `run(x, out=None)`."""

    def enter(run: Run) -> Run:
        kernel(name)(lambda op: _in_single(run) if op.results[0].type.dtype == "f16" else run)
        return run

    return enter


@_composite("rsqrt")
def _rsqrt(x: np.ndarray, out: np.ndarray | None = None) -> Any:
    if out is None:
        out = np.empty(x.shape, x.dtype)
    np.sqrt(x, out)
    return np.reciprocal(out, out)


@_composite("sigmoid")
def _sigmoid(x: np.ndarray, out: np.ndarray | None = None) -> Any:
    if out is None:
        out = np.empty(x.shape, x.dtype)
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1, out)
    return np.reciprocal(out, out)


@kernel("relu")
def _(op: Op) -> Run:
    zero = op.results[0].type.numpy_dtype.type(0)

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return np.maximum(x, zero, out=out)

    return run


@kernel("sign")
def _(op: Op) -> Run:
    if op.results[0].type.dtype == "bool":
        return copied

    dtype = op.results[0].type.numpy_dtype
    if dtype.kind == "u":
        return np.sign

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        # PyTorch's (x > 0) - (x < 0): NaN and -0.0 give 0.
        signs = np.subtract(np.greater(x, 0).view(np.int8), np.less(x, 0).view(np.int8))
        return signs.astype(dtype) if out is None else copied(signs, out)

    return run


def _rounding(name: str, run: Run) -> None:
    kernel(name)(lambda op: run if op.results[0].type.dtype[0] == "f" else copied)


for _name, _ufunc in {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}.items():
    _rounding(_name, _ufunc)


@kernel("real", "imag")
def _(op: Op) -> Run:
    part = op.name

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return copied(getattr(x, part), out)

    return run


def _checked_division(run: Run) -> Run:
    def checked(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        if not np.all(b):
            raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")
        return run(a, b, out)

    return checked


kernel("floor_divide")(lambda op: np.floor_divide if op.results[0].type.dtype[0] == "f" else _checked_division(np.floor_divide))
kernel("fmod")(lambda op: np.fmod if op.results[0].type.dtype[0] == "f" else _checked_division(np.fmod))


@kernel("remainder")
def _(op: Op) -> Run:
    dtype = op.results[0].type.numpy_dtype
    if dtype.kind != "f":
        return _checked_division(np.remainder)
    select = selector(dtype)

    def run(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        # As in PyTorch a zero keeps the sign that fmod gives it; np.remainder gives it the divisor's.
        rest = np.fmod(a, b)
        wrong = np.not_equal(np.less(rest, 0), np.less(b, 0)) & np.not_equal(rest, 0)
        return select(wrong, np.add(rest, b), rest, out)

    return run


@kernel("pow")
def _(op: Op) -> Run:
    if category(op.results[0].type.dtype) != 1 or op.results[0].type.dtype[0] == "u":
        return np.power

    def run(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        negative = b < 0
        if not negative.any():
            return np.power(a, b, out)
        # 1/a**n rounded towards 0: only 1 and -1 are left.
        small = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
        result = np.where(negative, small, np.power(a, np.where(negative, 0, b))).astype(a.dtype)
        return result if out is None else copied(result, out)

    return run


@kernel("clamp")
def _(op: Op) -> Run:
    def run(x: np.ndarray, lo: np.ndarray, hi: np.ndarray, out: np.ndarray | None = None) -> Any:
        if out is not None and np.may_share_memory(out, hi):
            return np.minimum(np.maximum(x, lo), hi, out=out)
        return np.minimum(np.maximum(x, lo, out=out), hi, out=out)

    return run


FEW = 4096
"""Up to so many elements, np.where is faster than arithmetic on bits."""


def selector(dtype: np.dtype) -> Run:
    """A kernel for cond ? a : b without branches: on random conditions those cost five times as much."""
    if dtype.itemsize > 8:
        return _chosen
    bits = np.dtype(f"i{dtype.itemsize}")

    def select(cond: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        if cond.size <= FEW:
            return _chosen(cond, a, b, out)
        mask = cond.view(np.int8).astype(bits)
        np.negative(mask, mask)
        a, b = a.view(bits), b.view(bits)
        differing = np.bitwise_and(np.bitwise_xor(a, b), mask)
        return np.bitwise_xor(differing, b, None if out is None else out.view(bits)).view(dtype)

    return select


def _chosen(cond: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
    result = np.where(cond, a, b)
    return result if out is None else copied(result, out)


@kernel("where")
def _(op: Op) -> Run:
    return selector(op.results[0].type.numpy_dtype)


@kernel("cast")
def _(op: Op) -> Run:
    dtype = op.results[0].type.numpy_dtype
    drops = is_complex(op.operands[0].type.dtype) and dtype.kind not in "cb"

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        if drops:
            x = x.real
        if out is None:
            return x.astype(dtype)
        np.copyto(out, x, casting="unsafe")
        return out

    return run
