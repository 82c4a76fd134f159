"""`Function`: custom operations with a backward of their own, in both styles."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tpc.autograd.application import apply
from tpc.autograd.function_node import FunctionNode
from tpc.autograd.grad_mode import no_grad
from tpc.autograd.node import Node
from tpc.tensor import Tensor

FunctionCtx = FunctionNode


class FunctionMeta(type):
    """Prepares each subclass's node class: `Swish` gets `SwishBackward`."""

    _backward_cls: type[FunctionNode]

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(name + "Backward", (FunctionNode,), {"_forward_cls": cls, "__module__": cls.__module__})

    @property
    def name(cls) -> str:
        """Name of the nodes that this Function makes."""
        return cls._backward_cls.__name__

    _node_name = name


class Function(metaclass=FunctionMeta):
    """Subclass it with static methods `forward` and `backward`, then call `apply`.

    `forward(ctx, *args)` computes and saves; or `forward(*args)` computes and `setup_context(ctx, inputs, output)` saves.
    `backward(ctx, *grads)` returns one gradient (or None) for each argument of forward.
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    """Whether the first read of `ctx.saved_tensors` also frees them."""
    boxed_grads_call = False
    """Whether backward gets one list of gradients, which it may empty, instead of one argument each."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
            "class itself. Instantiating an autograd function will raise an error in a future version of tpc.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static "
            "forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward on the arguments and records the result for backward.

        Raises `NotImplementedError` without a forward, `TypeError` where the arguments do not fit it.
        """
        return apply(cls, args, kwargs)


class InplaceFunction(Function):
    """A Function that may write its inputs; it says so with `ctx.mark_dirty`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept so that old code imports; it cannot be used."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("NestedIOFunction is legacy and unsupported: pass containers to an ordinary Function instead.")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward that cannot itself be differentiated: it runs unrecorded, and a second derivative raises."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grads)
        from tpc.state import STATE

        if not STATE.grad_enabled or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        spread = results if isinstance(results, tuple) else (results,)
        refusing = [_refusing(r) if isinstance(r, Tensor) else r for r in spread]
        return tuple(refusing) if isinstance(results, tuple) else refusing[0]

    return wrapper


class _Once(Node):
    """Stands in a graph where a second derivative would go."""

    def _run(self, grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    def name(self) -> str:
        return "Error"


def _refusing(result: Tensor) -> Tensor:
    made = result.detach()
    made._node, made._slot = _Once((), (result._type,)), 0
    return made
