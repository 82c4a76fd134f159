"""What can be seen of tensors after a call, and whether two runs saw the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Seen(NamedTuple):
    """One tensor (or None) at one moment."""

    array: np.ndarray
    tracked: bool
    leaf: bool
    version: int
    grad: Seen | None


Moment = dict[str, "Seen | None"]
"""All tensors in sight, by name."""


class Failed(NamedTuple):
    """A call that raised: the class, what stood where, and what tensors were before and after."""

    error: BaseException
    before: Moment
    after: Moment | Failed | None = None

    @property
    def kind(self) -> str:
        return type(self.error).__name__


def seen(t: Any) -> Seen | None:
    if t is None:
        return None
    if not hasattr(t, "requires_grad"):
        return Seen(np.asarray(t), False, True, 0, None)
    tracked, leaf = t.requires_grad, t.is_leaf
    grad = seen(t.grad) if leaf else None
    return Seen(np.array(t.detach().numpy(), copy=True), tracked, leaf, t._version, grad)


def moment(tensors: Mapping[str, Any], results: Iterable[Any] = ()) -> Moment:
    """Everything in sight. Raises what asking for a value raises."""
    return {name: seen(t) for name, t in [*tensors.items(), *((f"result {i}", r) for i, r in enumerate(results))]}


def difference(a: Moment, b: Moment, tolerance: float = 0.0) -> str | None:
    """What differs first, or None. Versions count where others may have saved a tensor: for what was there before the call."""
    if a.keys() != b.keys():
        return f"{sorted(a)} against {sorted(b)}"
    for name in a:
        found = _difference(a[name], b[name], tolerance, not name.startswith("result"))
        if found:
            return f"{name}: {found}"
    return None


def _difference(a: Seen | None, b: Seen | None, tolerance: float, versions: bool) -> str | None:
    if a is None or b is None:
        return None if a is b else f"{a} against {b}"
    if (found := array_difference(a.array, b.array, tolerance)) is not None:
        return found
    if a.tracked != b.tracked:
        return f"requires_grad {a.tracked} against {b.tracked}"
    if a.leaf != b.leaf:
        return f"is_leaf {a.leaf} against {b.leaf}"
    if versions and a.version != b.version:
        return f"version {a.version} against {b.version}"
    found = _difference(a.grad, b.grad, tolerance, False)
    return f"grad: {found}" if found else None


def array_difference(a: np.ndarray, b: np.ndarray, tolerance: float = 0.0) -> str | None:
    """Compares dtypes, shapes and bits (any NaN equals any NaN); or numbers that differ by `tolerance` units in the
    last place of the largest one (or of 1)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)}"
    if _same_bits(a, b) or (tolerance and _close(a, b, tolerance)):
        return None
    return f"values differ\n{a!r}\n{b!r}"


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == "c":
        return _same_bits(a.real, b.real) and _same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b)))


def _close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        finite = np.isfinite(x) & np.isfinite(y)
        scale = max(np.abs(x[finite]).max(initial=0), 1.0)
        tolerance *= float(np.finfo(a.dtype).eps)
        return bool(
            np.array_equal(np.where(finite, 0, x), np.where(finite, 0, y), equal_nan=True)
            and np.all(np.abs(x - y)[finite] <= tolerance * scale)
        )
