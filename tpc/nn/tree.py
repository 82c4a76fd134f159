"""Trees of modules: walking over them, finding what is at a path, changing all parameters at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tpc.autograd.grad_mode import no_grad
from tpc.functions.factories import empty_like
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor, from_array

if TYPE_CHECKING:
    from tpc.nn.module import Module

TABLES = ("_parameters", "_buffers", "_modules")
"""The attributes where a module keeps what belongs to it, by name."""


class Tree:
    """What a module does with the modules below it."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    # --- what there is ---

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their paths."""
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self  # type: ignore[misc]
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        return (module for _, module in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            for name, tensor in module.__dict__[table].items():
                if tensor is not None and id(tensor) not in seen:
                    if remove_duplicate:
                        seen.add(id(tensor))
                    yield f"{path}.{name}" if path else name, tensor

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """All parameters, with their paths."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """All buffers, with their paths."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a path."""
        module: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Tree):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Puts a module at a path, in place of the one there or, unless `strict`, where there is none yet."""
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(getattr(parent, name, None), Tree):
            problem = "is not an nn.Module" if hasattr(parent, name) else f"is no attribute of {type(parent).__name__}"
            raise AttributeError(f"`{name}` {problem}")
        setattr(parent, name, module)

    def _at(self, target: str, table: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module.__dict__[table]:
            raise AttributeError(f"{type(module).__name__} has no {kind} `{name}`")
        return module.__dict__[table][name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        return self._at(target, "_parameters", "parameter")  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        return self._at(target, "_buffers", "buffer")  # type: ignore[no-any-return]

    # --- all at once ---

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Calls `fn` on every module, the deepest first."""
        for module in self.children():
            module.apply(fn)
        fn(self)  # type: ignore[arg-type]
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets training mode, which dropout and batch normalisation ask for."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Leaves training mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Says whether the parameters are trained."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters (or fills them with zeros)."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.detach_().zero_()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the content of parameters, their gradients and buffers by what `fn` makes of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for p in self._parameters.values():
                if p is not None:
                    _replace(p, fn)
            for name, buffer in list(self._buffers.items()):
                if buffer is not None:
                    setattr(self, name, fn(buffer))
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """`to(dtype)`, `to(device)`, `to(tensor)`: floating parameters and buffers converted in place."""
        probe: Tensor = _PROBE.to(*args, **kwargs)
        if not (probe.is_floating_point() or probe.is_complex()):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={probe.dtype}")
        named = probe.dtype is not _PROBE.dtype or _names_dtype(args, kwargs)
        return self._cast(probe.dtype) if named else self

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Parameters and buffers of the same shapes, with any content."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def share_memory(self) -> Self:
        """Itself: there is one process."""
        return self

    def _cast(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() or t.is_complex() else t)

    def type(self, dst_type: Any) -> Self:
        """All parameters and buffers in one dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Floating parameters and buffers as float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Floating parameters and buffers as float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Floating parameters and buffers as float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Itself: tensors live on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """An error: there is no CUDA device."""
        return self._apply(lambda t: t.cuda(device))


_PROBE = from_array(np.zeros((), np.float32))
"""What `to` is tried on."""


def _replace(p: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    """Gives a parameter and its gradient other content."""
    old = p.detach()
    new = fn(old)
    if new is not old:
        grad = p.grad
        p.grad = None
        p.data = new.detach()
        p.grad = None if grad is None else fn(grad)


def _names_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    from tpc.dtype import dtype

    return any(isinstance(x, (dtype, Tensor)) for x in (*args, *kwargs.values()))
