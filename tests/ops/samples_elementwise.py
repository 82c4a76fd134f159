"""Samples of the elementwise operators."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import boolean, c64, c128, edge, edge_pairs, f16, f32, f64, i8, i32, i64, ints, sample, u8

FLOAT = (
    *("exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "sigmoid"),
    *("sin", "cos", "tan", "tanh", "asin", "acos", "atan", "sinh", "cosh"),
)
COMPLEX_TOO = [n for n in FLOAT if n != "log1p"]  # expm1 and log1p of small complex numbers cancel in PyTorch

for name in (*FLOAT, "erf"):
    sample(name, f32(3, 4, low=0.1, high=0.9))
    sample(name, f64(3, 4, low=0.1, high=0.9))
    sample(name, f16(5, low=0.1, high=0.9))
    sample(name, f32())
    sample(name, f32(0, 3))
    sample(name, edge(np.float32))
    sample(name, edge(np.float64))
for name in COMPLEX_TOO:
    sample(name, c64(3, 2))
    sample(name, c128(3, 2))
sample("erf", np.linspace(-7, 7, 201))
sample("erf", np.linspace(-7, 7, 201, dtype=np.float32))

for name in ("neg", "square", "relu", "sign", "floor", "ceil", "trunc", "round", "abs"):
    sample(name, f32(3, 4))
    sample(name, f64(3, 4))
    sample(name, f16(5))
    sample(name, f32())
    sample(name, i64(3, 4))
    sample(name, u8(4))
    sample(name, edge(np.float32))
    sample(name, edge(np.float16))
for name in ("neg", "square", "abs", "conj"):
    sample(name, c64(3, 2))
    sample(name, c128())
sample("sign", boolean(5))
sample("conj", f32(3))
sample("abs", ints(-128, 127, 0, dtype=np.int8))

for name in ("real", "imag"):
    sample(name, c64(3, 2))
    sample(name, c128())

sample("bitwise_not", i64(3, 4))
sample("bitwise_not", u8(4))
sample("bitwise_not", boolean(4))
for name in ("logical_not", "isnan", "isinf", "isfinite"):
    sample(name, edge(np.float32))
    sample(name, f16())
    sample(name, i64(2, 3, low=-1, high=2))
    sample(name, boolean(4))
    sample(name, c64(2))

ARITHMETIC = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "floor_divide", "remainder", "fmod", "atan2")
for name in ARITHMETIC:
    sample(name, f32(3, 4, low=0.5), f32(4, low=0.5))
    sample(name, f64(2, 1, low=0.5), f64(1, 3, low=0.5))
    sample(name, f32(), f32(2, low=0.5))
    sample(name, f16(3, low=0.5), f16(3, low=0.5))
    sample(name, f32(0, 3), f32(3))
    sample(name, *edge_pairs(np.float32))
    sample(name, *edge_pairs(np.float64))
for name in ("add", "sub", "mul", "div", "pow"):
    sample(name, c64(3, 2), c64(2))
    sample(name, c128(3), c128())
for name in ("add", "sub", "mul", "maximum", "minimum"):
    sample(name, i64(3, 4), i64(4))
    sample(name, u8(3), u8(3))
    sample(name, ints(127, -128, 5, dtype=np.int8), ints(1, -1, 100, dtype=np.int8))
for name in ("add", "mul", "maximum", "minimum"):
    sample(name, np.array([True, True, False, False]), np.array([True, False, True, False]))
SIGNED = ints(7, -7, 7, -7, 6, -6, 0), ints(3, 3, -3, -3, 3, -3, 5)
for name in ("floor_divide", "remainder", "fmod"):
    sample(name, *SIGNED)
    sample(name, u8(3), u8(3, low=1))
    sample(name, i32(2, 3), i32(3, low=1))
sample("remainder", f32(5000), f32(5000))
sample("remainder", f64(90, 70), f64(70))
sample("pow", ints(2, -2, 0, 1, -1, 3), ints(3, 3, 0, -2, -3, -1))
sample("pow", u8(4), u8(4, high=3))

for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    sample(name, *edge_pairs(np.float32))
    sample(name, i64(3, 4, low=0, high=3), i64(4, low=0, high=3))
    sample(name, boolean(6), boolean(6))
    sample(name, f32(), f32())
for name in ("eq", "ne"):
    sample(name, np.array([1 + 1j, 2, 3j]), np.array([1 + 1j, 2j, 3j]))
for name in ("logical_and", "logical_or", "logical_xor"):
    sample(name, *edge_pairs(np.float32))
    sample(name, boolean(3, 1), boolean(4))
    sample(name, i64(6, low=0, high=2), i64(6, low=0, high=2))
    sample(name, c64(3), c64(3))
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    sample(name, boolean(3, 1), boolean(4))
    sample(name, i64(6), i64(6))
    sample(name, u8(6), u8())
for name in ("left_shift", "right_shift"):
    sample(name, i64(6), i64(6, low=0))
    sample(name, u8(6), u8(6))
    sample(name, ints(-8, -1, 100, 127, dtype=np.int8), ints(1, 7, 1, 8, dtype=np.int8))

sample("where", boolean(3, 4), f32(4), f32(3, 1))
sample("where", boolean(3), i64(3), i64())
sample("where", boolean(), f64(2, 3), f64(2, 3))
sample("where", boolean(4), boolean(4), boolean(4))
sample("where", boolean(4), c64(4), c64(4))
for operand in (f32(90, 70), f64(90, 70), f16(70), c64(1, 70), c128(90, 70), boolean(90, 1), i8()):
    sample("where", boolean(90, 70), operand, operand)
sample("where", boolean(70), f32(90, 1), f32())
sample("where", np.tile([True, False], 2500), np.full(5000, np.nan), np.full(5000, -0.0))
for name in ("clamp_min", "clamp_max"):
    sample(name, f32(3, 4), f32())
    sample(name, f32(4), f32(3, 4))
    sample(name, i64(3, 4), i64(4))
    sample(name, *edge_pairs(np.float32))
sample("clamp", f32(3, 4), f32(low=-1.0, high=-0.5), f32(low=0.5, high=1.0))
sample("clamp", f64(3, 4), f64(4), f64(3, 1))
sample("clamp", i64(6), i64(), i64())
sample("clamp", edge(np.float32), np.float32([[1.0], [np.nan], [-np.inf]]), np.float32([[-1.0], [2.0], [np.nan]]))

CASTS = ("bool", "u8", "i8", "i32", "i64", "f16", "f32", "f64", "c64", "c128")
for dtype in CASTS:
    for operand in (f32(3, 4), f64(), i64(3, low=0), boolean(4), f16(3), c64(3)):
        sample("cast", operand, dtype=dtype)
sample("cast", ints(300, -1, 128), dtype="u8")
sample("cast", ints(300, -1, 128), dtype="i8")
sample("cast", np.array([-2.9, -0.5, 0.5, 2.9]), dtype="i64")
sample("cast", edge(np.float32), dtype="bool")
sample("cast", edge(np.float64), dtype="f16")

sample("copy", f32(3, 4))
sample("copy", i8())
sample("copy", boolean(0, 2))
