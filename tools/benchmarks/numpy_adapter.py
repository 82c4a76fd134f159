"""Hand-written NumPy's side of the benchmarks: whole arrays, kept between calls where that is natural."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MODES = ("by hand",)
MEASURES: dict[str, Callable[[], float]] = {}


def library() -> Any:
    return np


def to_numpy(array: Any) -> np.ndarray:
    return np.array(array)
