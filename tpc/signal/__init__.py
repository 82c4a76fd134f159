"""`tpc.signal`: what signals are worked on with."""

from tpc.signal import windows

__all__ = ["windows"]
