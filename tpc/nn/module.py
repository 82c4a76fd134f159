"""The base of all layers and models: a tree of modules with parameters, buffers and hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tpc.autograd.node import HookHandle, Hooks
from tpc.nn import state
from tpc.nn.hooks import EVERY, BackwardWatch, ModuleHooks, added, after_forward, before_forward
from tpc.nn.parameter import Buffer, Parameter
from tpc.nn.tree import TABLES, Tree
from tpc.state import STATE
from tpc.storage import REARRANGED
from tpc.tensor import Tensor
from tpc.tracing import Untraceable

MISSING: Any = object()

HOOKS = tuple(
    f"_{kind}_hooks"
    for kind in (
        "forward_pre", "forward", "backward_pre", "backward", "state_dict", "state_dict_pre", "load_state_dict_pre", "load_state_dict_post",
    )
)  # fmt: skip


class Module(Tree):
    """Subclass it, make parameters and sub-modules attributes in `__init__` (after `super().__init__()`), and write `forward`."""

    _version = 1
    _forward_pre_hooks: Hooks
    _forward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks

    def __init__(self) -> None:
        made: dict[str, Any] = {name: {} for name in TABLES}
        made |= {"_non_persistent_buffers_set": set(), "training": True}
        made |= {name: ModuleHooks() for name in HOOKS}
        self.__dict__.update(made)
        if STATE.trace is not None:
            STATE.trace.modules_made[id(self)] = self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call computes; every subclass has its own."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # --- attributes ---

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            for table in TABLES:
                found = self.__dict__.get(table)
                if found is not None and name in found:
                    return found[name]
            computed = self.__dict__.get("_computed")
            if computed and name in computed:
                return computed[name](self)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if "_parameters" in tables:
            self._changes(name, value)
        if isinstance(value, (Parameter, Module)) and "_parameters" not in tables:
            kind = "parameters" if isinstance(value, Parameter) else "module"
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if isinstance(value, Parameter):
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget(name)
            tables["_modules"][name] = value
        elif isinstance(value, Buffer) and "_buffers" in tables:
            self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif (compiled := _module_in(value)) is not None:
            # Calls go through what was compiled; parameters and state are those of the module in it.
            self._forget(name)
            tables["_modules"][name] = compiled
            tables[name] = value
        else:
            self._set_plain(name, value)

    def _changes(self, name: str, value: Any = MISSING) -> None:
        """An attribute is about to change: recordings that met this module are looked at again."""
        old = self.__dict__.get(name, MISSING)
        for table in TABLES:
            old = self.__dict__[table].get(name, old)
        if value is not MISSING and (old is value or (isinstance(value, (bool, int, str)) and type(old) is type(value) and old == value)):
            return
        REARRANGED.count += 1
        if STATE.trace is not None and id(self) not in STATE.trace.modules_made:
            raise Untraceable(
                f"attribute '{name}' of {type(self).__name__} is assigned. Write in place (copy_, add_ ...): that is part of a program"
            )

    def _set_plain(self, name: str, value: Any) -> None:
        """Sets what is no parameter, module or buffer by its own type."""
        for table, kind in zip(TABLES, ("parameter", "buffer", "child module"), strict=True):
            found = self.__dict__.get(table)
            if found is not None and name in found:
                if value is not None and not (table == "_buffers" and isinstance(value, Tensor)):
                    wanted = {"parameter": "tpc.nn.Parameter", "buffer": "tpc.Tensor", "child module": "tpc.nn.Module"}[kind]
                    raise TypeError(f"cannot assign '{type(value).__name__}' object to {kind} '{name}' ({wanted} or None expected)")
                found[name] = value
                return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._changes(name)
        for table in TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self.__dict__.pop(name, None)
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def _forget(self, name: str) -> None:
        """Makes room for another attribute of that name."""
        self.__dict__.pop(name, None)
        for table in TABLES:
            self.__dict__[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def _check_name(self, kind: str, name: Any, table: Mapping[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and (name in self.__dict__ or any(name in self.__dict__[t] for t in TABLES) or hasattr(type(self), name)):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Makes `param` (or None, a place for one) the attribute `name`."""
        self._check_name("parameter", name, self.__dict__.get("_parameters", {}))
        self._changes(name, param)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}' (tpc.nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express '{name}' as "
                "a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Makes a tensor that is no parameter the attribute `name`; a persistent one is part of the state."""
        self._check_name("buffer", name, self.__dict__.get("_buffers", {}))
        self._changes(name, tensor)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (tpc.Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Makes a module the attribute `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name("module", name, self.__dict__.get("_modules", {}))
        self._changes(name, module)
        self._modules[name] = module

    add_module = register_module

    def compute_attribute(self, name: str, compute: Callable[[Any], Any] | None) -> None:
        """Makes the attribute `name`, which is none otherwise, the result of `compute(module)`, anew at each use; None ends that."""
        REARRANGED.count += 1
        held = {k: v for k, v in self.__dict__.get("_computed", {}).items() if k != name}
        self.__dict__["_computed"] = held if compute is None else {**held, name: compute}

    # --- calls ---

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is not None:
            STATE.trace.modules[id(self)] = self
        elif (compiled := self.__dict__.get("_compiled_call")) is not None:
            return compiled.run(*args, **kwargs)
        return self._called(*args, **kwargs)

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        """Runs forward between the hooks, those of all modules first."""
        own = self.__dict__
        if not (any(EVERY.values()) or any([own[kind] for kind in EVERY])):
            return self.forward(*args, **kwargs)
        pre, post, back_pre, back = ([*hooks.values(), *own[kind].values()] for kind, hooks in EVERY.items())
        for hook in pre:
            args, kwargs = hook(self, args, kwargs)
        watch = None
        if back or back_pre:
            watch = BackwardWatch(self, back_pre, back)
            args = watch.inputs_of(args)
        try:
            result = self.forward(*args, **kwargs)
        except BaseException:
            for hook in post:
                if hook.always:
                    hook(self, args, kwargs, None)
            raise
        for hook in post:
            result = hook(self, args, kwargs, result)
        return result if watch is None else watch.outputs_of(result)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles calls of this module, in place; the arguments are those of `tpc.compile`."""
        self.__dict__["_compiled_call"] = CompiledCall(self._called, args, kwargs)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> HookHandle:
        """`hook(module, args)` runs before forward; what it returns, if anything, are the arguments."""
        return added(self._forward_pre_hooks, before_forward(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookHandle:
        """`hook(module, args, output)` runs after forward; what it returns, if anything, is the output."""
        return added(self._forward_hooks, after_forward(hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """`hook(module, grad_input, grad_output)` runs when the gradients of the inputs are there, and may return others."""
        return added(self._backward_hooks, hook, prepend)

    register_backward_hook = register_full_backward_hook

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        """`hook(module, grad_output)` runs when the gradients of the outputs are there, and may return others."""
        return added(self._backward_pre_hooks, hook, prepend)

    # --- state ---

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by path; they share memory with the module."""
        return state.gather(self, *args, destination=destination, prefix=prefix, keep_vars=keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> state.IncompatibleKeys:
        """Copies values into parameters and buffers (or, with `assign`, puts the tensors in their place).

        `RuntimeError` where shapes differ and, if `strict`, where names do; then nothing has changed.
        """
        return state.load(self, state_dict, strict, assign)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(module, prefix, keep_vars)` runs before the state is gathered."""
        return self._state_dict_pre_hooks.add(hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(module, state_dict, prefix, local_metadata)` may change the state in place."""
        return self._state_dict_hooks.add(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` runs before loading."""
        return self._load_state_dict_pre_hooks.add(hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """`hook(module, incompatible_keys)` may change the lists of names in place."""
        return self._load_state_dict_post_hooks.add(hook)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        state.load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self) -> Any:
        """More to be saved with the state; `set_extra_state` takes it back. Overridden by modules that have some."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what `get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # --- text ---

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = [line for line in self.extra_repr().split("\n") if line]
        children = [f"({name}): " + _indented(repr(module)) for name, module in self._modules.items()]
        if not children and len(extra) < 2:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*extra, *children]) + "\n)"


class CompiledCall:
    """What `Module.compile` made. It belongs to one module: a copy of that runs as it is written."""

    def __init__(self, called: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from tpc.compile import compile

        self.run = compile(called, *args, **kwargs)

    def __reduce__(self) -> Any:
        return type(None), ()


def _module_in(value: Any) -> Module | None:
    """The module that was compiled."""
    from tpc.compile import Compiled

    return value.function if isinstance(value, Compiled) and isinstance(value.function, Module) else None


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
