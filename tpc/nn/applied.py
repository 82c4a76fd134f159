"""Layers that are one function with settings: their class is made from the function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tpc.nn.module import Module
from tpc.tensor import Tensor


class Applied(Module):
    """A module whose forward is `FUNCTION(*inputs, **settings)`; settings that are tensors are buffers."""

    FUNCTION: Callable[..., Any]
    SETTINGS: inspect.Signature
    SHOWN = ""
    """What `repr` shows, with settings in braces."""
    TAKES_MODE = False
    """Whether the function asks if this is training."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        kwargs.pop("device", None)
        try:
            given = self.SETTINGS.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}{self.SETTINGS}: {error}") from None
        given.apply_defaults()
        for name, value in given.arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def settings(self) -> dict[str, Any]:
        """What the function is told beside its inputs."""
        mode = {"training": self.training} if self.TAKES_MODE else {}
        return {name: getattr(self, name) for name in self.SETTINGS.parameters} | mode

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return type(self).FUNCTION(*inputs, **named, **self.settings())

    def extra_repr(self) -> str:
        shown = self.SHOWN.format(**{name: getattr(self, name) for name in self.SETTINGS.parameters})
        if "inplace" in self.SETTINGS.parameters and "inplace" not in shown and self.inplace:  # type: ignore[attr-defined]
            shown += ", inplace=True" if shown else "inplace=True"
        return shown


def applied(
    name: str, function: Callable[..., Any], settings: str = "", shown: str = "", defaults: Mapping[str, Any] | None = None,
    kind: type[Applied] = Applied,
) -> Any:  # fmt: skip
    """The class of that name; `settings` are the parameters that its `__init__` takes, in order, by default as in the function."""
    known = inspect.signature(function).parameters
    defaults = defaults or {}
    parameters = [
        inspect.Parameter(s, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(s, known[s].default if s in known else None))
        for s in settings.split()
    ]
    members = {
        "__doc__": function.__doc__, "__module__": sys._getframe(1).f_globals["__name__"], "FUNCTION": staticmethod(function),
        "SETTINGS": inspect.Signature(parameters), "SHOWN": shown, "TAKES_MODE": "training" in known,
    }  # fmt: skip
    return type(name, (kind,), members)
