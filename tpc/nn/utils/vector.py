"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tpc.functions.joining import cat
from tpc.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements in order, with their history."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Gives each parameter its part of the vector as its data."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    at = 0
    for p in parameters:
        p.data = vec[at : at + p.numel()].view_as(p).data  # type: ignore[index]
        at += p.numel()
