"""One call made with both libraries: what each gives back, or what it raises, and where they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

TOLERANCES = {"float16": 2e-3, "float32": 2e-5, "complex64": 2e-5}
DOUBLE = 1e-9


class Call(NamedTuple):
    """A public name, such as "sum", "nn.functional.pad" or "Tensor.view", and what it is called with. Arrays become tensors."""

    name: str
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - never written

    def __str__(self) -> str:
        given = [_short(a) for a in self.args] + [f"{k}={_short(v)}" for k, v in self.options.items()]
        return f"{self.name}({', '.join(given)})"


class Dtype(str):
    """The name of a dtype, for each library its own."""


def _short(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}" if x.size > 6 else f"{x.dtype}{x.tolist()}"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(_short, x)) + "]"
    return repr(x)


class Outcome(NamedTuple):
    """The results (values, then gradients of first and second order), or the class of the error and its message."""

    results: list[tuple[str, Any]]
    error: type[BaseException] | None = None
    message: str = ""


def outcome(library: Any, call: Call, gradients: bool) -> Outcome:
    """What one library makes of a call."""
    leaves: list[Any] = []

    def given(x: Any) -> Any:
        if isinstance(x, (np.ndarray, np.generic)):
            x = np.asarray(x)
            made = library.from_numpy(x.copy())
            if gradients and x.dtype.kind == "f":
                made.requires_grad_()
                leaves.append(made)
            return made
        if isinstance(x, Dtype):
            return getattr(library, x)
        return type(x)(map(given, x)) if type(x) in (list, tuple) else x

    try:
        args, options = [given(a) for a in call.args], {k: given(v) for k, v in call.options.items()}
        function = library
        for part in call.name.split("."):
            function = getattr(function, part)
        outs = list(_flat(function(*args, **options), library))
        found = [(f"result {i}", _value(x)) for i, x in enumerate(outs)]
        return Outcome(found + _gradients(library, outs, leaves) if leaves else found)
    except Exception as error:
        return Outcome([], type(error), str(error).split("\n")[0])


def _flat(x: Any, library: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)) and not all(isinstance(n, int) for n in x):
        for part in x:
            yield from _flat(part, library)
    else:
        yield x


def _value(x: Any) -> Any:
    return np.array(x.detach().numpy(force=True)) if hasattr(x, "detach") else tuple(x) if isinstance(x, tuple) else x


def _gradients(library: Any, outs: list[Any], leaves: list[Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for order in ("first", "second"):
        total: Any = 0
        for x in outs:
            if hasattr(x, "requires_grad") and x.requires_grad and x.numel() and not x.is_complex():
                weights = library.from_numpy(np.cos(np.arange(float(x.numel()))).reshape(tuple(x.shape))).to(x.dtype)
                total = total + (x * weights).sum()
        if isinstance(total, int):
            break
        grads = library.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        found += [(f"{order} gradient {i}", 0.0 if g is None else _value(g)) for i, g in enumerate(grads)]
        outs = [g for g in grads if g is not None]
    return found


def differences(theirs: Outcome, ours: Outcome) -> str | None:
    """What differs between PyTorch's outcome and tpc's, in a line; None where nothing does."""
    if theirs.error is not None or ours.error is not None:
        if theirs.error is not None and ours.error is not None:
            same = issubclass(ours.error, theirs.error) or theirs.error.__name__ == ours.error.__name__
            return None if same else f"raises {ours.error.__name__} ({ours.message}), PyTorch {theirs.error.__name__} ({theirs.message})"
        if theirs.error is not None:
            return f"PyTorch raises {theirs.error.__name__} ({theirs.message})"
        return f"raises {ours.error.__name__} ({ours.message})"  # type: ignore[union-attr]
    for (what, a), (_, b) in zip(theirs.results, ours.results, strict=False):
        if not _equal(a, b, signs=what.startswith("result")):
            return f"{what}: PyTorch {_shown(a)}, tpc {_shown(b)}"
    if len(theirs.results) != len(ours.results) and any(np.any(v) for _, v in theirs.results[len(ours.results) :]):
        return f"PyTorch gives {len(theirs.results)} results and gradients, tpc {len(ours.results)}"
    return None


def _equal(a: Any, b: Any, signs: bool) -> bool:
    """Equal to a tolerance; -0.0 is not 0.0 in results, while the sign of a zero gradient depends on the order of products."""
    if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        return str(a) == str(b).replace("tpc", "torch") or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b))
    x, y = np.asarray(a), np.asarray(b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and (x.shape != y.shape or x.dtype != y.dtype):
        return False
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    tolerance = TOLERANCES.get(str(x.dtype), DOUBLE)
    with np.errstate(all="ignore"):
        near = np.isclose(y, x, tolerance, tolerance, equal_nan=True)
        return bool(near.all()) and not (signs and (np.signbit(x.real) != np.signbit(y.real))[(x == 0) & (y == 0)].any())


def _shown(x: Any) -> str:
    return (
        f"{x.dtype}{list(x.shape)} {np.array2string(x.reshape(-1)[:8], precision=6, separator=', ')}"
        if isinstance(x, np.ndarray)
        else repr(x)
    )
