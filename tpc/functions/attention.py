"""Scaled dot-product attention, alone and with several heads."""

from __future__ import annotations

import math
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions import reduction
from tpc.functions.arranging import pad, repeat_interleave
from tpc.functions.dropout import dropout
from tpc.functions.factories import arange, zeros_of
from tpc.functions.joining import cat, chunk
from tpc.functions.layers import linear
from tpc.functions.linalg import matmul
from tpc.functions.masks import masked_fill
from tpc.functions.shape import broadcast_to, mT, reshape, transpose, unsqueeze
from tpc.ir.types import tensor_type
from tpc.record import cast
from tpc.tensor import Tensor


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value, over [..., length, width]; `scale` is 1 / sqrt(width) unless given.

    `attn_mask` is True where attention may go, or is added; a query that may go nowhere gets zeros.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x._type.rank < 2:
            raise RuntimeError(f"scaled_dot_product_attention: Expected {name} to have at least 2 dimensions, but got {x._type.rank}")
    if enable_gqa:
        heads = query._type.shape[-3]
        key, value = (repeat_interleave(x, heads // x._type.shape[-3], dim=-3) for x in (key, value))
    factor = 1 / math.sqrt(query._type.shape[-1]) if scale is None else scale
    scores = matmul(e.mul(query, factor), mT(key))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        scores = e.where(_causal(query._type.shape[-2], key._type.shape[-2]), scores, -math.inf)
    weights = reduction.softmax(scores, -1) if attn_mask is None else _masked_softmax(scores, attn_mask)
    return matmul(dropout(weights, dropout_p) if dropout_p else weights, value)


def _causal(queries: int, keys: int) -> Tensor:
    """True where a key is not later than the query."""
    return e.ge(unsqueeze(arange(queries), 1), arange(keys))


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax with a mask, 0 in rows in which nothing is left."""
    if mask._type.dtype == "bool":
        allowed = mask
        scores = e.where(mask, scores, -math.inf)
    else:
        scores = e.add(scores, cast(mask, scores._type.dtype))
        allowed = e.ne(scores.detach(), -math.inf)
    some = reduction.any(allowed, -1, keepdim=True)
    return e.where(some, reduction.softmax(e.where(some, scores, 0), -1), 0)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None, separate: tuple[Any, Any, Any] | None
) -> list[Tensor]:
    """Query, key and value through their linear maps: three parts of one weight, or three of their own."""
    biases = (None, None, None) if bias is None else chunk(bias, 3)
    weights = separate if separate is not None else chunk(weight, 3)  # type: ignore[arg-type]
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def _mask(mask: Tensor | None, name: str, dtype: str) -> Tensor | None:
    """A mask as numbers to add; in the modules' masks True forbids."""
    if mask is None:
        return None
    if mask._type.dtype == "bool":
        return masked_fill(zeros_of(tensor_type(dtype, mask._type.shape)), mask, -math.inf)
    if mask._type.dtype[0] != "f":
        raise RuntimeError(f"only bool and floating types of {name} are supported")
    return mask


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention of several heads over [length, batch, width] (or without batch), and the weights of attention."""
    batched = query._type.rank == 3
    if not batched:
        query, key, value = (unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    length, batch, width = query._type.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    dtype = query._type.dtype
    attn_mask, key_padding_mask = _mask(attn_mask, "attn_mask", dtype), _mask(key_padding_mask, "key_padding_mask", dtype)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, separate)
    if bias_k is not None and bias_v is not None:
        k, v = (cat((x, broadcast_to(b, (1, batch, width)))) for x, b in ((k, bias_k), (v, bias_v)))
        attn_mask, key_padding_mask = _longer(attn_mask), _longer(key_padding_mask)
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    part = width // num_heads
    k, v = (x if given is None else reshape(given, (batch, num_heads, -1, part)) for x, given in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (pad(x, (0, 0, 0, 1)) for x in (k, v))
        attn_mask, key_padding_mask = _longer(attn_mask), _longer(key_padding_mask)
    mask = _joined(attn_mask, key_padding_mask, batch, num_heads)
    scores = matmul(e.mul(q, 1 / math.sqrt(part)), mT(k))
    weights = reduction.softmax(scores if mask is None else e.add(scores, mask), -1)
    if dropout_p and training:
        weights = dropout(weights, dropout_p)
    mixed = matmul(weights, v)
    merged = reshape(transpose(transpose(mixed, 1, 2), 0, 1), (length, batch, width))
    out = linear(merged, out_proj_weight, out_proj_bias)
    shown = None if not need_weights else reduction.mean(weights, 1) if average_attn_weights else weights
    if not batched:
        out, shown = reshape(out, (length, width)), None if shown is None else reshape(shown, shown._type.shape[1:])
    return out, shown


def _heads(x: Tensor, count: int) -> Tensor:
    """[length, batch, width] as [batch, heads, length, part]."""
    length, batch, width = x._type.shape
    return transpose(transpose(reshape(x, (length, batch, count, width // count)), 0, 1), 1, 2)


def _longer(mask: Tensor | None) -> Tensor | None:
    """One more key, to which attention may go."""
    return None if mask is None else pad(mask, (0, 1))


def _joined(attn_mask: Tensor | None, padding: Tensor | None, batch: int, heads: int) -> Tensor | None:
    """Both masks in a shape that goes with [batch, heads, queries, keys]."""
    if attn_mask is not None and attn_mask._type.rank == 3:
        attn_mask = reshape(attn_mask, (batch, heads, *attn_mask._type.shape[1:]))
    if padding is None:
        return attn_mask
    padding = reshape(padding, (batch, 1, 1, padding._type.shape[-1]))
    return padding if attn_mask is None else e.add(attn_mask, padding)
