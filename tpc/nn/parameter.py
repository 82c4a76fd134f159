"""Tensors that a module owns: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import Any

from tpc.functions.factories import empty
from tpc.printing import text_of
from tpc.tensor import Tensor


def _take_over(made: Tensor, data: Any) -> None:
    """Makes `made` another name of the memory of `data`, without its history."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(f"{type(made).__name__} takes a tensor, not {type(data).__name__}")
    Tensor.__init__(made, data._storage, data._type, data._views)


class Parameter(Tensor):
    """A tensor that requires grad and that a module registers when it is assigned to one of its attributes.

    It shares the memory of the tensor that it is made of.
    """

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        _take_over(self, data)
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return "Parameter containing:\n" + text_of(self)


class Buffer(Tensor):
    """A tensor that a module registers as a buffer; with `persistent=False` it is no part of the module's state."""

    __slots__ = ()

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        _take_over(self, data)
        self.persistent = persistent

    def __repr__(self) -> str:
        return "Buffer containing:\n" + text_of(self)


class _Uninitialized:
    """A tensor whose shape is not known yet."""

    __slots__ = ()
    BECOMES: type

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it a shape (and any content), after which it is like any other."""
        made: Any = self
        known = made.dtype if dtype is None else dtype
        made.__class__ = self.BECOMES
        made.data = empty(*shape, dtype=known)

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. Call `forward` to initialize the parameters before accessing "
            "their attributes."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy layer before its first call."""

    __slots__ = ()
    BECOMES = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(empty(0, dtype=dtype), requires_grad)


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer of a lazy layer before its first call."""

    __slots__ = ()
    BECOMES = Tensor

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> None:
        _take_over(self, empty(0, dtype=dtype))


def is_lazy(param: Any) -> bool:
    """Whether its shape is not known yet."""
    return isinstance(param, _Uninitialized)
