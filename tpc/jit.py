"""`tpc.jit`: the decorators of TorchScript, which leave functions as they are; `tpc.compile` is what compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """The function, class or module itself."""
    return obj


def unused(fn: Any) -> Any:
    """The function itself."""
    return fn


script_method = export = interface = unused


def ignore(drop: Any = False, **options: Any) -> Any:
    """The function itself; `ignore(drop=True)` is a decorator too."""
    return drop if callable(drop) else unused


def trace(func: Callable[..., Any], example_inputs: Any = None, **options: Any) -> Callable[..., Any]:
    """The function, compiled: it is recorded when it is first called."""
    from tpc.compile import compile

    compiled: Callable[..., Any] = compile(func)
    return compiled


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """Whether the calling code is being recorded by `compile`."""
    from tpc.state import STATE

    return STATE.trace is not None


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


__all__ = ["annotate", "export", "ignore", "interface", "is_scripting", "is_tracing", "script", "script_method", "trace", "unused"]
