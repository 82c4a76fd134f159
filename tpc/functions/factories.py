"""Tensors from nothing, from Python data and from NumPy arrays."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tpc.device import checked_device
from tpc.dtype import BY_IR, default_dtype, ir_dtype, scalar_dtype
from tpc.functions.data import array_of, not_supported
from tpc.functions.elementwise import clone, stored
from tpc.ir.ops import pairs
from tpc.ir.ops import shape as ops
from tpc.ir.ops.elementwise import copy
from tpc.ir.types import (
    MAX_ELEMENTS,
    NUMPY_DTYPES,
    TensorType,
    category,
    complex_dtype,
    dtype_name,
    is_floating,
    tensor_type,
    type_of,
)
from tpc.record import cast, record
from tpc.recording import constant, emit, leaf
from tpc.size import Size
from tpc.storage import Storage
from tpc.tensor import Tensor, View, from_array

# --- one value ----------------------------------------------------------------------------------


def filled(type: TensorType, value: Any) -> Tensor:
    """A tensor of one value: a broadcast constant, which takes no memory until it is written or looked at."""
    scalar = constant(value, type.dtype)
    if not type.shape:
        return Tensor(Storage(emit(copy, (scalar,), {}, type)), type)
    return Tensor(Storage(emit(ops.broadcast_to, (scalar,), {"shape": type.shape}, type)), type)


def zeros_of(type: TensorType) -> Tensor:
    """Zeros of a type."""
    return filled(type, 0)


def ones_of(type: TensorType) -> Tensor:
    """Ones of a type."""
    return filled(type, 1)


def checked_shape(size: Sequence[Any]) -> tuple[int, ...]:
    """A shape from `zeros(2, 3)` or `zeros((2, 3))`; `RuntimeError` for negative and for absurd sizes."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    shape = tuple([n if n.__class__ is int else _dimension(n) for n in size])
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    if math.prod(shape) > MAX_ELEMENTS:
        raise RuntimeError(f"a tensor of shape {list(shape)} has more elements than fit any memory")
    return shape


def _dimension(n: Any) -> int:
    if not isinstance(n, bool):
        try:
            return n.__index__()  # type: ignore[no-any-return]
        except (AttributeError, TypeError):
            pass
    raise TypeError(f"argument 'size' must be tuple of ints, not {type(n).__name__}")


class _Options:
    """The keywords that every factory takes; those about memory mean nothing here but must be known ones."""

    __slots__ = ("dtype", "out", "requires_grad")
    _known = frozenset({"dtype", "device", "requires_grad", "out", "layout", "pin_memory", "memory_format", "names"})

    def __init__(self, function: str, options: dict[str, Any], dtype: str | None) -> None:
        for name in options:
            if name not in self._known:
                raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
        if "device" in options:
            checked_device(options["device"])
        given = options.get("dtype")
        self.dtype = ir_dtype(given) if given is not None else (dtype or default_dtype())
        self.requires_grad = bool(options.get("requires_grad"))
        self.out = options.get("out")

    def of(self, shape: tuple[int, ...]) -> TensorType:
        return tensor_type(self.dtype, shape)

    def finish(self, made: Tensor) -> Tensor:
        if self.out is not None:
            return stored(made, self.out)
        if self.requires_grad:
            if category(self.dtype) < 2:
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            made.requires_grad_(True)
        return made


def _size(function: str, size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    if "size" in options:
        size = (options.pop("size"),)
    elif not size:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    return checked_shape(size)


def zeros(*size: Any, **options: Any) -> Tensor:
    """Zeros of a shape. Keywords of every factory: dtype, device, requires_grad, out."""
    shape = _size("zeros", size, options)
    given = _Options("zeros", options, None)
    return given.finish(filled(given.of(shape), 0))


def ones(*size: Any, **options: Any) -> Tensor:
    """Ones of a shape."""
    shape = _size("ones", size, options)
    given = _Options("ones", options, None)
    return given.finish(filled(given.of(shape), 1))


def empty(*size: Any, **options: Any) -> Tensor:
    """Zeros too: memory with anything in it would make programs differ from run to run."""
    shape = _size("empty", size, options)
    given = _Options("empty", options, None)
    return given.finish(filled(given.of(shape), 0))


def full(size: Any, fill_value: Any, **options: Any) -> Tensor:
    """One value everywhere; without `dtype`, in the dtype of the value."""
    shape = checked_shape((size,))
    given = _Options("full", options, fill_value._type.dtype if isinstance(fill_value, Tensor) else scalar_dtype(fill_value))
    return given.finish(_full(given.of(shape), fill_value))


def _full(type: TensorType, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        return filled(type, value)
    if value._type.numel != 1:
        raise RuntimeError(f"a Tensor with {value._type.numel} elements cannot be converted to Scalar")
    scalar = record(ops.reshape, (cast(value.detach(), type.dtype),), {"shape": ()})
    return record(ops.broadcast_to, (scalar,), {"shape": type.shape})  # type: ignore[no-any-return]


def _like(function: str, input: Any, value: Any, options: dict[str, Any], shape: tuple[int, ...] | None = None) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    given = _Options(function, options, input._type.dtype)
    return given.finish(_full(given.of(input._type.shape if shape is None else shape), value))


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros of the shape and dtype of `input`."""
    return _like("zeros_like", input, 0, options)


def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones of the shape and dtype of `input`."""
    return _like("ones_like", input, 1, options)


def empty_like(input: Tensor, **options: Any) -> Tensor:
    """A tensor of the shape and dtype of `input`, to be written."""
    return _like("empty_like", input, 0, options)


def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value in the shape and dtype of `input`."""
    return _like("full_like", input, fill_value, options)


def new_zeros(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros of a shape, in the dtype of `input`."""
    return _like("new_zeros", input, 0, options, _size("new_zeros", size, options))


def new_ones(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones of a shape, in the dtype of `input`."""
    return _like("new_ones", input, 1, options, _size("new_ones", size, options))


def new_empty(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """A tensor of a shape, in the dtype of `input`, to be written."""
    return _like("new_empty", input, 0, options, _size("new_empty", size, options))


def new_full(input: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """One value in a shape, in the dtype of `input`."""
    return _like("new_full", input, fill_value, options, checked_shape((size,)))


def new_tensor(input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor from data, in the dtype of `input`."""
    return tensor(data, dtype=input.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


# --- sequences ----------------------------------------------------------------------------------


def _number(x: Any) -> Any:
    if isinstance(x, (Tensor, np.generic)):
        return x._array().item() if isinstance(x, Tensor) else x.item()
    if not isinstance(x, (bool, int, float, builtins.complex)):
        raise TypeError(f"expected a number, but got {type(x).__name__}")
    return x


def arange(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """start, start + step, ... before `end`; `arange(end)` starts at 0. Ints give int64, floats the default dtype."""
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    integers = all(isinstance(x, int) for x in (start, end, step))
    given = _Options("arange", options, "i64" if integers else None)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(map(math.isfinite, (start, end))):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if category(given.dtype) == 0:
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    if given.dtype == "i64":
        start, end, step = int(start), int(end), int(step)
    whole = all(isinstance(x, int) for x in (start, end, step))
    size = -((start - end) // step) if whole else math.ceil((end - start) / step)
    kind = int if category(given.dtype) == 1 else float
    return given.finish(record(ops.iota, (), {"start": kind(start), "step": kind(step), "size": size, "dtype": given.dtype}))


def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, equally far apart."""
    start, end = _number(start), _number(end)
    has_complex = isinstance(start, builtins.complex) or isinstance(end, builtins.complex)
    given = _Options("linspace", options, complex_dtype(default_dtype()) if has_complex else None)
    if not isinstance(steps, (int, np.integer)):
        raise TypeError(f"linspace(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return given.finish(record(ops.linspace, (), {"start": start, "end": end, "steps": steps, "dtype": given.dtype}))


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """`base` to the powers of `linspace(start, end, steps)`."""
    from tpc.functions.elementwise import pow

    given = _Options("logspace", options, None)
    exponents = linspace(start, end, steps, dtype=BY_IR["f64"] if category(given.dtype) < 2 else BY_IR[given.dtype])
    return given.finish(cast(pow(base, exponents), given.dtype))


def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """Ones on the main diagonal of n by m zeros."""
    given = _Options("eye", options, None)
    columns = n if m is None else m
    for name, size in (("n", n), ("m", columns)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return given.finish(record(ops.eye, (), {"n": n, "m": columns, "dtype": given.dtype}))


def _triangle(row: int, col: int, offset: int, options: dict[str, Any], indices: Any) -> Tensor:
    given = _Options("tril_indices", options, "i64")
    return given.finish(from_array(np.stack(indices(row, offset, col)).astype(NUMPY_DTYPES[given.dtype])))


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the lower triangle of a matrix."""
    return _triangle(row, col, offset, options, np.tril_indices)


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """Rows and columns of the upper triangle of a matrix."""
    return _triangle(row, col, offset, options, np.triu_indices)


# --- from data ----------------------------------------------------------------------------------


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A new tensor from numbers, nested sequences, arrays or tensors; always a copy.

    Python floats get the default dtype, ints int64; NumPy data keeps its dtype.
    """
    given = _Options("tensor", {"device": device, "requires_grad": requires_grad}, None)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tpc.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        wanted = data._type.dtype if dtype is None else ir_dtype(dtype)
        made = clone(data.detach()) if wanted == data._type.dtype else cast(data.detach(), wanted)
    else:
        made = from_array(array_of(data, ir_dtype(dtype) if dtype is not None else None))
    given.dtype = made._type.dtype
    return given.finish(made)


def scalar_tensor(s: Any, **options: Any) -> Tensor:
    """A 0-d tensor; a float one unless `dtype` says otherwise."""
    given = _Options("scalar_tensor", options, None)
    return given.finish(filled(given.of(()), _number(s)))


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the memory of an array: writes on one side show on the other."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if ndarray.dtype.kind not in "biufc" or ndarray.dtype.newbyteorder("=") not in NUMPY_DTYPES.values():
        raise TypeError(not_supported(ndarray.dtype))
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not "
            "supported."
        )
    if min(ndarray.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and writing to this tensor will be an error. Copy the array to avoid this.",
            UserWarning,
            stacklevel=2,
        )
    return _shared(ndarray)


def _shared(array: np.ndarray) -> Tensor:
    """A transposed array is a view of memory in row-major order, as the tensor is then too."""
    type = type_of(array)
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    rows = array.transpose(order)
    if array.flags.c_contiguous or not rows.flags.c_contiguous:
        return Tensor(Storage(leaf(array), shared=array), type)
    back = tuple([order.index(d) for d in range(array.ndim)])
    return Tensor(Storage(leaf(rows), shared=rows), type, (View(ops.permute, {"dims": back}, type),))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor from data, without a copy where it can be: tensors as they are, arrays by their memory."""
    checked_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else cast(data, ir_dtype(dtype))
    if isinstance(data, np.ndarray) and (dtype is None or ir_dtype(dtype) == dtype_name(data.dtype)):
        return from_numpy(data)
    return tensor(data, dtype=dtype)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor from data; `copy` says whether memory must (True), may (None) or must not (False) be new."""
    shares = isinstance(obj, (Tensor, np.ndarray))
    if copy is False and not shares:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if copy is False and dtype is not None and ir_dtype(dtype) != (obj._type.dtype if isinstance(obj, Tensor) else dtype_name(obj.dtype)):
        raise ValueError(f"can't alias tensor with dtype '{obj.dtype}' into dtype '{dtype}'.")
    made = as_tensor(obj, dtype, device)
    made = clone(made) if copy and (made is obj or isinstance(obj, np.ndarray)) else made
    return made.requires_grad_(True) if requires_grad else made


def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + imag * 1j, from two tensors of one floating dtype."""
    for name, place, a in (("real", 1, real), ("imag", 2, imag)):
        if not isinstance(a, Tensor):
            raise TypeError(f"complex(): argument '{name}' (position {place}) must be Tensor, not {type(a).__name__}")
        if not is_floating(a._type.dtype):
            raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {real.dtype} and {imag.dtype}")
    if real._type.dtype != imag._type.dtype:
        raise RuntimeError(f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype} for second argument")
    return stored(record(pairs.complex_, (real, imag)), out)


def legacy_tensor(*args: Any, dtype: Any = None) -> Tensor:
    """What `Tensor(...)` makes: from ints a shape (to be written), from data a copy in the default dtype, from a tensor an alias."""
    kind = ir_dtype(dtype) if dtype is not None else default_dtype()
    if not args:
        return filled(tensor_type(kind, (0,)), 0)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].detach()
    if len(args) == 1 and not isinstance(args[0], (int, np.integer)):
        if isinstance(args[0], Size):
            return filled(tensor_type(kind, checked_shape(args)), 0)
        if not isinstance(args[0], (Sequence, np.ndarray)) or isinstance(args[0], str):
            raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
        return from_array(array_of(args[0], kind))
    return filled(tensor_type(kind, checked_shape(args)), 0)
