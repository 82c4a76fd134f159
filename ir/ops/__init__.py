"""Operator definitions, one file per family; importing this package fills the table."""

from tpc.ir.ops import elementwise, fusion, host, indexing, linalg, nn, random, reduction, shape

__all__ = ["elementwise", "fusion", "host", "indexing", "linalg", "nn", "random", "reduction", "shape"]
