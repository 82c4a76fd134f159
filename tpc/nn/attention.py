"""Attention of several heads, and the encoder layers of transformers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tpc.nn import functional as fn
from tpc.nn import init
from tpc.nn.containers import ModuleList
from tpc.nn.linear import Linear, NonDynamicallyQuantizableLinear, weights
from tpc.nn.module import Module
from tpc.nn.normalisation import LayerNorm
from tpc.nn.shaping import Dropout
from tpc.tensor import Tensor


class MultiheadAttention(Module):
    """Query [length, batch, embed_dim], key and value [source, batch, ...] (or batch first, or without batch) to the attended values and
    the weights."""

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        joint, wide = self._qkv_same_embed_dim, (1, 1, embed_dim) if add_bias_kv else None
        weights(
            self, dtype, q_proj_weight=None if joint else (embed_dim, embed_dim), k_proj_weight=None if joint else (embed_dim, self.kdim),
            v_proj_weight=None if joint else (embed_dim, self.vdim), in_proj_weight=(3 * embed_dim, embed_dim) if joint else None,
            in_proj_bias=(3 * embed_dim,) if bias else None, bias_k=wide, bias_v=wide,
        )  # fmt: skip
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, p in self._parameters.items():
            if p is not None and name.endswith("weight"):
                init.xavier_uniform_(p)
            elif p is not None and name in ("bias_k", "bias_v"):
                init.xavier_normal_(p)
            elif p is not None:
                init.zeros_(p)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Tensor | None]:  # fmt: skip
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        own = self._parameters
        out, shown = fn.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, own["in_proj_weight"], own["in_proj_bias"], own["bias_k"], own["bias_v"],
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=own["q_proj_weight"],
            k_proj_weight=own["k_proj_weight"], v_proj_weight=own["v_proj_weight"], average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        made: Any = out
        return (made.transpose(0, 1) if turned else made), shown


class TransformerEncoderLayer(Module):
    """Self-attention and two linear layers, each added to its input and normalised (before instead of after, with `norm_first`)."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = fn.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation: Callable[[Any], Any] = getattr(fn, activation) if isinstance(activation, str) else activation

    def forward(self, src: Any, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Any:
        def attend(x: Any) -> Any:
            made = self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)
            return self.dropout1(made[0])

        def feed(x: Any) -> Any:
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + feed(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + feed(x))


class TransformerEncoder(Module):
    """Several encoder layers, each a copy of the one given, one after the other."""

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True, mask_check: bool = True
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, src: Any, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Any:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(TransformerEncoderLayer):
    """An encoder layer with attention to a memory between its two parts."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = fn.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, None, dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout3 = Dropout(dropout)
        # The order of PyTorch's parameters, by which optimisers number their state.
        made = dict(self._modules)
        self._modules.clear()
        order = "self_attn multihead_attn linear1 dropout linear2 norm1 norm2 norm3 dropout1 dropout2 dropout3"
        self._modules.update({name: made[name] for name in order.split()})

    def forward(  # type: ignore[override]
        self, tgt: Any, memory: Any, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        def attend(x: Any) -> Any:
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])

        def remember(x: Any) -> Any:
            made = self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal)
            return self.dropout2(made[0])

        def feed(x: Any) -> Any:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x = tgt
        for part, normalised in ((attend, self.norm1), (remember, self.norm2), (feed, self.norm3)):
            x = x + part(normalised(x)) if self.norm_first else normalised(x + part(x))
        return x


class TransformerDecoder(Module):
    """Several decoder layers, each a copy of the one given, one after the other."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Any, memory: Any, *masks: Any, **named_masks: Any) -> Any:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named_masks)
        return tgt if self.norm is None else self.norm(tgt)
