"""Which callable runs an op.

A `Run` is called as `run(*arrays)` or `run(*arrays, out)`; a NumPy ufunc is one as it is, except that np.maximum and np.minimum
want `out=out`. Everything that depends on attributes and types is decided when the op is bound, nothing per call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.program import Op, Value
from tpc.ir.types import TensorType

Run: TypeAlias = Callable[..., Any]
Factory: TypeAlias = Callable[[Op], Run]

_FACTORIES: dict[str, Factory] = {}
_SHOWN: dict[str, Run] = {}


def kernel(*names: str) -> Callable[[Factory], Factory]:
    """Enters a factory for these ops."""

    def enter(factory: Factory) -> Factory:
        for name in names:
            if name in _FACTORIES:
                raise ValueError(f"{name} has two kernels")
            _FACTORIES[name] = factory
        return factory

    return enter


def ufunc(name: str, run: Run) -> None:
    """Enters a callable that serves every dtype of an op."""
    kernel(name)(lambda op: run)


def shown(name: str, run: Run) -> None:
    """Enters how a user's view shows the array itself, for an op that copies in programs."""
    _SHOWN[name] = run


def has_kernel(name: str) -> bool:
    """Whether an op can be run."""
    import tpc.runtime.kernels  # noqa: F401 - fills the table

    return name in _FACTORIES


def bind(op: Op) -> Run:
    """The callable for an op; `KeyError` for one without a kernel."""
    if not _FACTORIES:
        import tpc.runtime.kernels  # noqa: F401 - fills the table
    return _FACTORIES[op.name](op)


@lru_cache(maxsize=4096)
def _bound_view(defn: OpDef, attrs: tuple[tuple[str, AttrValue], ...], type: TensorType) -> Run:
    run = bind(Op(defn, (Value(None, 0, type),), dict(attrs), (type,)))
    return _SHOWN.get(defn.name, run)


def bind_view(defn: OpDef, attrs: Mapping[str, AttrValue], type: TensorType) -> Run:
    """The callable for a view op with that result type."""
    return _bound_view(defn, tuple(attrs.items()), type)
