"""Runs programs on NumPy; imports tpc.ir only."""

assert __name__ == "tpc.runtime", "import tpc.runtime, never runtime"
