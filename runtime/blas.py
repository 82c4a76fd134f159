"""Products of matrices by MKL, where the extra `tpc[mkl]` is installed: functions by address, and a product on NumPy's arrays.

The library is found through the files that the package `mkl` lists, never through the system's paths, and is loaded when first asked for.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from ctypes import c_double, c_float, c_int, c_size_t, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CHOICES = ("auto", "numpy", "mkl")
"""What products may run on: MKL where it is installed and faster, NumPy's own library, or MKL wherever a call of it pays."""
ROW_MAJOR, COLUMN_MAJOR, PLAIN, TRANSPOSED = 101, 102, 111, 112
"""Numbers of the C interface to BLAS."""
LIMIT = 2**31
"""MKL counts elements along an axis in 32 bits."""
OPENMP_LAYER = 0

_LOADING = threading.Lock()


def _setting() -> str:
    return "auto"


def follow(setting: Callable[[], str]) -> None:
    """Asks `setting` from now on which of `CHOICES` holds."""
    global _setting
    _setting = setting


def choice() -> str:
    """Which of `CHOICES` holds, "numpy" instead of "auto" without MKL; `RuntimeError` where MKL is asked for and not there, `ValueError`
    for a setting that there is not."""
    wanted = _setting()
    if wanted not in CHOICES:
        raise ValueError(f"there is no blas {wanted!r}; there are {', '.join(map(repr, CHOICES))}")
    if wanted == "numpy" or available():
        return wanted
    if wanted == "mkl":
        raise RuntimeError("blas 'mkl' needs the package mkl: pip install 'tpc[mkl]'")
    return "numpy"


# --- the library --------------------------------------------------------------------------------


def _installed(package: str, pattern: str) -> Path | None:
    """The first file of an installed package whose name matches."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files(package) or []
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in listed if re.fullmatch(pattern, file.name))
    return next((path.resolve() for path in found if path.exists()), None)


@lru_cache(maxsize=1)
def _loaded() -> Any:
    """MKL as `ctypes` sees it, or None."""
    path = _installed("mkl", r"(lib)?mkl_rt(\.\d+)?\.(so|dll|dylib)(\.\d+)*")
    threads = _installed("intel-openmp", r"lib(iomp5|iomp5md)\.(so|dll|dylib)")
    if path is None or threads is None:
        return None
    try:
        # MKL looks for this one by its name alone
        ctypes.CDLL(str(threads), mode=ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(str(path))
        library.MKL_Set_Threading_Layer(OPENMP_LAYER)
    except (OSError, AttributeError):
        return None
    return library


def library() -> Any:
    """MKL as `ctypes` sees it, loaded once; None where it is not installed or does not load."""
    with _LOADING:
        return _loaded()


def available() -> bool:
    """Whether MKL is there."""
    return library() is not None


def address(name: str) -> int:
    """Where a function such as "cblas_sgemm" begins; its integers have 32 bits. `RuntimeError` without MKL or without that function."""
    mkl = library()
    if mkl is None:
        raise RuntimeError(f"{name} needs the package mkl: pip install 'tpc[mkl]'")
    try:
        function = getattr(mkl, name)
    except AttributeError:
        raise RuntimeError(f"MKL has no function {name}") from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def set_threads(count: int) -> None:
    """Threads that a product may use, in all threads of the process; without MKL nothing happens."""
    if (mkl := library()) is not None:
        mkl.MKL_Set_Num_Threads(max(1, count))


def threads() -> int:
    """Threads that a product may use; 1 without MKL."""
    return 1 if (mkl := library()) is None else int(mkl.MKL_Get_Max_Threads())


class _Functions(NamedTuple):
    """The products of one dtype, of two matrices and of two stacks of them."""

    single: Callable[..., None]
    stacked: Callable[..., None]


@lru_cache(maxsize=2)
def _functions(letter: str) -> _Functions:
    number: Any = {"s": c_float, "d": c_double}[letter]
    sizes, matrix, stack = [c_int] * 6, [c_void_p, c_int], [c_void_p, c_int, c_size_t]
    single = ctypes.CFUNCTYPE(None, *sizes, number, *matrix, *matrix, number, *matrix)
    stacked = ctypes.CFUNCTYPE(None, *sizes, number, *stack, *stack, number, *stack, c_int)
    return _Functions(single(address(f"cblas_{letter}gemm")), stacked(address(f"cblas_{letter}gemm_batch_strided")))


# --- products -----------------------------------------------------------------------------------


Sizes = tuple[int, ...]


class _Layout(NamedTuple):
    """How BLAS reads an array: elements along rows or along columns, from one of those to the next, and from matrix to matrix."""

    order: int
    lead: int
    step: int


def _layout(shape: Sizes, strides: Sizes, item: int) -> _Layout | None:
    """How BLAS reads the matrices of an array; None if it cannot."""
    (m, n), (down, along), step = shape[-2:], strides[-2:], strides[0] if len(shape) > 2 else 0
    if m >= LIMIT or n >= LIMIT or step % item or step < 0:
        return None
    if (along == item or n == 1) and (m == 1 or (down >= n * item and down % item == 0)):
        return _Layout(PLAIN, n if m == 1 else down // item, step // item)
    if (down == item or m == 1) and (n == 1 or (along >= m * item and along % item == 0)):
        return _Layout(TRANSPOSED, m if n == 1 else along // item, step // item)
    return None


class _Call(NamedTuple):
    """A function of BLAS, and what it is told beside the factors and the addresses."""

    function: Callable[..., None]
    head: Sizes
    of_a: Sizes
    of_b: Sizes
    of_out: Sizes
    stack: Sizes


@lru_cache(maxsize=4096)
def _planned(kind: str, *geometry: Sizes) -> _Call | None:
    """How to call BLAS for arrays of these shapes and strides (of a, of b, of the result); None if it cannot read one of them."""
    shapes, item = geometry[::2], 4 if kind == "f" else 8
    layouts = [_layout(shape, strides, item) for shape, strides in zip(shapes, geometry[1::2], strict=True)]
    a, b, out = layouts
    if a is None or b is None or out is None:
        return None
    # BLAS reads all in the order of the result; one that is in the other order is transposed for it.
    head = (ROW_MAJOR if out.order == PLAIN else COLUMN_MAJOR, *(PLAIN if x.order == out.order else TRANSPOSED for x in (a, b)))
    sizes, functions = (*shapes[0][-2:-1], shapes[1][-1], shapes[0][-1]), _functions("s" if kind == "f" else "d")
    if len(shapes[2]) == 2:
        return _Call(functions.single, (*head, *sizes), (a.lead,), (b.lead,), (out.lead,), ())
    return _Call(functions.stacked, (*head, *sizes), a[1:], b[1:], out[1:], shapes[2][:1])


def _at(x: np.ndarray) -> Any:
    """Where the elements begin: what the first field of an array says. NumPy's own ways to ask take as long as a small product."""
    return c_void_p.from_address(id(x) + object.__basicsize__).value


def gemm(a: np.ndarray, b: np.ndarray, out: np.ndarray, alpha: float = 1.0, beta: float = 0.0) -> None:
    """out = alpha a b + beta out by MKL, for matrices or stacks of them.

    `out` is [m, n] or [batch, m, n]; a is [m, k] or [batch, m, k] and b [k, n] or [batch, k, n], where one matrix serves every b or a of
    a stack. All are f32 or all f64, none overlaps `out`, and in each the elements along a row or along a column are consecutive:
    nothing is copied. `out` is not read where beta is 0. ValueError for other arrays, RuntimeError without MKL.
    """
    if not (a.dtype == b.dtype == out.dtype and out.dtype.char in "fd"):
        raise ValueError(f"gemm: operands must be f32 or f64 throughout, not {a.dtype}, {b.dtype} and {out.dtype}")
    (m, k), n = a.shape[-2:], b.shape[-1]
    wanted = ((a, (m, k)), (b, (k, n)), (out, (m, n)))
    if out.ndim not in (2, 3) or any(x.shape not in (s, (*out.shape[:-2], *s)) for x, s in wanted):
        raise ValueError(f"gemm: shapes {a.shape} and {b.shape} do not give {out.shape}")
    if not multiply(a, b, out, alpha, beta):
        raise ValueError("gemm: the elements along rows or columns must be consecutive")


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray, alpha: float = 1.0, beta: float = 0.0) -> bool:
    """What `gemm` does, for arrays of the right dtypes and shapes. False, and nothing done, where BLAS cannot read one."""
    if a.size == 0 or out.size == 0:
        np.multiply(out, beta, out) if beta else out.fill(0)
        return True
    call = _planned(out.dtype.char, a.shape, a.strides, b.shape, b.strides, out.shape, out.strides)
    if call is None:
        return False
    call.function(*call.head, alpha, _at(a), *call.of_a, _at(b), *call.of_b, beta, _at(out), *call.of_out, *call.stack)
    return True
