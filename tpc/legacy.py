"""Older ways to say things: FloatTensor and its relatives, storages, `apply_`, `map_`, `resize_`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tpc.conversions import TYPE_NAMES, data_ptr
from tpc.dtype import BY_IR
from tpc.functions.factories import legacy_tensor, zeros_of
from tpc.functions.joining import cat
from tpc.functions.shape import int_list, reshape, sliced
from tpc.ir.types import TensorType as ValueType
from tpc.ir.types import tensor_type
from tpc.state import STATE
from tpc.tensor import Tensor, from_array


class TensorType(type):
    """The class of `FloatTensor` and the like: called, it makes a tensor of that dtype; a tensor of that dtype is an instance of it."""

    dtype: Any

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return legacy_tensor(*args, dtype=cls.dtype)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype


def _legacy_type(name: str, ir: str) -> TensorType:
    """A tensor of one dtype: from sizes (not filled) or from data."""
    return TensorType(f"{name}Tensor", (), {"dtype": BY_IR[ir], "__doc__": f"A tensor of {BY_IR[ir].name} from sizes or from data."})


class _VariableType(type):
    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        made = legacy_tensor() if data is None else data.detach()
        return made.requires_grad_() if requires_grad else data if data is not None else made

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """What tensors with a history were once called: `Variable(x, requires_grad=True)` is a leaf on the memory of `x`."""


TYPES: dict[str, TensorType] = {f"{name}Tensor": _legacy_type(name, ir) for name, ir in TYPE_NAMES.items() if ir[0] != "c"}
"""By name: `FloatTensor`, `LongTensor` ..."""


class Storage:
    """The flat memory of a tensor, to be read."""

    def __init__(self, owner: Tensor, untyped: bool) -> None:
        from tpc.strides import whole_storage

        self._owner, self._untyped = owner, untyped
        self._type: ValueType = whole_storage(owner).value.type
        self.dtype = owner.dtype

    def data_ptr(self) -> int:
        """Address of the first element: equal for tensors that share memory."""
        from tpc.strides import layout_of

        return data_ptr(self._owner) - layout_of(self._owner).offset * self._type.itemsize

    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._type.nbytes

    def size(self) -> int:
        """Elements, or bytes of an untyped storage."""
        return self._type.nbytes if self._untyped else self._type.numel

    __len__ = size

    def element_size(self) -> int:
        """Bytes of one element."""
        return 1 if self._untyped else self._type.itemsize

    def tolist(self) -> Any:
        """The elements, or bytes, as Python numbers."""
        from tpc.strides import whole_storage

        flat = np.ascontiguousarray(whole_storage(self._owner).array()).reshape(-1)
        return (flat.view(np.uint8) if self._untyped else flat).tolist()

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())


def storage(self: Tensor) -> Storage:
    """The memory that the tensor sees."""
    return Storage(self, untyped=False)


def untyped_storage(self: Tensor) -> Storage:
    """The memory that the tensor sees, in bytes."""
    return Storage(self, untyped=True)


# --- element by element in Python ---------------------------------------------------------------


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Each element becomes what a Python function makes of it. Slow."""
    return _stored(self, [callable(v) for v in self.detach().reshape(-1).tolist()])


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Each element becomes what a Python function makes of it and its counterpart. Slow."""
    both = zip(self.detach().reshape(-1).tolist(), tensor.detach().expand_as(self).reshape(-1).tolist(), strict=True)
    return _stored(self, [callable(a, b) for a, b in both])


def _stored(x: Tensor, numbers: list[Any]) -> Tensor:
    if STATE.grad_enabled and x._tracked():
        raise TypeError("can't call a Python function on the elements of a Variable that requires grad. Use var.detach() instead.")
    return x._write(from_array(np.array(numbers, x._type.numpy_dtype).reshape(x._type.shape)))


def fitted(out: Tensor, result: Tensor) -> None:
    """Gives an `out` argument the shape of the result; one that had elements should have had it."""
    if out._type.numel:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._type.shape)}, which is not the required "
            f"output shape {list(result._type.shape)}. Give a tensor of that shape, or an empty one.",
            UserWarning,
            stacklevel=4,
        )
    resize_(out, result._type.shape)


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Another shape on the same elements, in order; what is new is 0. Where the number of elements changes the memory is new."""
    if self._tracked():
        raise RuntimeError("cannot resize variables that require grad")
    shape = int_list(sizes, "resize_")
    old, wanted = self._type.numel, tensor_type(self._type.dtype, shape)
    flat = reshape(self.detach(), -1)
    if wanted.numel > old:
        flat = cat((flat, zeros_of(tensor_type(self._type.dtype, (wanted.numel - old,)))))
    elif wanted.numel < old:
        flat = sliced(flat, 0, 0, wanted.numel)
    self.data = reshape(flat, shape)
    return self


def _sparse(*args: Any, **options: Any) -> NoReturn:
    """Raises: there is one layout, dense."""
    raise NotImplementedError(
        "tpc has no sparse layouts: use a dense tensor; index_put(accumulate=True) builds one from indices and values"
    )


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Itself: tensors are dense."""
    return self if dtype is None else self.to(dtype)


def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, **options: Any) -> Any:
    """Raises: there is one layout, dense."""
    _sparse()


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """The same values and history as a tensor of a subclass."""
    made = self.view_as(self)
    made.__class__ = cls
    return made  # type: ignore[no-any-return]


METHODS: dict[str, Callable[..., Any]] = {
    "storage": storage, "untyped_storage": untyped_storage, "apply_": apply_, "map_": map_, "resize_": resize_, "to_dense": to_dense,
    "as_subclass": as_subclass, "is_distributed": lambda x: False,
    "to_sparse": _sparse, "coalesce": _sparse, "is_coalesced": _sparse,
}  # fmt: skip
"""Methods of tensors, by name."""
