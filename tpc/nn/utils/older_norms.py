"""`weight_norm` and `spectral_norm` of `nn.utils`: the weight stays an attribute of that name, computed from others beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tpc.functions.random import randn
from tpc.nn import functional as fn
from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.nn.utils.parametrizations import in_rows, iterate, lengths, scaled, turned


class WeightNorm(NamedTuple):
    """Computes a weight from `<name>_g` and `<name>_v`."""

    name: str
    dim: int

    def __call__(self, module: Any) -> Any:
        return scaled(getattr(module, self.name + "_g"), getattr(module, self.name + "_v"), self.dim)


class SpectralNorm(NamedTuple):
    """Computes a weight from `<name>_orig` and the vectors `<name>_u` and `<name>_v`."""

    name: str
    iterations: int
    dim: int
    eps: float

    def __call__(self, module: Any) -> Any:
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        weight = getattr(module, self.name + "_orig")
        return weight / (u.clone() @ (in_rows(weight, self.dim) @ v.clone()))

    def before_forward(self, module: Any, args: Any) -> None:
        """Iterates once more in training mode."""
        if module.training:
            matrix = in_rows(getattr(module, self.name + "_orig"), self.dim)
            iterate(matrix, getattr(module, self.name + "_u"), getattr(module, self.name + "_v"), self.iterations, self.eps)


def _take_weight(module: Any, name: str, kind: str) -> Any:
    if name in module.__dict__.get("_computed", {}):
        raise RuntimeError(f"Cannot register two {kind} hooks on the same parameter {name}")
    weight = module._parameters[name]
    delattr(module, name)
    return weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Trains the length `<name>_g` of each slice along `dim` (None: of the whole) and the direction `<name>_v`."""
    weight, dim = _take_weight(module, name, "weight_norm"), -1 if dim is None else dim
    module.register_parameter(name + "_g", Parameter(lengths(weight.detach(), dim)))
    module.register_parameter(name + "_v", Parameter(weight.data))
    module.compute_attribute(name, WeightNorm(name, dim))
    return module


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """Divides a weight, trained as `<name>_orig`, by its largest singular value."""
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    weight = _take_weight(module, name, "spectral_norm")
    norm = SpectralNorm(name, n_power_iterations, turned(module) if dim is None else dim, eps)
    module.register_parameter(name + "_orig", weight)
    for letter, size in zip("uv", in_rows(weight.detach(), norm.dim).shape, strict=True):
        module.register_buffer(f"{name}_{letter}", fn.normalize(randn(size, dtype=weight.dtype), dim=0, eps=eps))
    module.compute_attribute(name, norm)
    module.register_forward_pre_hook(norm.before_forward)
    return module


def _remove(module: Any, name: str, kind: type, parts: str) -> Any:
    made = module.__dict__.get("_computed", {}).get(name)
    if not isinstance(made, kind):
        raise ValueError(f"{'weight_norm' if kind is WeightNorm else 'spectral_norm'} of '{name}' not found in {module}")
    weight = getattr(module, name).detach()
    module.compute_attribute(name, None)
    for part in parts.split():
        delattr(module, f"{name}_{part}")
    module.register_parameter(name, Parameter(weight))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Makes the weight a parameter again."""
    return _remove(module, name, WeightNorm, "g v")


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Makes the weight a parameter again."""
    made = _remove(module, name, SpectralNorm, "u v orig")
    for key, hook in list(made._forward_pre_hooks.items()):
        if getattr(getattr(hook, "given", None), "__func__", None) is SpectralNorm.before_forward and hook.given.__self__.name == name:
            made._forward_pre_hooks.pop(key)
    return made
