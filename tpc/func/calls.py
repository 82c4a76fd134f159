"""Calling a module with other parameters than its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpc.storage import REARRANGED


def functional_call(
    module: Any, parameters_and_buffers: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None, *, strict: bool = False
) -> Any:
    """Calls `module` with the tensors of a dictionary (or several) in place of its parameters and buffers of those names.

    `RuntimeError` for a name that the module does not have; with `strict`, also for one of the module's that is not given.
    """
    given: dict[str, Any] = {}
    for part in parameters_and_buffers if isinstance(parameters_and_buffers, (list, tuple)) else (parameters_and_buffers,):
        given.update(part)
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    unknown = sorted(set(given) - set(own))
    if unknown:
        raise RuntimeError(f"functional_call: {type(module).__name__} has no parameter or buffer {unknown[0]!r}")
    missing = sorted(set(own) - set(given))
    if strict and missing:
        raise RuntimeError(f"functional_call: no tensor is given for {missing[0]!r} of {type(module).__name__}")
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    places = [(_owner(module, name), name.rpartition(".")[2]) for name in given]
    before = [_swap(owner, name, value) for (owner, name), value in zip(places, given.values(), strict=True)]
    try:
        return module(*arguments, **(kwargs or {}))
    finally:
        for (owner, name), value in zip(places, before, strict=True):
            _swap(owner, name, value)


def _owner(module: Any, path: str) -> Any:
    for part in path.split(".")[:-1]:
        module = getattr(module, part)
    return module


def _swap(owner: Any, name: str, value: Any) -> Any:
    """Puts a tensor in place of a parameter or buffer; returns what was there."""
    table = owner._parameters if name in owner._parameters else owner._buffers
    old, table[name] = table[name], value
    REARRANGED.count += 1
    return old
