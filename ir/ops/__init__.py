"""Operator definitions, one file per family; importing this package fills the table."""

from tpc.ir.ops import control, elementwise, fft, fusion, host, indexing, linalg, nn, numbers, pairs, random, reduction, shape, special

__all__ = [
    "control",
    "elementwise",
    "fft",
    "fusion",
    "host",
    "indexing",
    "linalg",
    "nn",
    "numbers",
    "pairs",
    "random",
    "reduction",
    "shape",
    "special",
]
