"""What `tpc check` calls a Function with: given types and literals, or arguments that its forward accepts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tpc.autograd.application import signature_of
from tpc.autograd.function import Function
from tpc.ir.types import TensorType, is_complex, is_differentiable
from tpc.tensor import Tensor, from_array
from tpc.trace import Spec, spec
from tpc.tree import flatten, unflatten

SHAPES: tuple[Sequence[str], ...] = (("f64[3,4]",), ("f64[4,4]",), ("f64[4]",), ("f64[]",), ("f64[2,3,4,4]",), ("f64[3,4]", "f64[4,5]"))
"""Types that are tried for parameters that say nothing of themselves; the last goes for all that follow."""
LITERALS: dict[Any, Any] = {int: 1, float: 0.5, bool: True, "int": 1, "float": 0.5, "bool": True}


def functions_of(module: Any) -> list[type[Function]]:
    """The Functions that a module defines, in the order of its lines."""
    found = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, Function) and x.__module__ == module.__name__]
    return list(dict.fromkeys(found))


def line_of(function: type[Function]) -> int:
    """The line of its class statement; 0 where Python does not know."""
    try:
        return inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return 0


def candidates(function: type[Function]) -> Iterator[tuple[Any, ...]]:
    """Arguments worth trying: parameters without default get tensors, or a literal where the annotation is int, float or bool."""
    parameters = signature_of(function.forward, function.setup_context is not Function.setup_context).parameters.values()
    wanted = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    tensors = [p for p in wanted if p.annotation not in LITERALS]
    for types in SHAPES:
        if len(types) > 1 and len(tensors) < len(types):
            continue
        specs = iter([spec(types[min(i, len(types) - 1)]) for i in range(len(tensors))])
        yield tuple(LITERALS[p.annotation] if p.annotation in LITERALS else next(specs) for p in wanted)


def concrete(args: Any, precise: bool) -> Any:
    """The arguments with a tensor for each spec, the same at every call; floating ones require grad, in double precision if asked."""
    leaves, structure = flatten(args)
    rng = np.random.default_rng(0)
    return unflatten(structure, [_tensor(x.type, rng, precise) if isinstance(x, Spec) else _fresh(x) for x in leaves])


def _fresh(x: Any) -> Any:
    return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x


def _tensor(type: TensorType, rng: np.random.Generator, precise: bool) -> Tensor:
    if not is_differentiable(type.dtype):
        # Zeros and ones are in range of whatever they may index.
        return from_array(rng.integers(0, 2, type.shape).astype(type.numpy_dtype))
    values = rng.standard_normal(type.shape)
    array = np.asarray(values + 1j * rng.standard_normal(type.shape) if is_complex(type.dtype) else values)
    wide = {"c": np.complex128, "f": np.float64}[array.dtype.kind]
    return from_array(array.astype(wide if precise else type.numpy_dtype)).requires_grad_()


def described(args: Sequence[Any]) -> str:
    """Arguments in one line."""
    return ", ".join([str(a) if isinstance(a, Spec) else str(a._type) if isinstance(a, Tensor) else repr(a) for a in args])
