"""Sliding windows as columns of a matrix, and columns summed back into windows."""

from __future__ import annotations

import math
from typing import Any

from tpc.functions.conv import several
from tpc.functions.shape import reshape
from tpc.ir.opdef import AttrValue
from tpc.ir.ops import nn as ops
from tpc.record import record
from tpc.tensor import Tensor


def _moves(function: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, ...], dict[str, AttrValue]]:
    kernel, spread, border, steps = (
        several(value, 2, function, name)
        for name, value in (("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding), ("stride", stride))
    )
    for name, value, least in (("kernel size", kernel, 1), ("dilation", spread, 1), ("padding", border, 0), ("stride", steps, 1)):
        if min(value) < least:
            wanted = "non-negative" if least == 0 else "greater than zero"
            raise RuntimeError(f"{name} should be {wanted}, but got {list(value)} ({function})")
    return kernel, {"stride": steps, "low": border, "high": border, "dilation": spread}


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Every window of images [batch, channels, height, width] as a column: [batch, channels * kernel, windows]."""
    kernel, moves = _moves("unfold", kernel_size, dilation, padding, stride)
    rank = input._type.rank
    if rank not in (3, 4):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
            f"{list(input._type.shape)}"
        )
    columns = record(ops.im2col, (input,), {"kernel": kernel, **moves})
    lead = input._type.shape[: rank - 3]
    places = columns._type.shape[-2:]
    return reshape(columns, (*lead, input._type.shape[rank - 3] * math.prod(kernel), math.prod(places)))


def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The transpose of `unfold`: columns added up where their windows were, as images of `output_size`."""
    kernel, moves = _moves("fold", kernel_size, dilation, padding, stride)
    size, rank = several(output_size, 2, "fold", "output_size"), input._type.rank
    if rank not in (2, 3):
        raise RuntimeError(
            f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
            f"{list(input._type.shape)}"
        )
    *lead, rows, columns = input._type.shape
    if rows % math.prod(kernel):
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} and "
            f"kernel_size=({kernel[0]}, {kernel[1]})."
        )
    places = ops.window_places("fold", size, kernel, moves)
    if math.prod(places) != columns:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={moves['dilation']}, padding={moves['low']}, "
            f"stride={moves['stride']}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{places[0]} * {places[1]} = {math.prod(places)}, but got input.size(2)={columns}."
        )
    spread = reshape(input, (*lead, rows // math.prod(kernel), *kernel, *places))
    return record(ops.col2im, (spread,), {"size": size, **moves})  # type: ignore[no-any-return]
