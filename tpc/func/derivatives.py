"""Derivatives of functions: `grad`, `vjp`, `jvp` and the Jacobians built from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tpc.autograd.backward import grad as gradients
from tpc.autograd.forward_ad import enter_level, exit_level, make_dual, unpack_dual
from tpc.autograd.node import AccumulateGrad, Node
from tpc.batching.batched import Batched
from tpc.func.vmap import vmap
from tpc.functions.factories import eye, zeros_of
from tpc.functions.joining import split
from tpc.ir.ops import shape
from tpc.ir.types import is_differentiable
from tpc.record import view
from tpc.state import STATE
from tpc.tensor import Tensor
from tpc.tree import flatten, map_leaves, unflatten

Argnums = int | Sequence[int]


class _Recorded:
    """Runs a function on aliases of its inputs that are tracked, and afterwards cuts results off from those aliases alone."""

    def __init__(self) -> None:
        self.leaves: set[int] = set()
        self.kept: list[Tensor] = []

    def alias(self, t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        if not is_differentiable(t._type.dtype):
            raise RuntimeError(f"only Tensors of floating point and complex dtype can require gradients, but one has dtype {t.dtype}")
        if t._tracked():
            return view(t, shape.reshape, {"shape": t._type.shape})
        made = t._without_history()
        made.requires_grad_()
        self.leaves.add(id(made))
        self.kept.append(made)
        return made

    def cut(self, x: Any) -> Any:
        """The result without history, unless that leads to something other than the aliases."""
        if not isinstance(x, Tensor):
            return x
        if x._tangent is not None:
            x._tangent = {level: self.cut(t) for level, t in x._tangent.items()}
        if isinstance(x, Batched) and (physical := self.cut(x._physical)) is not x._physical:
            below, x = x, Batched(physical, x._level)
            x._node, x._slot, x._tangent = below._node, below._slot, below._tangent
        edge = x._edge()
        if edge is None or self._leads_out(edge[0]):
            return x
        return x._without_history()

    def _leads_out(self, root: Node) -> bool:
        seen = {root}
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, AccumulateGrad):
                if id(node.variable) not in self.leaves:
                    return True
            elif not node._edges:
                return True
            for edge in node._edges:
                if edge is not None and edge[0] not in seen:
                    seen.add(edge[0])
                    stack.append(edge[0])
        return False


class _recording:  # noqa: N801 - reads as a state
    def __enter__(self) -> None:
        self.outer, STATE.grad_enabled = STATE.grad_enabled, True

    def __exit__(self, *exc: object) -> None:
        STATE.grad_enabled = self.outer


def _chosen(argnums: Argnums, args: Sequence[Any]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    out = []
    for n in numbers:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise RuntimeError(f"argnum {n} is out of range for {len(args)} positional inputs")
        out.append(n % len(args))
    if len(set(out)) != len(out):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(out)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """(gradient, value) of a function that returns one scalar; with `has_aux` it returns (scalar, anything) and value is that pair."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        recorded = _Recorded()
        with _recording():
            inner = list(args)
            for n in numbers:
                inner[n] = map_leaves(recorded.alias, args[n])
            output = func(*inner, **kwargs)
            aux = None
            if has_aux:
                if not isinstance(output, tuple) or len(output) != 2:
                    raise RuntimeError("grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True")
                output, aux = output
            if not isinstance(output, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return tensor(s), got {type(output)} as output")
            if output._type.rank != 0:
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with {output._type.rank} "
                    "dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            wanted = tuple(inner[n] for n in numbers)
            found, structure = flatten(wanted if not isinstance(argnums, int) else wanted[0])
            got = _gradients([output], found, None)
        results = unflatten(structure, [recorded.cut(g) for g in got])
        value = recorded.cut(output)
        return results, (value, map_leaves(recorded.cut, aux)) if has_aux else value

    return wrapper


def _gradients(outputs: Sequence[Tensor], inputs: Sequence[Any], cotangents: Sequence[Tensor] | None) -> list[Tensor]:
    """Gradients that are recorded themselves; zeros where there are none."""
    pairs = [(o, None if cotangents is None else cotangents[i]) for i, o in enumerate(outputs) if o._edge() is not None]
    wanted = [t for t in inputs if isinstance(t, Tensor)]
    if not pairs:
        return [zeros_of(t._type) for t in wanted]
    got = gradients([o for o, _ in pairs], wanted, [c for _, c in pairs], create_graph=True, allow_unused=True)
    return [zeros_of(t._type) if g is None else g for g, t in zip(got, wanted, strict=True)]


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function that returns one scalar, with respect to its arguments `argnums`."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        results, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (results, value[1]) if has_aux else results

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(output, f) where `f(cotangents)` gives the gradients of the primals; with `has_aux` (output, f, aux)."""
    return _vjp(_Recorded(), func, primals, has_aux)


def _vjp(recorded: _Recorded, func: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> Any:
    with _recording():
        inner = [map_leaves(recorded.alias, p) for p in primals]
        output = func(*inner)
        aux = None
        if has_aux:
            output, aux = output
    outputs, structure = flatten(output)
    for o in outputs:
        if not isinstance(o, Tensor):
            raise RuntimeError(f"vjp(f, *primals): Expected f(*primals) to return tensor(s), got {type(o)} as output")

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        found, given_structure = flatten(given)
        if given_structure != structure and len(found) != len(outputs):
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function")
        with _recording():
            inputs, inputs_structure = flatten(inner if len(inner) > 1 else inner[0])
            got = _gradients(outputs, inputs, found)
        results = unflatten(inputs_structure, [recorded.cut(g) for g in got])
        return tuple(results) if len(inner) > 1 else (results,)

    value = unflatten(structure, [recorded.cut(o) for o in outputs])
    return (value, pull, map_leaves(recorded.cut, aux)) if has_aux else (value, pull)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(output, derivative of the output along `tangents`); with `has_aux` (output, derivative, aux)."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals). Got {type(primals)}"
        )
    flat, structure = flatten(primals)
    along, along_structure = flatten(tangents)
    if structure != along_structure:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure.")
    level = enter_level()
    try:
        output = func(*unflatten(structure, [make_dual(p, t, level=level) for p, t in zip(flat, along, strict=True)]))
        aux = None
        if has_aux:
            output, aux = output
            aux = map_leaves(lambda x: unpack_dual(x, level=level).primal if isinstance(x, Tensor) else x, aux)
        found, out_structure = flatten(output)
        pairs = [unpack_dual(o, level=level) for o in found]
    finally:
        exit_level(level)
    values = unflatten(out_structure, [p for p, _ in pairs])
    derivatives = unflatten(out_structure, [zeros_of(p._type) if t is None else t for p, t in pairs])
    return (values, derivatives, aux) if has_aux else (values, derivatives)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(output, f) where `f(*tangents)` is the derivative at the primals along the tangents."""
    output = func(*primals)
    return output, lambda *tangents: jvp(func, primals, tangents)[1]


# --- Jacobians ----------------------------------------------------------------------------------


def _basis(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Unit vectors of the joint space, as one batch for each tensor."""
    total = sum(t._type.numel for t in tensors)
    columns = split(eye(total, dtype=tensors[0].dtype), [t._type.numel for t in tensors], 1)
    return [c.to(t.dtype).reshape(total, *t._type.shape) for c, t in zip(columns, tensors, strict=True)]


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable[..., Any]:
    """The Jacobian by reverse mode: for each output and argument a tensor of shape (*output, *argument)."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        chosen = [args[n] for n in numbers]
        recorded = _Recorded()
        results = _vjp(recorded, lambda *xs: func(*_replaced(args, numbers, xs), **kwargs), chosen, has_aux)
        output, pull = results[0], results[1]
        outputs, structure = flatten(output)
        rows = vmap(lambda *c: pull(unflatten(structure, c)), chunk_size=chunk_size)(*_basis(outputs))
        inputs, input_structure = flatten(tuple(chosen))
        # The rows were cut off from the aliases as batches; what lies below the batch is cut off here.
        blocks = [split(recorded.cut(row), [o._type.numel for o in outputs], 0) for row in flatten(rows)[0]]
        jacobians = [
            unflatten(input_structure, [b[i].reshape(*o._type.shape, *x._type.shape) for b, x in zip(blocks, inputs, strict=True)])
            for i, o in enumerate(outputs)
        ]
        answer = unflatten(structure, [j[0] if isinstance(argnums, int) else j for j in jacobians])
        return (answer, results[2]) if has_aux else answer

    return wrapper


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """The Jacobian by forward mode: for each output and argument a tensor of shape (*output, *argument)."""

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        inputs, structure = flatten(tuple(args[n] for n in numbers))

        def push(*tangents: Any) -> Any:
            called = lambda *xs: func(*_replaced(args, numbers, unflatten(structure, xs)), **kwargs)  # noqa: E731
            return jvp(called, tuple(inputs), tangents, has_aux=has_aux)[1:]

        results = vmap(push, randomness=randomness)(*_basis(inputs))
        columns, out_structure = flatten(results[0])
        answers = []
        for column in columns:
            blocks = split(column.movedim(0, -1), [x._type.numel for x in inputs], -1)
            pieces = unflatten(structure, [b.reshape(*b._type.shape[:-1], *x._type.shape) for b, x in zip(blocks, inputs, strict=True)])
            answers.append(pieces[0] if isinstance(argnums, int) else pieces)
        answer = unflatten(out_structure, answers)
        return (answer, map_leaves(lambda x: x[0], results[1])) if has_aux else answer

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The matrix of second derivatives of a scalar function: forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def _replaced(args: Sequence[Any], numbers: Sequence[int], new: Sequence[Any]) -> list[Any]:
    out = list(args)
    for n, x in zip(numbers, new, strict=True):
        out[n] = x
    return out
