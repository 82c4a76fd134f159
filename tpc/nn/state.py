"""What a module saves and loads: parameters and persistent buffers by path."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tpc.autograd.grad_mode import no_grad
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor

if TYPE_CHECKING:
    from tpc.nn.module import Module

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Names that the state lacked, and names that the module has no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StateDict(OrderedDict[str, Any]):
    """Tensors by path, with the versions of the modules they come from."""

    _metadata: OrderedDict[str, dict[str, Any]]


def _has_extra(module: Module) -> bool:
    from tpc.nn.module import Module

    return type(module).get_extra_state is not Module.get_extra_state


def gather(module: Module, *args: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """The state of a module and all below it."""
    for name, value in zip(("destination", "prefix", "keep_vars"), args, strict=False):
        if name == "destination":
            destination = value
        elif name == "prefix":
            prefix = value
        else:
            keep_vars = value
    if destination is None:
        destination = StateDict()
        destination._metadata = OrderedDict()
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = {"version": module._version}
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values():
        if hook(module, destination, prefix, {"version": module._version}) is not None:
            raise RuntimeError("state_dict post-hook must return None")
    return destination


def _own(module: Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers of the module itself."""
    buffers = {k: b for k, b in module._buffers.items() if k not in module._non_persistent_buffers_set}
    return {k: t for k, t in {**module._parameters, **buffers}.items() if t is not None}


def save_own(module: Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Enters what belongs to the module itself."""
    for name, tensor in _own(module).items():
        destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if _has_extra(module):
        destination[prefix + EXTRA] = module.get_extra_state()


def load(module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Loads a module and all below it; what is to be copied is gathered first, so that an error changes nothing."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    versions = getattr(state_dict, "_metadata", {})
    given = OrderedDict(state_dict)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    changes: list[Any] = []

    def visit(module: Module, prefix: str) -> None:
        metadata = {**versions.get(prefix[:-1], {}), "assign_to_params_buffers": assign, "changes": changes}
        for hook in module._load_state_dict_pre_hooks.values():
            hook(module, given, prefix, metadata, strict, missing, unexpected, errors)
        own = {k: v for k, v in given.items() if k.startswith(prefix)}
        module._load_from_state_dict(own, prefix, metadata, True, missing, unexpected, errors)
        for name, child in module._modules.items():
            if child is not None:
                visit(child, f"{prefix}{name}.")
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, IncompatibleKeys(missing, unexpected)) is not None:
                raise RuntimeError("a load_state_dict post-hook must return None; change the lists in place")

    visit(module, "")
    if strict and unexpected:
        errors.insert(0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in unexpected)))
    if strict and missing:
        errors.insert(0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{k}"' for k in missing)))
    if errors:
        raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(module).__name__, "\n\t".join(errors)))
    with no_grad():
        for change in changes:
            change()
    return IncompatibleKeys(missing, unexpected)


def load_own(
    module: Module, state_dict: Mapping[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str],
    unexpected_keys: list[str], error_msgs: list[str],
) -> None:  # fmt: skip
    """Looks for what belongs to the module itself, notes what does not fit, and what is to be copied."""
    changes = local_metadata.get("changes", [])
    assign = local_metadata.get("assign_to_params_buffers", False)
    own = _own(module)
    for name, tensor in own.items():
        key = prefix + name
        if key not in state_dict:
            missing_keys.append(key)
            continue
        value = state_dict[key]
        if not isinstance(value, Tensor):
            error_msgs.append(f'While copying the parameter named "{key}", expected a tensor from checkpoint but received {type(value)}')
        elif value.shape != tensor.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current model is "
                f"{tensor.shape}."
            )
        else:
            changes.append(_assigning(module, name, value) if assign else _copying(tensor, value))
    if _has_extra(module):
        if prefix + EXTRA in state_dict:
            extra = state_dict[prefix + EXTRA]
            changes.append(lambda: module.set_extra_state(extra))
        else:
            missing_keys.append(prefix + EXTRA)
    for key in state_dict:
        first, _, rest = key[len(prefix) :].partition(".")
        known = first in module._modules if rest else first in own or (first == EXTRA and _has_extra(module))
        if not known:
            unexpected_keys.append(key)


def _copying(tensor: Tensor, value: Tensor) -> Any:
    return lambda: tensor.copy_(value)


def _assigning(module: Module, name: str, value: Tensor) -> Any:
    def assign() -> None:
        if name in module._parameters:
            old = module._parameters[name]
            new = value if isinstance(value, Parameter) else Parameter(value, requires_grad=old is not None and old.requires_grad)
            setattr(module, name, new)
        else:
            setattr(module, name, value)

    return assign
