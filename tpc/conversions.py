"""Tensors to Python numbers, NumPy arrays, other dtypes and devices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tpc.device import CPU, checked_device, device, is_device
from tpc.dtype import BY_IR, dtype, ir_dtype
from tpc.ir.types import category, is_complex, is_floating
from tpc.record import cast, record
from tpc.state import STATE
from tpc.strides import layout_of
from tpc.tensor import Tensor, from_array

# --- Python numbers -----------------------------------------------------------------------------


def item(x: Tensor) -> Any:
    """The only element as a Python number."""
    if x._type.numel != 1:
        raise RuntimeError(f"a Tensor with {x._type.numel} elements cannot be converted to Scalar")
    return x._array().item()


def tolist(x: Tensor) -> Any:
    """Nested lists of Python numbers; a number for a 0-d tensor."""
    return x._array().tolist()


def to_bool(x: Tensor) -> bool:
    """Whether the only element is non-zero."""
    if x._type.numel != 1:
        many = "more than one value" if x._type.numel else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
    return bool(_looked_at(x, "bool").item())


def to_int(x: Tensor) -> int:
    _check_scalar(x)
    return int(_looked_at(x, "i64").item() if not is_floating(x._type.dtype) or STATE.trace is not None else x._array().item())


def to_float(x: Tensor) -> float:
    _check_scalar(x)
    if is_complex(x._type.dtype):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return float(x._array().item())


def to_complex(x: Tensor) -> complex:
    _check_scalar(x)
    return complex(x._array().item())


def to_index(x: Tensor) -> int:
    if x._type.numel != 1 or category(x._type.dtype) > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(x._array().item())


def _check_scalar(x: Tensor) -> None:
    if x._type.numel != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if STATE.grad_enabled and x._tracked():
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first.",
            UserWarning,
            stacklevel=3,
        )


def _looked_at(x: Tensor, wanted: str) -> np.ndarray:
    """The value brought to `wanted` first, so that a trace depends on no more than what Python sees."""
    if STATE.trace is None or x._type.dtype == wanted:
        return x._array()
    if wanted == "bool":
        from tpc.functions.elementwise import ne

        return ne(x.detach(), 0)._array()
    return cast(x.detach(), wanted)._array()


# --- arrays -------------------------------------------------------------------------------------


def numpy(x: Tensor, *, force: bool = False) -> np.ndarray:
    """The array that is this tensor's memory: writes on one side show on the other.

    `force=True` also takes a tensor that requires grad.
    """
    if not force and STATE.grad_enabled and x._tracked():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if STATE.trace is not None:
        return x._array().copy()
    array = x._storage.share()
    for step in x._views:
        from tpc.runtime.kernels.registry import bind_view

        array = bind_view(step.defn, step.attrs, step.type)(array)
    return array


def as_array(x: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """`numpy.asarray(t)`: the memory itself, or a copy where the dtype differs or `copy` is True."""
    if dtype is None and not copy:
        return numpy(x)
    if STATE.grad_enabled and x._tracked():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if copy is False and np.dtype(dtype) != x._type.numpy_dtype:
        raise ValueError(f"a tensor of {x.dtype} is no array of {np.dtype(dtype)} without a copy")
    return np.array(numpy(x) if copy is False else x._array(), dtype=dtype, copy=None if copy is False else True)


def dlpack(x: Tensor, **options: Any) -> Any:
    return numpy(x).__dlpack__(**options)


def dlpack_device(x: Tensor) -> tuple[int, int]:
    return (1, 0)


# --- dtypes and devices -------------------------------------------------------------------------


def to(x: Tensor, *args: Any, **options: Any) -> Tensor:
    """`to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`; itself where nothing changes, unless `copy=True`."""
    target = options.get("dtype")
    checked_device(options.get("device"))
    copy = bool(options.get("copy", False))
    unknown = set(options) - {"dtype", "device", "copy", "non_blocking", "memory_format", "other"}
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument '{unknown.pop()}'")
    if "other" in options:
        args = (options["other"], *args)
    for position, arg in enumerate(args):
        if isinstance(arg, Tensor):
            target = arg.dtype
        elif isinstance(arg, bool):
            copy = copy or (arg and position == len(args) - 1 and position > 1)
        elif arg is None or is_device(arg) or isinstance(arg, int):
            checked_device(arg)
        else:
            target = arg
    return _converted(x, ir_dtype(target) if target is not None else x._type.dtype, copy)


def _converted(x: Tensor, wanted: str, copy: bool = False) -> Tensor:
    if copy and x._type.dtype == wanted:
        from tpc.ir.ops.elementwise import copy as copy_op

        made: Tensor = record(copy_op, (x,))
        return made
    return cast(x, wanted)


TYPE_NAMES = {
    "Float": "f32", "Double": "f64", "Half": "f16", "Long": "i64", "Int": "i32", "Short": "i16", "Char": "i8", "Byte": "u8", "Bool": "bool",
    "ComplexFloat": "c64", "ComplexDouble": "c128", "UInt16": "u16", "UInt32": "u32", "UInt64": "u64",
}  # fmt: skip
_NAME_OF = {ir: name for name, ir in TYPE_NAMES.items()}


def type_(x: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Without an argument the type's name, ``"torch.FloatTensor"``; else the tensor in that dtype (names and classes work too)."""
    if dtype is None:
        return f"torch.{_NAME_OF[x._type.dtype]}Tensor"
    dtype = getattr(dtype, "dtype", dtype)
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.").removeprefix("tpc.").removesuffix("Tensor")
        if name not in TYPE_NAMES:
            raise ValueError(f"invalid type: '{dtype}'")
        return cast(x, TYPE_NAMES[name])
    return cast(x, ir_dtype(dtype))


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """In the dtype of `other`."""
    return cast(x, other._type.dtype)


def cpu(x: Tensor, memory_format: Any = None) -> Tensor:
    """Itself: tensors live on the CPU."""
    return x


def cuda(x: Tensor, *args: Any, **options: Any) -> Tensor:
    raise RuntimeError(
        "tpc runs on the CPU: there is no CUDA device. Leave .cuda() out, or write .to(device) with a device chosen by the caller"
    )


def device_of(x: Tensor) -> device:
    return CPU


def dtype_caster(ir: str) -> Any:
    """The method that brings a tensor to one dtype: `x.float()`."""

    def caster(x: Tensor, memory_format: Any = None) -> Tensor:
        return cast(x, ir)

    caster.__doc__ = f"In {BY_IR[ir].name}; itself where it is."
    return caster


CASTERS = {
    "float": "f32", "double": "f64", "half": "f16", "long": "i64", "int": "i32", "short": "i16", "char": "i8", "byte": "u8", "bool": "bool",
    "cfloat": "c64", "cdouble": "c128",
}  # fmt: skip
"""Conversion methods by name."""

# --- memory layout ------------------------------------------------------------------------------


def stride(x: Tensor, dim: int | None = None) -> Any:
    """Steps in elements from one index to the next, per dimension."""
    steps = layout_of(x).strides
    return steps if dim is None else steps[dim]


def data_ptr(x: Tensor) -> int:
    """Address of the first element; tells whether two tensors share memory. 0 for an empty tensor."""
    return int(numpy(x.detach()).__array_interface__["data"][0]) if x._type.numel else 0


def get_device(x: Tensor) -> int:
    """-1, as PyTorch says for the CPU."""
    return -1


# --- copies of tensor objects -------------------------------------------------------------------


def deepcopy(x: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with memory, gradient and attributes of its own."""
    import copy

    if not x.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. If you were "
            "attempting to deepcopy a module, this may be because of a tensor that is kept as an attribute: call detach() on it."
        )
    if id(x) in memo:
        return memo[id(x)]  # type: ignore[no-any-return]
    made = x.detach()._snapshot()
    if type(x) is not Tensor:
        made.__class__ = type(x)
    memo[id(x)] = made
    made._leaf = x._leaf
    if x._grad is not None:
        made._grad = copy.deepcopy(x._grad, memo)
    for name, value in x.__dict__.items():
        if not name.startswith("_"):
            made.__dict__[name] = copy.deepcopy(value, memo)
    return made


def reduced(x: Tensor, protocol: int) -> Any:
    """What pickle keeps: the array, and whether a leaf requires grad."""
    if x._node is not None:
        raise RuntimeError("only leaf tensors can be pickled: call detach() first")
    return _rebuilt, (type(x), x._array().copy(), x._leaf)


def _rebuilt(kind: type[Tensor], array: np.ndarray, leaf: bool) -> Tensor:
    made = from_array(array)
    if kind is not Tensor:
        made.__class__ = kind
    made._leaf = leaf
    return made


__all__ = ["CASTERS", "dtype", "item", "numpy", "to", "tolist"]
