"""In-place forms: a new value is computed from the old one and becomes the content of the tensor's memory."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from tpc.functions.factories import filled
from tpc.ir.ops import elementwise as ops
from tpc.ir.types import tensor_type
from tpc.record import SCALARS, cast, record
from tpc.state import STATE
from tpc.tensor import Tensor
from tpc.tracing import Untraceable
from tpc.writing import overlaps

PARTIAL = {"masked_fill": "value", "index_fill": "value", "index_put": "values"}
"""Functions that leave most elements as they are, and their argument for the others: their in-place forms take expanded tensors."""


def write_some(x: Tensor, new: Tensor, name: str, marked: Callable[[Tensor], Tensor]) -> Tensor:
    """Writes `new`, which is `x` but for the places that `marked` sets in a tensor of False."""
    if not (x._views and overlaps(x)):
        return x._write(new)
    warnings.warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also applies "
        "to advanced indexing e.g. tensor[indices] = tensor",
        UserWarning,
        stacklevel=3,
    )
    return x._write(new, marked(filled(tensor_type("bool", x._type.shape), False)))


def in_place_form(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """`x.add_(y)` from `add`: computed from snapshots, so that what is saved for backward is the value before the write."""

    @functools.wraps(function)
    def form(self: Tensor, *args: Any, **options: Any) -> Tensor:
        old = self._snapshot()
        storage = self._storage
        args = tuple([x._snapshot() if isinstance(x, Tensor) and x._storage is storage else x for x in args])
        new = function(old, *args, **options)
        if new is old:
            return self
        if function.__name__ not in PARTIAL:
            return self._write(new)

        def marked(marks: Tensor) -> Any:
            bound = inspect.signature(function).bind(marks, *args, **options)
            bound.arguments[PARTIAL[function.__name__]] = filled(tensor_type("bool", ()), True)
            return function(*bound.args, **bound.kwargs)

        return write_some(self, new, form.__name__, marked)

    form.__name__ = function.__name__ + "_"
    form.__doc__ = f"In-place form of `{function.__name__}`."
    return form


def reshaped_in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`x.unsqueeze_(0)` from `unsqueeze`: `x` becomes that view of its own memory."""

    def form(self: Tensor, *args: Any) -> Tensor:
        if STATE.trace is not None and self._trace is not STATE.trace:
            raise Untraceable(f"{form.__name__} changes how a tensor from outside sees its memory")
        self._refuse_write(self)
        moved = function(self, *args)
        self._rearrange(moved)
        self._storage.write(self._storage.read())
        if self._node is not None:
            self._node, self._slot = moved._node, moved._slot
        return self

    form.__name__ = function.__name__ + "_"
    form.__doc__ = f"In-place form of `{function.__name__}`."
    return form


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Takes the values of `src`, which is broadcast and converted."""
    from tpc.functions.shape import broadcast_to

    if not isinstance(src, Tensor):
        if not isinstance(src, SCALARS):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        return fill_(self, src)
    if src is self:
        self._refuse_write(self)
        self._storage.write(self._storage.read())
        return self
    if src._type.dtype != self._type.dtype:
        src = cast(src, self._type.dtype)
    if src._type.shape != self._type.shape:
        src = broadcast_to(src, self._type.shape)
    return self._write(record(ops.copy, (src,)))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Every element becomes `value`, a number or a 0-d tensor."""
    if not isinstance(value, Tensor):
        everywhere = filled(tensor_type("bool", self._type.shape), True) if self._views and overlaps(self) else None
        return self._write(filled(self._type, value), everywhere)
    if value._type.shape:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._type.rank} dimensions.")
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Every element becomes 0."""
    return fill_(self, 0)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """The elements with equal indices become `fill_value`."""
    from tpc.functions.shape import diagonal

    sizes = self._type.shape
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if wrap or len(sizes) > 2:
        return _fill_long_diagonal(self, fill_value, wrap)
    fill_(diagonal(self), fill_value)
    return self


def _fill_long_diagonal(self: Tensor, value: Any, wrap: bool) -> Tensor:
    """Through the flat memory, where the diagonal is every step-th element."""
    from tpc.functions.shape import reshape

    sizes = self._type.shape
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(_steps(sizes))
    count = self._type.numel if wrap and len(sizes) == 2 else step * min(sizes)
    flat = reshape(self, (-1,))
    fill_(flat[:count:step], value)  # type: ignore[index]
    return self


def _steps(sizes: tuple[int, ...]) -> list[int]:
    steps = [1]
    for n in reversed(sizes[1:]):
        steps.insert(0, steps[0] * n)
    return steps


def set_(self: Tensor, source: Tensor | None = None) -> Tensor:
    """Becomes another name of the memory of `source` (of no memory, without one)."""
    self.data = filled(tensor_type(self._type.dtype, (0,)), 0) if source is None else source.detach()
    return self


def resize_as_(self: Tensor, other: Tensor) -> Tensor:
    """The shape of `other`, for a tensor with as many elements."""
    from tpc.functions.shape import reshape

    if self._type.numel != other._type.numel:
        raise RuntimeError("resize_as_ works between tensors with the same number of elements; make a new tensor instead")
    return reshaped_in_place(reshape)(self, other._type.shape)


def share_memory_(self: Tensor) -> Tensor:
    """Itself: there is one process."""
    return self


def detach_(self: Tensor) -> Tensor:
    """Drops the history."""
    if self._base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._forget_history()
    return self
