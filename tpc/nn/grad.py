"""`tpc.nn.grad`: gradients of convolutions with respect to input and weight, for users' backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpc.autograd.backward import grad
from tpc.autograd.grad_mode import enable_grad, is_grad_enabled
from tpc.functions.factories import zeros
from tpc.nn import functional as fn


def _gradient(convolved: Callable[[Any], Any], size: Sequence[int], grad_output: Any) -> Any:
    """What `grad_output` is taken back to: a convolution is linear in each argument, so that the place does not matter."""
    differentiable = is_grad_enabled()
    with enable_grad():
        place: Any = zeros(*size, dtype=grad_output.dtype, requires_grad=True)
        return grad(convolved(place), place, grad_output, create_graph=differentiable)[0]


def _for_input(conv: Callable[..., Any]) -> Callable[..., Any]:
    def found(
        input_size: Sequence[int], weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        """The gradient with respect to an input of `input_size`."""
        return _gradient(lambda x: conv(x, weight, None, stride, padding, dilation, groups), input_size, grad_output)

    return found


def _for_weight(conv: Callable[..., Any]) -> Callable[..., Any]:
    def found(
        input: Any, weight_size: Sequence[int], grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        """The gradient with respect to a weight of `weight_size`."""
        return _gradient(lambda w: conv(input, w, None, stride, padding, dilation, groups), weight_size, grad_output)

    return found


conv1d_input, conv2d_input, conv3d_input = (_for_input(conv) for conv in (fn.conv1d, fn.conv2d, fn.conv3d))
conv1d_weight, conv2d_weight, conv3d_weight = (_for_weight(conv) for conv in (fn.conv1d, fn.conv2d, fn.conv3d))

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
