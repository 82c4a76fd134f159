"""Neural networks: functions, modules, initial values."""

from tpc.nn import functional

__all__ = ["functional"]
