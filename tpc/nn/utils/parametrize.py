"""Parameters that are computed: a module's tensor becomes a function of others, which are trained in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.nn.containers import ModuleDict, ModuleList
from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor

_CACHE: dict[tuple[int, str], Any] = {}
_caching = 0


@contextmanager
def cached() -> Iterator[None]:
    """Inside, every parametrized tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _CACHE.clear()


class ParametrizationList(ModuleList):
    """The functions of one tensor, applied one after the other to `original` (or to `original0`, `original1` ... of the first one)."""

    original: Any

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        source: Any = original
        with no_grad():
            for module in reversed(modules):
                source = _inverse(module, source)
        self.is_tensor = isinstance(source, Tensor)
        if self.is_tensor:
            # The parameter stays the object it was: optimisers may know it.
            if source is not original:
                _check_same(original, source, "right_inverse")
                original.data = source
            _register(self, "original", original)
        else:
            self.ntensors = len(source)
            for i, part in enumerate(source):
                _register(self, f"original{i}", Parameter(part.detach().clone()) if isinstance(original, Parameter) else part)
        if not unsafe:
            _check_same(original, self(), "forward")

    def originals(self) -> list[Any]:
        """The tensors that are trained."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Sets the originals so that the result is `value`; `NotImplementedError` where a function has no right inverse."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            parts = [value] if self.is_tensor else list(value)
            for old, new in zip(self.originals(), parts, strict=True):
                old.data = new.detach().clone()

    def forward(self) -> Any:
        first, *rest = list(self)
        made = first(*self.originals())
        for module in rest:
            made = module(made)
        return made


def _inverse(module: Any, value: Any) -> Any:
    try:
        return module.right_inverse(value) if hasattr(module, "right_inverse") else value
    except NotImplementedError:
        return value


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(old: Any, new: Any, what: str) -> None:
    if not isinstance(new, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
    for fact in ("dtype", "shape"):
        before, after = getattr(old, fact), getattr(new, fact)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {fact} of the tensor, unless `unsafe` flag is enabled: "
                f"{what} made {after} of {before}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module (or its tensor of that name) is computed."""
    lists = module._modules.get("parametrizations")
    return isinstance(lists, ModuleDict) and (len(lists) > 0 if tensor_name is None else tensor_name in lists)


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def _computed(name: str) -> property:
    def get(self: Any) -> Any:
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _CACHE:
            _CACHE[key] = self.parametrizations[name]()
        return _CACHE[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Makes `module.tensor_name` the result of `parametrization` on a parameter (or buffer) that is trained instead; returns the module.

    A method `right_inverse` of the parametrization says where to begin. One that is registered later is applied to the result.
    `ValueError` where dtype or shape change (unless `unsafe`), or where there is no such tensor.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        made = module.parametrizations[tensor_name]
        with no_grad():
            before = getattr(module, tensor_name)
            if not unsafe:
                _check_same(before, parametrization(before), "forward")
        if hasattr(parametrization, "right_inverse"):
            made.right_inverse(_inverse(parametrization, before))
        made.append(parametrization)
        made.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"__module__": kind.__module__})
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _computed(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes the tensor a parameter again: with the computed value, or with the original one; returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if not (made.is_tensor or leave_parametrized):
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of several.")
    with no_grad():
        value = getattr(module, tensor_name)
    original = made.originals()[0]
    if leave_parametrized and made.is_tensor:
        original.data = value.detach()
    elif not made.is_tensor:
        original = Parameter(value.detach()) if isinstance(original, Parameter) else value.detach()
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    _register(module, tensor_name, original)
    return module
