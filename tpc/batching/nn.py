"""Convolution, pooling and windows of a batch of samples.

A batch of inputs joins the batch dimension that a convolution has; a batch of weights becomes groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpc.batching.rules import batching, expanded, reshaped
from tpc.ir.opdef import OpDef
from tpc.ir.ops import nn, shape
from tpc.record import record_typed as record
from tpc.tensor import Tensor


def _joined(x: Tensor, at: int) -> Tensor:
    """[batch, ...] with the batch moved into dimension `at` of the rest, in front of what is there."""
    rank = len(x._type.shape)
    order = (*range(1, at + 1), 0, *range(at + 1, rank))
    moved = x if at == 0 else record(shape.permute, (x,), {"dims": order})
    sizes = moved._type.shape
    return reshaped(moved, (*sizes[:at], sizes[at] * sizes[at + 1], *sizes[at + 2 :]))


def _parted(x: Tensor, at: int, batch: int) -> Tensor:
    """The inverse of `_joined`."""
    sizes = x._type.shape
    split = reshaped(x, (*sizes[:at], batch, sizes[at] // batch, *sizes[at + 1 :]))
    if at == 0:
        return split
    rank = len(split._type.shape)
    return record(shape.permute, (split,), {"dims": (at, *range(at), *range(at + 1, rank))})  # type: ignore[no-any-return]


def _grouped(attrs: Mapping[str, Any], batch: int) -> dict[str, Any]:
    return {**attrs, "groups": attrs["groups"] * batch}


@batching(nn.conv, nn.conv_input_grad)
def _conv(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    x, w = xs
    if not flags[1]:
        return _parted(record(defn, (_joined(x, 0), w), attrs), 0, batch)
    x = expanded(x, flags[0], batch)
    return _parted(record(defn, (_joined(x, 1), _joined(w, 0)), _grouped(attrs, batch)), 1, batch)


@batching(nn.conv_weight_grad)
def _conv_weight_grad(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    g, x = (_joined(expanded(t, f, batch), 1) for t, f in zip(xs, flags, strict=True))
    return _parted(record(defn, (g, x), _grouped(attrs, batch)), 0, batch)


@batching(nn.max_pool, nn.max_pool_indices, nn.max_pool_grad, nn.sum_pool, nn.sum_pool_grad, nn.im2col, nn.col2im)
def _along_the_last(defn: OpDef, xs: Sequence[Any], flags: Sequence[bool], attrs: Mapping[str, Any], batch: int) -> Any:
    return record(defn, [expanded(x, f, batch) for x, f in zip(xs, flags, strict=True)], attrs)
