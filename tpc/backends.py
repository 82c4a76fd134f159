"""`tpc.backends`: switches of libraries that tpc does not use. They can be read and set, and change nothing."""

from __future__ import annotations

from typing import Any


class _Backend:
    """One library that is not there."""

    def __init__(self, **flags: Any) -> None:
        self.__dict__.update(flags)

    def is_available(self) -> bool:
        """False."""
        return False

    is_built = is_available

    def version(self) -> None:
        """None."""


cudnn = _Backend(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = _Backend(matmul=_Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=False))
mkldnn, mkl, openmp, mps, opt_einsum = (_Backend(enabled=False) for _ in range(5))

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
