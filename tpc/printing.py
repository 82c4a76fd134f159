"""How tensors print: PyTorch's format, numbers aligned, long ones summarised."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tpc.dtype import BY_IR, default_dtype
from tpc.state import STATE
from tpc.tensor import Tensor

PRECISION = 4
THRESHOLD = 1000
"""Tensors with more elements show only the ends of each dimension."""
EDGE = 3
WIDTH = 80


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Digits after the point, elements from which on a tensor is summarised, elements shown at each end, characters per line."""
    global PRECISION, THRESHOLD, EDGE, WIDTH
    profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, 2**62, 3, 80)}
    if profile is not None:
        PRECISION, THRESHOLD, EDGE, WIDTH = profiles[profile]
    PRECISION = PRECISION if precision is None else precision
    THRESHOLD = THRESHOLD if threshold is None else threshold
    EDGE, WIDTH = EDGE if edgeitems is None else edgeitems, WIDTH if linewidth is None else linewidth


def text_of(x: Tensor) -> str:
    """`tensor([1., 2.], grad_fn=<MulBackward0>)`."""
    dtype = x._type.dtype
    array = _value(x)
    prefix = "tensor("
    notes = []
    if array is None:
        body = "..."
        notes.append(f"size={tuple(x._type.shape)}")
    elif array.size == 0:
        body = "[]"
        if array.ndim != 1:
            notes.append(f"size={tuple(x._type.shape)}")
    else:
        body = _body(array, len(prefix))
    if not _is_implied(dtype, array):
        notes.append(f"dtype={BY_IR[dtype]}")
    if x.grad_fn is not None:
        notes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        notes.append("requires_grad=True")
    return _wrapped(prefix + body, notes, len(prefix)) + ")"


def _value(x: Tensor) -> np.ndarray | None:
    """The array, or None where there is none to look at: traced without values, or after the trace."""
    trace = STATE.trace
    if trace is None:
        return x._array() if x._storage.trace is None else None
    if not trace.concrete or x._storage.trace not in (None, trace):
        return None
    return trace.peek(x._read())


def _is_implied(dtype: str, array: np.ndarray | None) -> bool:
    if array is not None and array.size == 0:
        return dtype == default_dtype()
    return dtype in (default_dtype(), "i64", "bool", "c64" if default_dtype() == "f32" else "c128")


def _wrapped(text: str, notes: list[str], indent: int) -> str:
    last = len(text) - text.rfind("\n") + 1
    for note in notes:
        if last + len(note) + 2 > WIDTH:
            text += ",\n" + " " * indent + note
            last = indent + len(note)
        else:
            text += ", " + note
            last += len(note) + 2
    return text


def _body(array: np.ndarray, indent: int) -> str:
    summarise = array.size > THRESHOLD
    shown = _ends(array) if summarise else array
    form = _ComplexFormat(_format(shown.real), _format(shown.imag)) if array.dtype.kind == "c" else _format(shown)
    return _nested(array, indent, form, summarise)


def _ends(array: np.ndarray) -> np.ndarray:
    """What a summary shows, for choosing the number format."""
    for axis, n in enumerate(array.shape):
        if n > 2 * EDGE:
            array = array.take([*range(EDGE), *range(n - EDGE, n)], axis)
    return array


class _Format(NamedTuple):
    """Prints one number at a common width."""

    style: str
    width: int
    dot: bool = False
    """Whole floats print as `2.`"""

    def raw(self, v: Any) -> str:
        text = format(v, self.style)
        return text + "." if self.dot and math.isfinite(v) else text

    def one(self, v: Any) -> str:
        return self.raw(v).rjust(self.width)


def _format(array: np.ndarray) -> _Format:
    """The format that fits these numbers: whole ones as `1.`, exponents where the range is wide."""
    if array.dtype.kind in "biu":
        return _Format("", max(len(str(v)) for v in array.ravel().tolist()))
    values = array.astype(np.float64).ravel()
    values = values[np.isfinite(values) & (values != 0)]
    if values.size == 0:
        return _Format(".0f", 1, dot=True)
    largest, smallest = float(np.abs(values).max()), float(np.abs(values).min())
    if largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4:
        chosen = _Format(f".{PRECISION}e", 0)
    elif np.all(values == np.ceil(values)):
        chosen = _Format(".0f", 0, dot=True)
    else:
        chosen = _Format(f".{PRECISION}f", 0)
    return chosen._replace(width=max(len(chosen.raw(v)) for v in values.tolist()))


class _ComplexFormat(NamedTuple):
    real: _Format
    imag: _Format

    @property
    def width(self) -> int:
        return self.real.width + self.imag.width + 1

    def one(self, v: Any) -> str:
        imag = self.imag.raw(v.imag) + "j"
        return self.real.one(v.real) + ("" if imag[0] in "+-" else "+") + imag


def _nested(array: np.ndarray, indent: int, form: _Format | _ComplexFormat, summarise: bool) -> str:
    if array.ndim == 0:
        return form.one(array.item())
    cut = summarise and len(array) > 2 * EDGE
    if array.ndim == 1:
        texts = [form.one(v) for v in (array[:EDGE] if cut else array).tolist()]
        if cut:
            texts += [" ...", *[form.one(v) for v in array[-EDGE:].tolist()]]
        per_line = max(1, (WIDTH - indent) // (form.width + 2))
        lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [*array[:EDGE], None, *array[-EDGE:]] if cut else list(array)
    parts = ["..." if r is None else _nested(r, indent + 1, form, summarise) for r in rows]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"
