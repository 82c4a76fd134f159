"""`tpc.autograd.functional`: products with Jacobians and Hessians, and the matrices themselves, of functions of one or several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpc.autograd.backward import grad
from tpc.autograd.grad_mode import enable_grad
from tpc.func import derivatives
from tpc.functions.factories import ones_of, zeros_of
from tpc.functions.joining import stack
from tpc.tensor import Tensor


def _tuple(x: Any, what: str) -> tuple[tuple[Tensor, ...], bool]:
    single = isinstance(x, Tensor)
    spread = (x,) if single else tuple(x)
    for i, t in enumerate(spread):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"The {what} given to the function must be either a Tensor or a tuple of Tensors but the value at index {i} has type "
                f"{type(t)}."
            )
    return spread, single


class _Problem:
    """A function at a point: inputs that are tracked, and its outputs."""

    def __init__(self, func: Callable[..., Any], inputs: Any, create_graph: bool, name: str) -> None:
        self.name, self.create_graph = name, create_graph
        given, self.one_input = _tuple(inputs, "inputs")
        self.inputs = tuple(t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_() for t in given)
        self.outputs, self.one_output = _tuple(func(*self.inputs), "outputs of the user-provided function")

    def one(self, results: Sequence[Tensor], is_input: bool) -> Any:
        """A tuple, or the tensor itself where the user gave (or returned) one."""
        single = self.one_input if is_input else self.one_output
        return results[0] if single else tuple(results)

    def pulled(self, cotangents: Sequence[Tensor] | None, create_graph: bool, strict: bool = False) -> list[Tensor]:
        pairs = [(o, None if cotangents is None else cotangents[i]) for i, o in enumerate(self.outputs) if o.requires_grad]
        if strict and len(pairs) != len(self.outputs):
            raise RuntimeError(
                f"Output of the user-provided function is independent of the inputs. This is not allowed in strict mode ({self.name})."
            )
        if not pairs:
            return [zeros_of(t._type) for t in self.inputs]
        got = grad(
            [o for o, _ in pairs], self.inputs, [c for _, c in pairs], create_graph=create_graph, retain_graph=True, allow_unused=True
        )
        if strict and any(g is None for g in got):
            raise RuntimeError(
                f"Output of the user-provided function is independent of an input. This is not allowed in strict mode ({self.name})."
            )
        return [zeros_of(t._type) if g is None else g for g, t in zip(got, self.inputs, strict=True)]

    def value(self) -> Any:
        return self.one([o if self.create_graph else o.detach() for o in self.outputs], False)

    def final(self, results: Sequence[Tensor], is_input: bool) -> Any:
        return self.one([r if self.create_graph else r.detach() for r in results], is_input)


def _direction(v: Any, like: Sequence[Tensor], what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0]._type.numel != 1:
            raise RuntimeError(f"The vector v can only be None if the user-provided function {what} contains a single element.")
        return (ones_of(like[0]._type),)
    given, _ = _tuple(v, "v")
    if len(given) != len(like) or any(a._type.shape != b._type.shape for a, b in zip(given, like, strict=True)):
        raise RuntimeError(
            f"v has invalid size: should be {[list(t._type.shape) for t in like]} but got {[list(t._type.shape) for t in given]}."
        )
    return given


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(value, v^T J) by one backward pass."""
    with enable_grad():
        problem = _Problem(func, inputs, create_graph, "vjp")
        pulled = problem.pulled(_direction(v, problem.outputs, "returns"), create_graph, strict)
        return problem.value(), problem.final(pulled, True)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(value, J v) by two backward passes, so that functions without `jvp` have it too."""
    with enable_grad():
        problem = _Problem(func, inputs, create_graph, "jvp")
        direction = _direction(v, problem.inputs, "inputs")
        dummies = [zeros_of(o._type).requires_grad_() for o in problem.outputs]
        pulled = problem.pulled(dummies, True, strict)
        tracked = [(p, d) for p, d in zip(pulled, direction, strict=True) if p.requires_grad]
        got: Sequence[Tensor | None] = [None] * len(dummies)
        if tracked:
            got = grad([p for p, _ in tracked], dummies, [d for _, d in tracked], create_graph=create_graph, allow_unused=True)
        pushed = [zeros_of(o._type) if g is None else g for g, o in zip(got, problem.outputs, strict=True)]
        return problem.value(), problem.final(pushed, False)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for outputs and inputs that are tuples, a tuple of tuples of shape (*output, *input)."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            f'inputs, "forward-mode" tends to be more performant. Got {strategy}'
        )
    if strategy == "forward-mode":
        return _by_forward(func, inputs)
    with enable_grad():
        problem = _Problem(func, inputs, create_graph, "jacobian")
        rows = [_rows(problem, i, create_graph, strict) for i in range(len(problem.outputs))]
        return problem.one([problem.final(r, True) for r in rows], False)


def _by_forward(func: Callable[..., Any], inputs: Any) -> Any:
    given, single = _tuple(inputs, "inputs")
    found = derivatives.jacfwd(func, tuple(range(len(given))))(*given)
    if isinstance(found, tuple) and found and isinstance(found[0], tuple):
        return tuple(f[0] if single else f for f in found)
    return found[0] if single else found


def _rows(problem: _Problem, i: int, create_graph: bool, strict: bool) -> list[Tensor]:
    """Row by row: one backward pass per element of output i."""
    output = problem.outputs[i]
    if output._type.numel == 0 or not output.requires_grad:
        if strict:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )
        return [zeros_of(t._type._replace(shape=(*output._type.shape, *t._type.shape))) for t in problem.inputs]
    flat = output.reshape(-1)
    rows = []
    for k in range(output._type.numel):
        got = grad(flat[k], problem.inputs, create_graph=create_graph, retain_graph=True, allow_unused=True)
        if strict and any(g is None for g in got):
            raise RuntimeError(f"Output {i} of the user-provided function is independent of an input. This is not allowed in strict mode.")
        rows.append([zeros_of(t._type) if g is None else g for g, t in zip(got, problem.inputs, strict=True)])
    return [
        stack(column).reshape(*output._type.shape, *t._type.shape)
        for column, t in zip(zip(*rows, strict=True), problem.inputs, strict=True)
    ]


def _scalar(func: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*inputs: Any) -> Any:
        out = func(*inputs)
        if not isinstance(out, Tensor) or out._type.numel != 1:
            raise RuntimeError("The function given to hessian should return a single Tensor with a single element")
        return out.reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function that returns one element: for several inputs a tuple of tuples of blocks."""
    _, single = _tuple(inputs, "inputs")

    def gradient(*xs: Tensor) -> tuple[Tensor, ...]:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple(x.requires_grad_() for x in xs)  # or they would be detached, and lose their tangents
        problem = _Problem(_scalar(func), xs, True, "hessian")
        return tuple(problem.pulled(None, True, strict))

    found = jacobian(gradient, inputs, create_graph=create_graph, strict=strict, strategy=outer_jacobian_strategy)
    return found[0] if single else found


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(value, v^T H) by two backward passes."""
    with enable_grad():
        problem = _Problem(_scalar(func), inputs, create_graph, "vhp")
        direction = _direction(v, problem.inputs, "inputs")
        first = problem.pulled(None, True, strict)
        tracked = [(f, d) for f, d in zip(first, direction, strict=True) if f.requires_grad]
        got: Sequence[Tensor | None] = [None] * len(problem.inputs)
        if tracked:
            got = grad([f for f, _ in tracked], problem.inputs, [d for _, d in tracked], create_graph=create_graph, allow_unused=True)
        results = [zeros_of(t._type) if g is None else g for g, t in zip(got, problem.inputs, strict=True)]
        return problem.value(), problem.final(results, True)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """(value, H v): the Hessian is symmetric, so this is `vhp`."""
    return vhp(func, inputs, v, create_graph, strict)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
