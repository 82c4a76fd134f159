"""Layers that multiply by a matrix or look up its rows."""

from __future__ import annotations

import math
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.functions.factories import empty
from tpc.nn import functional as fn
from tpc.nn import init
from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor


def weights(module: Module, dtype: Any, **shapes: tuple[int, ...] | None) -> None:
    """Registers a parameter for each shape, and a place for one for each None."""
    for name, shape in shapes.items():
        module.register_parameter(name, None if shape is None else Parameter(empty(*shape, dtype=dtype)))


class Identity(Module):
    """Its input; arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """`x @ weight.T + bias`, [..., in_features] to [..., out_features]."""

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weights(self, dtype, weight=(out_features, in_features), bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return fn.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The name that PyTorch shows for the last layer of an attention."""


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for each output k."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        weights(self, dtype, weight=(out_features, in1_features, in2_features), bias=(out_features,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return fn.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class _Table(Module):
    weight: Parameter
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool

    def _made(self, weight: Tensor | None, frozen: bool, dtype: Any, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self, name, value)
        shape = (self.num_embeddings, self.embedding_dim)
        if self.padding_idx is not None:
            if not -shape[0] <= self.padding_idx < shape[0]:
                raise AssertionError("Padding_idx must be within num_embeddings")
            self.padding_idx %= shape[0]
        if weight is not None and tuple(weight.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(empty(*shape, dtype=dtype) if weight is None else weight, requires_grad=not frozen)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal numbers, and zeros for the padding."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)  # type: ignore[index]

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **settings: Any) -> Any:
        """A table with the given rows, which are trained only with `freeze=False`."""
        made = cls(*embeddings.shape, _weight=embeddings, **settings)  # type: ignore[call-arg]
        made.weight.requires_grad = not freeze
        return made

    def extra_repr(self) -> str:
        settings = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
        changed = "".join(f", {k}={getattr(self, k)}" for k, plain in settings.items() if getattr(self, k) != plain)
        return f"{self.num_embeddings}, {self.embedding_dim}{changed}"


class Embedding(_Table):
    """Rows of a table by their numbers, [...] to [..., embedding_dim]; the row `padding_idx` is not trained."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._made(
            _weight, _freeze, dtype, num_embeddings=num_embeddings, embedding_dim=embedding_dim, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return fn.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows of a table, for each bag of numbers."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode, self.include_last_offset = mode, include_last_offset
        self._made(
            _weight, False, dtype, num_embeddings=num_embeddings, embedding_dim=embedding_dim, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return fn.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
