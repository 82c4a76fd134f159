"""Derivatives of what makes complex numbers from real ones and back: each is the transpose of another."""

from __future__ import annotations

from tpc.autograd.rules import derivative
from tpc.functions.elementwise import imag, real
from tpc.ir.ops import pairs as ops
from tpc.record import record

derivative(ops.complex_, real=lambda g: real(g), imag=lambda g: imag(g))
derivative(ops.as_real, x=lambda g: record(ops.as_complex, (g,)))
derivative(ops.as_complex, x=lambda g: record(ops.as_real, (g,)))
