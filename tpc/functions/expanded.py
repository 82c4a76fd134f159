"""Writing through expanded dimensions, where several elements are one place in memory: the last one written stays."""

from __future__ import annotations

from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.factories import arange
from tpc.functions.gathering import gather
from tpc.functions.reduction import amax
from tpc.functions.shape import permute, reshaped
from tpc.tensor import Tensor


def narrowed(base: Tensor, new: Tensor, places: Tensor) -> Tensor:
    """`base`, of which `new` is an expanded form with other values where `places` is True."""
    shape, rank = base._type.shape, new._type.rank
    whole = (1,) * (rank - len(shape)) + shape
    kept = [d for d in range(rank) if whole[d] == new._type.shape[d]]
    gone = [d for d in range(rank) if d not in kept]
    count = 1
    for d in gone:
        count *= new._type.shape[d]
    flat = (*[whole[d] for d in kept], count)
    new, places = (reshaped(permute(x, [*kept, *gone]), flat) for x in (new, places))
    order: Any = amax(e.where(places, arange(1, count + 1), 0), -1, keepdim=True)
    value = reshaped(gather(new, -1, (order - 1).clamp(min=0)), shape)
    return e.where(reshaped(order > 0, shape), value, base)
