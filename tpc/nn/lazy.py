"""Layers that learn from their first input how many features it has."""

from __future__ import annotations

import warnings
from typing import Any

from tpc.nn import conv, linear, normalisation
from tpc.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from tpc.state import STATE
from tpc.tracing import Unready


class LazyModuleMixin:
    """Beside a layer class whose first argument is a number of features: that number is taken from the first call's input."""

    cls_to_become: Any
    FEATURES = "num_features"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # weights without elements are not initialised
            super().__init__(0, *args, **kwargs)  # type: ignore[call-arg]
        self.__dict__["_made_with"] = args, kwargs
        own: Any = self
        for name, p in list(own._parameters.items()):
            if p is not None:
                setattr(self, name, UninitializedParameter(dtype=p.dtype))
        for name, b in list(own._buffers.items()):
            if b is not None and b.dim():
                own._buffers[name] = UninitializedBuffer(dtype=b.dtype)
        own.register_forward_pre_hook(_infer, with_kwargs=True)
        own.register_load_state_dict_pre_hook(_materialise_for)

    def has_uninitialized_params(self) -> bool:
        """Whether the first call is still to come."""
        own: Any = self
        return any(is_lazy(t) for t in (*own._parameters.values(), *own._buffers.values()))

    def features(self, input: Any) -> int:
        """How many features an input has."""
        return int(input.shape[1])

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Makes the parameters for such an input, with their usual initial values."""
        self.settle(self.features(input))

    def settle(self, count: int) -> None:
        """Gives parameters and buffers, which stay the objects that they are, their shapes for a number of features."""
        own: Any = self
        args, kwargs = self.__dict__["_made_with"]
        made = self.cls_to_become(count, *args, **kwargs)
        setattr(self, self.FEATURES, count)
        for table in ("_parameters", "_buffers"):
            for name, new in getattr(made, table).items():
                old = own.__dict__[table][name]
                if is_lazy(old):
                    old.materialize(new.shape)
                    old.data = new.data.to(old.dtype)


def _infer(module: Any, args: Any, kwargs: Any) -> None:
    if STATE.trace is not None:
        raise Unready(f"{module._get_name()} learns the shapes of its parameters")
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    for hooks, own in ((module._forward_pre_hooks, _infer), (module._load_state_dict_pre_hooks, _materialise_for)):
        for key in [key for key, hook in hooks.items() if getattr(hook, "given", hook) is own]:
            hooks.pop(key)
    del module.__dict__["_made_with"]
    module.__class__ = module.cls_to_become


def _materialise_for(module: Any, state_dict: Any, prefix: str, *others: Any) -> None:
    for table in (module._parameters, module._buffers):
        for name, tensor in table.items():
            saved = state_dict.get(prefix + name)
            if is_lazy(tensor) and saved is not None and not is_lazy(saved):
                tensor.materialize(saved.shape)


class LazyLinear(LazyModuleMixin, linear.Linear):
    """`Linear(out_features, bias)` for inputs of any width."""

    cls_to_become = linear.Linear
    FEATURES = "in_features"

    def features(self, input: Any) -> int:
        return int(input.shape[-1])


class _LazyConvolution(LazyModuleMixin):
    FEATURES = "in_channels"
    COUNT = 0

    def features(self, input: Any) -> int:
        if input.dim() not in (self.COUNT + 1, self.COUNT + 2):
            raise RuntimeError(
                f"Expected {self.COUNT + 1}D (unbatched) or {self.COUNT + 2}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {list(input.shape)}"
            )
        return int(input.shape[-self.COUNT - 1])


def _lazy(mixin: type, kind: Any) -> Any:
    text = f"`{kind.__name__}` that takes its number of channels from its first input."
    return type(f"Lazy{kind.__name__}", (mixin, kind), {"cls_to_become": kind, "COUNT": getattr(kind, "COUNT", 0), "__doc__": text,
                                                        "__module__": __name__})  # fmt: skip


LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyConvolution, kind)
    for kind in (conv.Conv1d, conv.Conv2d, conv.Conv3d, conv.ConvTranspose1d, conv.ConvTranspose2d, conv.ConvTranspose3d)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(LazyModuleMixin, kind)
    for kind in (
        normalisation.BatchNorm1d, normalisation.BatchNorm2d, normalisation.BatchNorm3d, normalisation.InstanceNorm1d,
        normalisation.InstanceNorm2d, normalisation.InstanceNorm3d,
    )
)  # fmt: skip
