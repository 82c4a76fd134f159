"""`tpc.nn.modules`: the layers under the paths that PyTorch keeps them at, such as `nn.modules.conv` and `nn.modules.utils`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import repeat
from types import ModuleType
from typing import Any

from tpc import nn
from tpc.nn import activations, attention, containers, conv, hooks, lazy, linear, losses, normalisation, recurrent, shaping, transformer
from tpc.nn.module import Module


def _repeated(count: int) -> Callable[[Any], tuple[Any, ...]]:
    def made(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, count))

    return made


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The elements from the last to the first, each `n` times, as `pad` takes them."""
    return tuple(x for x in reversed(list(t)) for _ in range(n))


class _Loss(Module):
    """A loss with a reduction, for users' losses."""

    reduction: str

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with weights of classes, for users' losses."""

    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


PARTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "activation": (activations, {"MultiheadAttention": nn.MultiheadAttention}),
    "batchnorm": (normalisation, {"_BatchNorm": normalisation.Batch, "_NormBase": normalisation.Channels}),
    "container": (containers, {}),
    "conv": (conv, {"_ConvNd": conv.Convolution, "_ConvTransposeNd": conv.Transposed}),
    "dropout": (shaping, {}),
    "flatten": (shaping, {}),
    "instancenorm": (normalisation, {"_InstanceNorm": normalisation.Instance}),
    "lazy": (lazy, {}),
    "linear": (linear, {}),
    "loss": (losses, {"_Loss": _Loss, "_WeightedLoss": _WeightedLoss}),
    "module": (hooks, {"Module": Module}),
    "normalization": (normalisation, {}),
    "padding": (shaping, {}),
    "pooling": (shaping, {}),
    "rnn": (recurrent, {}),
    "sparse": (linear, {}),
    "transformer": (transformer, {n: getattr(attention, n) for n in dir(attention) if n.startswith("Transformer")}),
    "upsampling": (shaping, {}),
    "utils": (None, {
        "_ntuple": _repeated, "_single": _repeated(1), "_pair": _repeated(2), "_triple": _repeated(3), "_quadruple": _repeated(4),
        "_reverse_repeat_tuple": _reverse_repeat_tuple,
    }),
}  # fmt: skip
"""Per path: where its layers are, and what else is found there."""


def _made(name: str, source: Any, more: dict[str, Any]) -> ModuleType:
    module = ModuleType(f"{__name__}.{name}", f"`nn.modules.{name}`, as PyTorch calls it.")
    kinds = {k: v for k, v in vars(source).items() if not k.startswith("_")} if source is not None else {}
    vars(module).update(kinds | more)
    sys.modules[module.__name__] = module
    return module


__path__: list[str] = []
for _name, (_source, _more) in PARTS.items():
    globals()[_name] = _made(_name, _source, _more)
globals().update({name: getattr(nn, name) for name in dir(nn) if isinstance(getattr(nn, name), type)})
__all__: list[str] = list(PARTS)
