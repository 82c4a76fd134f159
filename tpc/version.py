"""`tpc.version`: of tpc, and of the devices that it does not use (None)."""

__version__ = "0.1.0"
cuda = hip = xpu = git_version = None
debug = False

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
