"""The table of samples: for every operator, operands and attributes to try it on.

    sample("mul", f32(3, 4), f32(4))
    sample("sum", f32(2, 3), dims=(1,), keepdim=False)

An operand is an array, or a type with a range (`f32(3, low=0.1)`) for which the same random numbers are drawn every time.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tpc.ir.opdef import AttrValue, lookup
from tpc.ir.parser import parse_program
from tpc.ir.program import Op, Program, Value
from tpc.ir.signature import result_types
from tpc.ir.types import TensorType, is_complex, is_floating, tensor_type, type_of


@dataclass(frozen=True)
class Drawn:
    """An operand of that type with numbers in [low, high)."""

    type: TensorType
    low: float
    high: float

    def array(self, seed: int) -> np.ndarray:
        rng, type = np.random.default_rng(seed), self.type
        if type.dtype == "bool":
            return rng.random(type.shape) < 0.5
        if is_complex(type.dtype):
            parts = rng.uniform(self.low, self.high, (2, *type.shape))
            return np.asarray(parts[0] + 1j * parts[1]).astype(type.numpy_dtype)
        if is_floating(type.dtype):
            return np.asarray(rng.uniform(self.low, self.high, type.shape)).astype(type.numpy_dtype)
        return np.asarray(rng.integers(int(self.low), int(self.high), type.shape)).astype(type.numpy_dtype)


@dataclass(frozen=True)
class Sample:
    """One use of an operator."""

    name: str
    operands: tuple[Drawn | np.ndarray, ...]
    attrs: Mapping[str, AttrValue]
    bodies: tuple[Program, ...] = ()

    def __str__(self) -> str:
        types = ",".join(str(o.type if isinstance(o, Drawn) else type_of(o)) for o in self.operands)
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items())
        return f"{self.name}({types}{';' if attrs else ''}{attrs})"

    def arrays(self) -> list[np.ndarray]:
        """Fresh arrays, the same ones every time."""
        seed = zlib.crc32(str(self).encode())
        return [o.array(seed + i) if isinstance(o, Drawn) else o.copy() for i, o in enumerate(self.operands)]

    def op(self) -> Op:
        """The operator on inputs of these types; `TypeRuleError` where its rule refuses them."""
        defn, types = lookup(self.name), [type_of(a) for a in self.arrays()]
        results = result_types(defn, types, self.attrs, self.bodies)
        return Op(defn, [Value(None, 0, t) for t in types], self.attrs, results, bodies=self.bodies)


SAMPLES: dict[str, list[Sample]] = {}
"""Filled by the modules `samples_<family>`."""


def sample(name: str, /, *operands: Drawn | np.ndarray, bodies: Sequence[str] = (), **attrs: AttrValue) -> None:
    """Enters one sample; `bodies` are texts of programs."""
    SAMPLES.setdefault(name, []).append(Sample(name, operands, attrs, tuple(parse_program(text) for text in bodies)))


def f16(*shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
    return Drawn(tensor_type("f16", shape), low, high)


def f32(*shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
    return Drawn(tensor_type("f32", shape), low, high)


def f64(*shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
    return Drawn(tensor_type("f64", shape), low, high)


def c64(*shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
    return Drawn(tensor_type("c64", shape), low, high)


def c128(*shape: int, low: float = -2.0, high: float = 2.0) -> Drawn:
    return Drawn(tensor_type("c128", shape), low, high)


def i8(*shape: int, low: int = -5, high: int = 6) -> Drawn:
    return Drawn(tensor_type("i8", shape), low, high)


def i32(*shape: int, low: int = -5, high: int = 6) -> Drawn:
    return Drawn(tensor_type("i32", shape), low, high)


def i64(*shape: int, low: int = -5, high: int = 6) -> Drawn:
    return Drawn(tensor_type("i64", shape), low, high)


def u8(*shape: int, low: int = 0, high: int = 9) -> Drawn:
    return Drawn(tensor_type("u8", shape), low, high)


def boolean(*shape: int) -> Drawn:
    return Drawn(tensor_type("bool", shape), 0, 1)


_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.7, 1e-4, 90.0, -90.0, 1e4, np.nan, np.inf, -np.inf)


def edge(dtype: type) -> np.ndarray:
    """Numbers at which functions are apt to go wrong."""
    return np.array(_EDGES, dtype)


def edge_pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of them."""
    numbers = edge(dtype)
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


def ints(*numbers: int, dtype: type = np.int64) -> np.ndarray:
    return np.array(numbers, dtype)
