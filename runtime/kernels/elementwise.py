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

    def half(*arrays: Any) -> np.ndarray:
        out = arrays[-1] if len(arrays) > run.__code__.co_argcount - 1 else None  # type: ignore[attr-defined]
        operands = arrays[:-1] if out is not None else arrays
        result = run(*[a.astype(np.float32) for a in operands]).astype(np.float16)
        return result if out is None else copied(result, out)

    return half


def _composite(name: str) -> Callable[[Run], Run]:
    """Enters a sequence `run(*arrays, out=None)` of ufuncs."""

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


# W. J. Cody, Rational Chebyshev approximation for the error function, Math. Comp. 23 (1969): |x| <= 0.46875, and erfc above.
_A = (3.16112374387056560e00, 1.13864154151050156e02, 3.77485237685302021e02, 3.20937758913846947e03, 1.85777706184603153e-1)
_B = (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03)
_C = (
    5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e01, 2.98635138197400131e02, 8.81952221241769090e02,
    1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03, 2.15311535474403846e-8,
)  # fmt: skip
_D = (
    1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03, 3.29079923573345963e03,
    4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03,
)  # fmt: skip


def _erf64(x: np.ndarray) -> np.ndarray:
    z = x * x
    top, bottom = _A[4] * z, z.copy()
    for a, b in zip(_A[:3], _B[:3], strict=True):
        top, bottom = (top + a) * z, (bottom + b) * z
    near = x * (top + _A[3]) / (bottom + _B[3])
    y = np.minimum(np.abs(x), 6.0)  # erfc(6) is below half an ulp of 1
    top, bottom = _C[8] * y, y.copy()
    for c, d in zip(_C[:7], _D[:7], strict=True):
        top, bottom = (top + c) * y, (bottom + d) * y
    grid = np.trunc(y * 16.0) / 16.0  # exp(-y*y) from two exact pieces
    tail = np.exp(-grid * grid) * np.exp(-(y - grid) * (y + grid)) * (top + _C[7]) / (bottom + _D[7])
    return np.where(np.abs(x) <= 0.46875, near, np.copysign(1.0 - tail, x))


@kernel("erf")
def _(op: Op) -> Run:
    dtype = op.results[0].type.numpy_dtype

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        result = _erf64(x.astype(np.float64)).astype(dtype)
        return result if out is None else copied(result, out)

    return run


@kernel("relu")
def _(op: Op) -> Run:
    zero = op.results[0].type.numpy_dtype.type(0)

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return np.maximum(x, zero, out)

    return run


@kernel("sign")
def _(op: Op) -> Run:
    if op.results[0].type.dtype == "bool":
        return copied

    def run(x: np.ndarray, out: np.ndarray | None = None) -> Any:
        return _positive_zero(np.sign(x, out))

    def _positive_zero(result: Any) -> Any:
        # PyTorch's sign is (x > 0) - (x < 0): NaN and -0.0 give 0.
        if not isinstance(result, np.ndarray):
            return result if result > 0 or result < 0 else type(result)(0)
        np.copyto(result, 0, where=~((result > 0) | (result < 0)))
        return result

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


def _division(name: str, run: Run) -> None:
    def checked(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        if not np.all(b):
            raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")
        return run(a, b, out)

    kernel(name)(lambda op: checked if category(op.results[0].type.dtype) == 1 else run)


for _name, _ufunc in {"floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod}.items():
    _division(_name, _ufunc)


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
            return np.minimum(np.maximum(x, lo), hi, out)
        low = np.maximum(x, lo, out)
        return np.minimum(low, hi, out)

    return run


@kernel("where")
def _(op: Op) -> Run:
    def run(cond: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> Any:
        if out is None:
            return np.where(cond, a, b)
        if np.may_share_memory(out, a) or np.may_share_memory(out, cond):
            np.copyto(out, np.where(cond, a, b))
        else:
            np.copyto(out, b)
            np.copyto(out, a, where=cond)
        return out

    return run


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
