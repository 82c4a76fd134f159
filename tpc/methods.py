"""What a `Tensor` can do: functions become methods, operators and in-place forms. Tables first, machinery below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tpc import conversions, inplace, legacy, numpy_protocol
from tpc.autograd import graph
from tpc.autograd.grad_dtype import get_grad_dtype, set_grad_dtype
from tpc.functions import elementwise, factories, indexing, linalg, random, reduction, shape, special
from tpc.functions.catalogue import find
from tpc.ir.types import category
from tpc.printing import text_of
from tpc.record import SCALARS
from tpc.strides import is_contiguous, layout_of
from tpc.tensor import Tensor, from_array

METHODS = """
    abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip clone conj
    copysign cos cosh deg2rad div divide eq erf erfc exp exp2 expm1 fix float_power floor floor_divide fmod frac ge greater greater_equal
    gt heaviside hypot isfinite isinf isnan isneginf isposinf isreal ldexp le lerp less less_equal log log10 log1p log2 logaddexp
    logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply nan_to_num ne neg negative not_equal
    positive pow rad2deg reciprocal relu remainder resolve_conj resolve_neg round rsqrt rsub sgn sigmoid sign signbit sin sinc sinh sqrt
    square sub subtract tan tanh true_divide trunc xlogy

    all allclose amax amin aminmax any argmax argmin count_nonzero equal isclose log_softmax logsumexp max mean min nanmean nansum prod
    softmax std sum sum_to_size var

    argsort kthvalue median msort nanmedian sort topk
    dist norm renorm
    addbmm addmm addmv addr baddbmm bmm dot ger inner kron matmul matrix_power mm mv outer trace vdot
    bernoulli multinomial

    broadcast_to chunk contiguous cumprod cumsum diag diag_embed diagonal diff expand expand_as flatten flip fliplr flipud moveaxis movedim
    narrow permute ravel repeat repeat_interleave reshape reshape_as roll rot90 select split squeeze swapaxes swapdims t tensor_split tile
    transpose tril triu unbind unflatten unfold unsqueeze view view_as

    gather index_add index_copy index_fill index_put index_select masked_fill masked_scatter masked_select nonzero scatter scatter_add
    scatter_reduce put take take_along_dim argwhere bincount slice_scatter select_scatter diagonal_scatter
    adjoint is_set_to diagflat split_with_sizes hsplit vsplit dsplit cross

    cummax cummin logcumsumexp quantile nanquantile mode histc histogram cov corrcoef unique unique_consecutive as_strided
    as_strided_scatter index_reduce fmax fmin unsafe_chunk unsafe_split narrow_copy

    cholesky cholesky_inverse cholesky_solve det inverse logdet slogdet
    lu lu_solve matrix_exp orgqr pinverse qr svd symeig triangular_solve

    conj_physical digamma erfinv i0 igamma igammac lgamma mvlgamma istft stft frexp gcd lcm nextafter

    new_empty new_full new_ones new_tensor new_zeros
"""
"""Methods that are the function of the same name, the tensor as its first argument."""

IN_PLACE = """
    arccosh arcsinh arctanh arctan2 conj_physical digamma erfinv i0 igamma igammac lgamma mvlgamma gcd lcm nextafter
    abs absolute acos acosh add addcdiv addcmul arccos arcsin arctan asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip copysign cos cosh deg2rad div divide eq erf
    erfc exp exp2 expm1 fix float_power floor floor_divide fmod frac ge greater greater_equal gt heaviside hypot ldexp le lerp less
    less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt mul multiply nan_to_num ne neg negative
    not_equal pow rad2deg reciprocal relu remainder renorm round rsqrt sgn sigmoid sign sin sinc sinh sqrt square sub subtract tan tanh
    true_divide trunc xlogy

    addbmm addmm addmv addr baddbmm
    cumprod cumsum tril triu
    index_add index_copy index_fill index_put index_reduce masked_fill masked_scatter put scatter scatter_add scatter_reduce
"""
"""Functions with an in-place form: `x.add_(y)` gives `x` the value of `add(x, y)`."""

ALSO_FUNCTIONS = """
    abs_ acos_ asin_ atan_ ceil_ clamp_ clamp_max_ clamp_min_ cos_ cosh_ deg2rad_ erf_ erfc_ exp_ exp2_ expm1_ fill_ fix_ floor_ frac_
    ldexp_ log_ log10_ log1p_ log2_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_
    sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asinh_ atanh_ clip_ detach_
    index_put_ resize_as_ detach digamma_ erfinv_ i0_ lgamma_ is_conj is_neg is_nonzero is_same_size is_signed is_inference get_device
"""
"""In-place methods that PyTorch has as functions too: `torch.exp_(x)`."""

RESHAPED_IN_PLACE = "squeeze unsqueeze transpose t swapaxes swapdims"
"""Views with an in-place form, which changes how `x` sees its memory."""

FILLED: dict[Any, str] = {
    inplace: "copy_ fill_ zero_ fill_diagonal_ set_ detach_ resize_as_ share_memory_",
    random: "bernoulli_ exponential_ normal_ random_ uniform_ log_normal_ cauchy_ geometric_",
}
"""In-place methods that have no other form."""

CONVERSIONS: dict[str, Callable[..., Any]] = {
    "item": conversions.item,
    "tolist": conversions.tolist,
    "numpy": conversions.numpy,
    "cpu": conversions.cpu,
    "cuda": conversions.cuda,
    "to": conversions.to,
    "type": conversions.type_,
    "type_as": conversions.type_as,
    **{name: conversions.dtype_caster(ir) for name, ir in conversions.CASTERS.items()},
    "stride": conversions.stride,
    "is_contiguous": lambda x, memory_format=None: is_contiguous(x),
    "storage_offset": lambda x: layout_of(x).offset,
    "data_ptr": conversions.data_ptr,
    "get_device": conversions.get_device,
    "pin_memory": conversions.cpu,
    "is_pinned": lambda x: False,
    "is_shared": lambda x: False,
    "is_nonzero": conversions.to_bool,
    "is_same_size": lambda x, other: x.shape == other.shape,
    "is_signed": lambda x: x.dtype.is_signed,
    "is_conj": lambda x: False,
    "is_neg": lambda x: False,
    "is_inference": lambda x: x._storage.inference,
}


def _inverted(self: Tensor) -> Tensor:
    if category(self._type.dtype) > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return elementwise.bitwise_not(self)


UNARY_OPERATORS: dict[str, Callable[..., Any]] = {
    "__neg__": elementwise.neg,
    "__pos__": elementwise.positive,
    "__abs__": elementwise.abs,
    "__invert__": _inverted,
    "__round__": elementwise.round,
    "__floor__": elementwise.floor,
    "__ceil__": elementwise.ceil,
    "__trunc__": elementwise.trunc,
    "__bool__": conversions.to_bool,
    "__int__": conversions.to_int,
    "__float__": conversions.to_float,
    "__complex__": conversions.to_complex,
    "__index__": conversions.to_index,
}

BINARY_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": elementwise.add,
    "sub": elementwise.sub,
    "mul": elementwise.mul,
    "truediv": elementwise.div,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.pow,
    "and": elementwise.bitwise_and,
    "or": elementwise.bitwise_or,
    "xor": elementwise.bitwise_xor,
    "lshift": elementwise.bitwise_left_shift,
    "rshift": elementwise.bitwise_right_shift,
    "matmul": linalg.matmul,
}
"""Each gives three methods: `__add__`, `__radd__` and `__iadd__`."""

COMPARISONS: dict[str, Callable[..., Any]] = {
    "__eq__": elementwise.eq,
    "__ne__": elementwise.ne,
    "__lt__": elementwise.lt,
    "__le__": elementwise.le,
    "__gt__": elementwise.gt,
    "__ge__": elementwise.ge,
}

_OPERANDS = (Tensor, *SCALARS)


def _left(binary: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, _OPERANDS):
            return binary(self, other)
        return binary(self, from_array(other.copy())) if isinstance(other, np.ndarray) else NotImplemented

    return operator


def _right(binary: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, _OPERANDS):
            return binary(other, self)
        return binary(from_array(other.copy()), self) if isinstance(other, np.ndarray) else NotImplemented

    return operator


def _augmented(binary: Callable[..., Any]) -> Callable[..., Any]:
    form = inplace.in_place_form(binary)

    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, _OPERANDS):
            return form(self, other)
        return form(self, from_array(other.copy())) if isinstance(other, np.ndarray) else NotImplemented

    return operator


# --- what is no function elsewhere --------------------------------------------------------------


def _length(self: Tensor) -> int:
    if not self._type.shape:
        raise TypeError("len() of a 0-d tensor")
    return self._type.shape[0]


def _iterate(self: Tensor) -> Any:
    if not self._type.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(find("unbind")(self, 0))


def _contains(self: Tensor, element: Any) -> bool:
    if not isinstance(element, _OPERANDS):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return conversions.to_bool(reduction.any(elementwise.eq(self.detach(), element)))


def _format(self: Tensor, spec: str) -> str:
    if not self._type.shape and not self.requires_grad:
        return format(self._array().item(), spec)
    if not self._type.shape and spec:
        return format(self._array().item(), spec)
    return object.__format__(self, spec)


def _backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Adds the gradient of this tensor to the `.grad` of the leaves behind it."""
    from tpc.autograd.backward import backward

    backward((self,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs=inputs)


def _new(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """A tensor of this dtype from sizes (not filled) or from data."""
    if len(args) == 1 and isinstance(args[0], (list, Tensor, np.ndarray)):
        return factories.new_tensor(self, args[0], **options)
    return factories.new_empty(self, *(args or (0,)), **options)


def _missing(self: Tensor, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
    from tpc.missing import refuse

    refuse(f"'{type(self).__name__}' object", name, dir(Tensor))


def _hermitian(self: Tensor) -> Tensor:
    if self._type.rank not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._type.rank}-D tensor.")
    return shape.adjoint(self) if self._type.rank else elementwise.conj(self)


def _part(part: Callable[[Tensor], Tensor]) -> property:
    """Real or imaginary part, which may be assigned to."""

    def write(self: Tensor, values: Any) -> None:
        inplace.copy_(part(self), values)

    return property(part, write)


PROPERTIES: dict[str, Callable[[Tensor], Any]] = {
    "T": shape.T,
    "mT": shape.mT,
    "H": _hermitian,
    "mH": shape.adjoint,
    "device": conversions.device_of,
    "is_cpu": lambda x: True,
    "is_cuda": lambda x: False,
    "is_sparse": lambda x: False,
    "is_sparse_csr": lambda x: False,
    "is_mkldnn": lambda x: False,
    "layout": lambda x: "strided",
    "names": lambda x: (None,) * x._type.rank,
    "name": lambda x: None,
    "is_meta": lambda x: False,
    "is_mps": lambda x: False,
    "is_xpu": lambda x: False,
    "is_quantized": lambda x: False,
    "is_nested": lambda x: False,
    "retains_grad": graph.retains_grad,
}

OTHERS: dict[str, Any] = {
    "__len__": _length,
    "__iter__": _iterate,
    "__contains__": _contains,
    "__getitem__": indexing.getitem,
    "__setitem__": indexing.setitem,
    "__repr__": text_of,
    "__format__": _format,
    "__getattr__": _missing,
    "__hash__": object.__hash__,
    "__array__": conversions.as_array,
    "__array_ufunc__": numpy_protocol.array_ufunc,
    "__array_function__": numpy_protocol.array_function,
    "__array_priority__": 1000,
    "__dlpack__": conversions.dlpack,
    "__dlpack_device__": conversions.dlpack_device,
    "__deepcopy__": conversions.deepcopy,
    "__reduce_ex__": conversions.reduced,
    "backward": _backward,
    "polygamma": special.polygamma_of,
    "polygamma_": inplace.in_place_form(special.polygamma_of),
    "where": lambda x, condition, other: elementwise.where(condition, x, other),
    "new": _new,
    "register_hook": graph.register_hook,
    "register_post_accumulate_grad_hook": graph.register_post_accumulate_grad_hook,
    "retain_grad": graph.retain_grad,
    "real": _part(elementwise.real),
    "imag": _part(elementwise.imag),
    "grad_dtype": property(get_grad_dtype, set_grad_dtype),
}


def attach() -> None:
    """Puts everything above on `Tensor`. Called once, when tpc is imported."""
    for name in METHODS.split():
        setattr(Tensor, name, find(name))
    for name in IN_PLACE.split():
        setattr(Tensor, name + "_", inplace.in_place_form(find(name)))
    for name in RESHAPED_IN_PLACE.split():
        setattr(Tensor, name + "_", inplace.reshaped_in_place(getattr(shape, name)))
    for family, names in FILLED.items():
        for name in names.split():
            setattr(Tensor, name, getattr(family, name))
    for name, method in {**CONVERSIONS, **UNARY_OPERATORS, **OTHERS, **legacy.METHODS}.items():
        setattr(Tensor, name, method)
    for name, operation in BINARY_OPERATORS.items():
        setattr(Tensor, f"__{name}__", _left(operation))
        setattr(Tensor, f"__r{name}__", _right(operation))
        if name != "matmul":
            setattr(Tensor, f"__i{name}__", _augmented(operation))
    for name, compare in COMPARISONS.items():
        setattr(Tensor, name, _left(compare))
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter))


attach()
