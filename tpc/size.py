"""Shapes as users see them."""

from __future__ import annotations

from typing import Any

import numpy as np


class Size(tuple[int, ...]):
    """A shape; a tuple with `numel`."""

    __slots__ = ()

    def numel(self) -> int:
        return int(np.prod(self, dtype=np.int64))

    def __repr__(self) -> str:
        return f"tpc.Size({list(self)})"

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, tuple(other)))

    def __getitem__(self, item: Any) -> Any:
        got = tuple.__getitem__(self, item)
        return Size(got) if isinstance(item, slice) else got
