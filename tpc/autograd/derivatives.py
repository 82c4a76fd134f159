"""Fills the table of derivatives: importing this module imports every family's entries."""

from tpc.autograd import elementwise, fft, host, indexing, linalg, nn, numbers, pairs, random, reduction, shape, special

__all__ = ["elementwise", "fft", "host", "indexing", "linalg", "nn", "numbers", "pairs", "random", "reduction", "shape", "special"]
