"""Kernels by family: what the operators mean on NumPy arrays. Importing this package fills the table."""

from tpc.runtime.kernels import elementwise, indexing, linalg, random, reduction, shape

__all__ = ["elementwise", "indexing", "linalg", "random", "reduction", "shape"]
