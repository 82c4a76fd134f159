"""Kernels by family: what the operators mean on NumPy arrays. Importing this package fills the table."""

from tpc.runtime.kernels import (
    control,
    decompositions,
    elementwise,
    error_function,
    fft,
    host,
    indexing,
    linalg,
    nn,
    numbers,
    pairs,
    pooling,
    random,
    reduction,
    shape,
    special,
)

__all__ = [
    "control",
    "decompositions",
    "elementwise",
    "error_function",
    "fft",
    "host",
    "indexing",
    "linalg",
    "nn",
    "numbers",
    "pairs",
    "pooling",
    "random",
    "reduction",
    "shape",
    "special",
]
