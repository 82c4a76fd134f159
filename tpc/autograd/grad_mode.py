"""Context managers and decorators that switch recording for backward."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tpc.state import STATE


def is_grad_enabled() -> bool:
    """Whether operations are recorded for backward in this thread."""
    return STATE.grad_enabled


class Switch:
    """A context manager that is also a decorator of functions and generators."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> Switch:
        return type(self)()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return switched

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            running = function(*args, **kwargs)
            sent = None
            while True:
                try:
                    with self.clone():
                        item = running.send(sent)
                except StopIteration as stop:
                    return stop.value
                sent = yield item

        return switched


class set_grad_enabled(Switch):  # noqa: N801 - PyTorch's spelling
    """Switches recording on or off: at once when called as a function, for a block as a context manager."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.outer = STATE.grad_enabled
        STATE.grad_enabled = self.mode

    def __enter__(self) -> None:
        STATE.grad_enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        STATE.grad_enabled = self.outer

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        STATE.grad_enabled = self.outer
        return super().__call__(function)


class _Fixed(Switch):
    mode: bool

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.outer: list[bool] = []

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        if function is not None:
            made.outer = []
            return made(function)
        return made

    def __enter__(self) -> None:
        self.outer.append(STATE.grad_enabled)
        STATE.grad_enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        STATE.grad_enabled = self.outer.pop()


class no_grad(_Fixed):  # noqa: N801 - PyTorch's spelling
    """Nothing inside is recorded for backward. Use as a block, or as a decorator with or without brackets."""

    mode = False


class enable_grad(_Fixed):  # noqa: N801 - PyTorch's spelling
    """What is inside is recorded for backward, also within `no_grad`."""

    mode = True


class inference_mode(Switch):  # noqa: N801 - PyTorch's spelling
    """Nothing inside is recorded for backward, and what is made inside never can be."""

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        self.mode = bool(mode)
        self.outer: list[tuple[bool, bool]] = []

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return super().__new__(cls)

    def __enter__(self) -> None:
        self.outer.append((STATE.grad_enabled, STATE.inference))
        STATE.grad_enabled, STATE.inference = not self.mode, self.mode

    def __exit__(self, *exc: object) -> None:
        STATE.grad_enabled, STATE.inference = self.outer.pop()

    def clone(self) -> inference_mode:
        made: inference_mode = inference_mode(self.mode)
        return made


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return STATE.inference
