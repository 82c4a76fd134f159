"""Elementwise functions: arithmetic, comparison, logic, rounding, transcendental functions, selection.

Operands broadcast against each other; dtypes follow PyTorch's promotion, in which a Python scalar never promotes
within its category. Every function takes `out=`, a tensor that receives the result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, overload

from tpc.ir.opdef import OpDef
from tpc.ir.ops import elementwise as ops
from tpc.ir.types import category, is_complex, is_floating
from tpc.record import SCALARS, cast, common_dtype, promoted, record, scalar_tensor
from tpc.record import view as view_of
from tpc.tensor import Tensor


def stored(result: Tensor, out: Tensor | None) -> Tensor:
    """`result`, written into `out` where the user gave one."""
    if out is None:
        return result
    if result.requires_grad or (out.requires_grad and out._leaf):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
    if out._type.shape != result._type.shape:
        from tpc.legacy import fitted

        fitted(out, result)
    out._write(result)
    return out


def as_operand(x: Any) -> Tensor:
    """A tensor for an operand that must be one (Python scalars become 0-d tensors)."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, SCALARS):
        return scalar_tensor(x, common_dtype((x,)))
    raise TypeError(f"expected Tensor as argument, but got {type(x).__name__}")


def tensor_operand(function: str, x: Any, argument: str = "other", position: int = 2) -> Tensor:
    """An operand, by default the second, of a function that takes no Python numbers; `TypeError` for anything but a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}")
    return x


def _check_operands(name: str, input: Any, other: Any, numbers: bool) -> None:
    if not numbers:
        tensor_operand(name, input, "input", 1)
        tensor_operand(name, other)
    elif not isinstance(input, Tensor) and not isinstance(other, Tensor):
        kinds = f"({type(input).__name__}, {type(other).__name__})"
        raise TypeError(f"{name}() received an invalid combination of arguments - got {kinds}: one of them must be a Tensor")


def flat(value: Tensor, source: Tensor) -> Tensor:
    """`value`, of the shape and dtype of `source`, as a function of it without slope: it requires grad, and the gradient is 0."""
    return record(ops.where, (scalar_tensor(True, "bool"), value, source)) if source.requires_grad else value


def unary(defn: OpDef, doc: str) -> Callable[..., Tensor]:
    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{defn.name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        result: Tensor = record(defn, (input,))
        return result if out is None else stored(result, out)

    return named(function, defn.name, doc)


def _binary(defn: OpDef, doc: str, numbers: bool = True) -> Callable[..., Tensor]:
    """A function of two operands: tensors, or one of them a Python number where `numbers` are taken."""

    def function(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        if input.__class__ is not Tensor or other.__class__ is not Tensor:
            _check_operands(defn.name, input, other, numbers)
        result: Tensor = record(defn, (input, other))
        return result if out is None else stored(result, out)

    return named(function, defn.name, doc)


def named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = unary(ops.exp, "e to the power x.")
log = unary(ops.log, "Natural logarithm.")
log1p = unary(ops.log1p, "log(1 + x), accurate near 0.")
expm1 = unary(ops.expm1, "exp(x) - 1, accurate near 0.")
sqrt = unary(ops.sqrt, "Square root.")
rsqrt = unary(ops.rsqrt, "1 / sqrt(x).")
reciprocal = unary(ops.reciprocal, "1 / x.")
sin = unary(ops.sin, "Sine.")
cos = unary(ops.cos, "Cosine.")
tan = unary(ops.tan, "Tangent.")
tanh = unary(ops.tanh, "Hyperbolic tangent.")
asin = unary(ops.asin, "Arc sine.")
acos = unary(ops.acos, "Arc cosine.")
atan = unary(ops.atan, "Arc tangent.")
sinh = unary(ops.sinh, "Hyperbolic sine.")
cosh = unary(ops.cosh, "Hyperbolic cosine.")
sigmoid = unary(ops.sigmoid, "1 / (1 + exp(-x)).")
relu = unary(ops.relu, "max(x, 0).")
sign = unary(ops.sign, "-1, 0 or 1.")
floor = unary(ops.floor, "Largest integer not above x.")
ceil = unary(ops.ceil, "Smallest integer not below x.")
trunc = unary(ops.trunc, "Integer part, towards 0.")
erf = unary(ops.erf, "Error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.")
abs = unary(ops.abs_, "Absolute value; the modulus of a complex number, in its real dtype.")
logical_not = unary(ops.logical_not, "Whether x is zero.")
bitwise_not = unary(ops.bitwise_not, "Bitwise complement; logical for bool.")
isnan = unary(ops.isnan, "Whether x is NaN.")
isinf = unary(ops.isinf, "Whether x is infinite.")
isfinite = unary(ops.isfinite, "Whether x is neither NaN nor infinite.")

mul = _binary(ops.mul, "Product; logical and for bool.")
floor_divide = _binary(ops.floor_divide, "Quotient rounded down.")
remainder = _binary(ops.remainder, "x - y * floor(x / y): the remainder with the sign of the divisor.")
fmod = _binary(ops.fmod, "The remainder with the sign of the dividend.")
maximum = _binary(ops.maximum, "The larger of the two; NaN where either is.", numbers=False)
minimum = _binary(ops.minimum, "The smaller of the two; NaN where either is.", numbers=False)
atan2 = _binary(ops.atan2, "Angle of the point (other, input).", numbers=False)
eq = _binary(ops.eq, "Whether equal.")
ne = _binary(ops.ne, "Whether different.")
lt = _binary(ops.lt, "Whether less.")
le = _binary(ops.le, "Whether less or equal.")
gt = _binary(ops.gt, "Whether greater.")
ge = _binary(ops.ge, "Whether greater or equal.")
logical_and = _binary(ops.logical_and, "Whether both are non-zero.", numbers=False)
logical_or = _binary(ops.logical_or, "Whether one is non-zero.", numbers=False)
logical_xor = _binary(ops.logical_xor, "Whether exactly one is non-zero.", numbers=False)
bitwise_and = _binary(ops.bitwise_and, "Bitwise and; logical for bool.")
bitwise_or = _binary(ops.bitwise_or, "Bitwise or; logical for bool.")
bitwise_xor = _binary(ops.bitwise_xor, "Bitwise exclusive or; logical for bool.")
bitwise_left_shift = _binary(ops.left_shift, "Shift towards the high bits.")
bitwise_right_shift = _binary(ops.right_shift, "Arithmetic shift towards the low bits.")


def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x. `RuntimeError` for bool."""
    if input._type.dtype == "bool":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    return stored(record(ops.neg, (input,)), out)


def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * x."""
    return stored(record(ops.square, (cast(input, "i64") if input._type.dtype == "bool" else input,)), out)


def positive(input: Tensor) -> Tensor:
    """Itself. `RuntimeError` for bool."""
    if input._type.dtype == "bool":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * input."""
    return sub(other, input, alpha=alpha)


def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha * other."""
    result: Tensor = record(ops.add, (input, other if alpha == 1 else _scaled(input, other, alpha)))
    return result if out is None else stored(result, out)


def _scaled(input: Any, other: Any, alpha: Any) -> Any:
    """other * alpha; `alpha` must not change the kind of number."""
    if isinstance(alpha, float) and category(common_dtype((input, other))) < 2:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return mul(other, alpha) if isinstance(other, Tensor) else other * alpha


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha * other. `RuntimeError` for bool."""
    for x in (input, other):
        if isinstance(x, bool) or (isinstance(x, Tensor) and x._type.dtype == "bool"):
            raise RuntimeError(
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
                "`logical_not()` operator instead."
            )
    result: Tensor = record(ops.sub, (input, other if alpha == 1 else _scaled(input, other, alpha)))
    return result if out is None else stored(result, out)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Quotient; `rounding_mode` is None (true division), "trunc" or "floor"."""
    if rounding_mode is None:
        return stored(record(ops.div, (input, other)), out)
    if rounding_mode == "floor":
        return stored(record(ops.floor_divide, (input, other)), out)
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    if is_floating(common_dtype((input, other))):
        a, b = (x.detach() if isinstance(x, Tensor) else x for x in (input, other))
        return stored(flat(trunc(div(a, b)), add(input, other)), out)
    return stored(_truncated(input, other), out)


def _truncated(a: Any, b: Any) -> Tensor:
    """Integer quotient towards 0: the floored one, plus 1 where it was rounded away from 0."""
    floored = floor_divide(a, b)
    inexact = ne(remainder(a, b), 0)
    return add(floored, cast(logical_and(inexact, lt(floored, 0)), floored._type.dtype))


def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input to the power exponent; integers to a negative integer scalar are a `RuntimeError`."""
    integral = isinstance(input, Tensor) and category(input._type.dtype) < 2
    if integral and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if exponent.__class__ in (int, float) and isinstance(input, Tensor) and not (integral and exponent.__class__ is float):
        known = _POWERS.get(exponent)
        if known is not None and input._type.dtype != "bool" and not (integral and exponent < 1):
            return stored(known(input), out)
    return stored(record(ops.pow_, (input, exponent)), out)


_POWERS: dict[float, Callable[[Tensor], Tensor]] = {
    2: square,
    3: lambda x: mul(square(x), x),
    0.5: sqrt,
    -1: reciprocal,
}
"""Exponents that have a cheaper form, the one PyTorch takes too."""


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Nearest integer, halves to even; with `decimals`, at that many places."""
    if decimals == 0:
        return stored(record(ops.round_, (input,)), out)
    if not is_floating(input._type.dtype):
        raise NotImplementedError(f"round with decimals is not implemented for {input.dtype}")
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    moved = mul(input, scale) if decimals > 0 else div(input, scale)
    rounded = record(ops.round_, (moved,))
    return stored(div(rounded, scale) if decimals > 0 else mul(rounded, scale), out)


def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """min(max(x, lo), hi); bounds are numbers or tensors, at least one is needed. NaN stays NaN."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        result = record(ops.clamp_min, (input, min))
    elif min is None:
        result = record(ops.clamp_max, (input, max))
    else:
        result = record(ops.clamp, (input, min, max))
    return stored(result, out)


def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """max(x, lo)."""
    return clamp(input, min=min, out=out)


def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """min(x, hi)."""
    return clamp(input, max=max, out=out)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where the condition holds, else `other`; with the condition alone, the indices where it holds."""
    if input is None and other is None:
        from tpc.functions.indexing import nonzero

        return nonzero(condition, as_tuple=True)
    if condition._type.dtype == "u8":
        warnings.warn("where received a uint8 condition tensor. Use a boolean condition instead.", UserWarning, stacklevel=2)
        condition = cast(condition, "bool")
    if condition._type.dtype != "bool":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}")
    return stored(record(ops.where, (condition, *promoted((input, other), "same"))), out)


def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is returned as it is."""
    return record(ops.conj, (input,)) if is_complex(input._type.dtype) else input


def real(input: Tensor) -> Tensor:
    """Real part, a view; a real tensor is returned as it is."""
    return view_of(input, ops.real, {}) if is_complex(input._type.dtype) else input


def imag(input: Tensor) -> Tensor:
    """Imaginary part, a view. `RuntimeError` for a real tensor."""
    if not is_complex(input._type.dtype):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_of(input, ops.imag, {})


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with the same history."""
    return record(ops.copy, (input,))  # type: ignore[no-any-return]


def resolve_conj(input: Tensor) -> Tensor:
    """Itself: conjugation is never postponed."""
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """Itself: negation is never postponed."""
    return input


absolute, negative, clip, fix = abs, neg, clamp, trunc
arccos, arcsin, arctan, arctan2 = acos, asin, atan, atan2
multiply, subtract, divide, true_divide = mul, sub, div, div
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
