"""What the tests of the contract share: three modes to run a function in, and short ways to write Functions and tensors.

A test named `test_NNN_...` holds item NNN of the contract; "Difference:" in its docstring states where tpc means to differ from PyTorch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import tpc


class Mode:
    """Runs functions in deferred mode; the modes below compile them first."""

    name = "deferred"

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` as this mode runs it, to be called several times."""
        return function

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """What `function` returns."""
        return self.compiled(function)(*args)

    def backward(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Calls `function`, back-propagates ones from every tracked tensor that it returns, and returns what it returned."""
        result = self.call(function, *args)
        back_propagate(result, **options)
        return result

    def gradients(self, function: Callable[..., Any], *args: Any, create_graph: bool = False) -> list[Any]:
        """Gradients, by `grad` from ones, of what `function` returns with respect to its tracked arguments; None where there is none."""
        return gradients_of(self.call(function, *args), args, create_graph)


class Compiled(Mode):
    """The function is compiled, and back-propagated outside."""

    name = "compiled"

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        call: Callable[..., Any] = tpc.compile(function, fullgraph=True)
        return call


class Joint(Compiled):
    """Forward and backward are compiled together."""

    name = "joint"

    def backward(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        def both(*args: Any) -> Any:
            result = function(*args)
            back_propagate(result, **options)
            return result

        return self.call(both, *args)

    def gradients(self, function: Callable[..., Any], *args: Any, create_graph: bool = False) -> list[Any]:
        return self.call(lambda *args: gradients_of(function(*args), args, create_graph), *args)


MODES = {mode.name: mode for mode in (Mode(), Compiled(), Joint())}


def _tracked(result: Any) -> list[Any]:
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    return [t for t in found if isinstance(t, tpc.Tensor) and t.requires_grad]


def back_propagate(result: Any, **options: Any) -> None:
    """`backward` from the tracked tensors of a result, with ones."""
    roots = _tracked(result)
    tpc.autograd.backward(roots, [tpc.ones_like(t) for t in roots], **options)


def gradients_of(result: Any, args: Any, create_graph: bool = False) -> list[Any]:
    """`grad` of the tracked tensors of a result, with ones, with respect to the tracked arguments."""
    roots = _tracked(result)
    return list(tpc.autograd.grad(roots, _tracked(args), [tpc.ones_like(t) for t in roots], create_graph=create_graph, allow_unused=True))


def leaf(*values: Any) -> Any:
    """A tensor of these values that requires grad."""
    return tpc.tensor(list(values), requires_grad=True)


def plain(*values: Any) -> Any:
    """A tensor of these values that does not."""
    return tpc.tensor(list(values))


def custom(name: str = "Custom", /, **members: Any) -> Any:
    """A Function with these members, static methods where they are functions."""
    body = {k: staticmethod(v) if callable(v) and not isinstance(v, type) else v for k, v in members.items()}
    return type(name, (tpc.autograd.Function,), copy.copy(body))


Double = custom("Double", forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)


class Square(tpc.autograd.Function):
    """x * x, with x saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


class Product(tpc.autograd.Function):
    """a * b, both saved."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a
