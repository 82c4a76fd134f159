"""Kernels by family: NumPy meanings of the operators."""
