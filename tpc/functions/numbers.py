"""Common divisors and multiples of integers; neighbours, mantissas and exponents of floating numbers."""

from __future__ import annotations

from typing import NamedTuple

from tpc.functions.elementwise import stored, tensor_operand
from tpc.ir.ops import numbers as ops
from tpc.record import record
from tpc.tensor import Tensor


def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Greatest common divisor of integers."""
    return stored(record(ops.gcd, (input, tensor_operand("gcd", other))), out)


def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Least common multiple of integers."""
    return stored(record(ops.lcm, (input, tensor_operand("lcm", other))), out)


def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next floating number after `input` towards `other`."""
    return stored(record(ops.nextafter, (input, tensor_operand("nextafter", other))), out)


class Frexp(NamedTuple):
    """Numbers as mantissa * 2 ** exponent."""

    mantissa: Tensor
    exponent: Tensor


def frexp(input: Tensor) -> Frexp:
    """Mantissas from 1/2 to 1 and int32 exponents: input = mantissa * 2 ** exponent."""
    return Frexp(*record(ops.frexp, (input,)))
