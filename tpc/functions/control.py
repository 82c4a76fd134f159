"""Control flow as a part of programs: `cond`, `while_loop` and `scan`, with the arguments that they have in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpc.autograd.control import Call, run
from tpc.bodies import Function, closed, record_body
from tpc.functions.dims import one_dim
from tpc.functions.factories import as_tensor
from tpc.functions.shape import movedim, reshape
from tpc.ir.opdef import OpDef
from tpc.ir.ops import control as ops
from tpc.ir.types import TensorType, tensor_type
from tpc.record import cast
from tpc.tensor import Tensor
from tpc.tree import LEAF, flatten, unflatten


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`: both are recorded, one is run.

    `pred` is a tensor of one element, or a Python value, which decides at once. `operands` is a tuple or list of tensors and containers of
    tensors; the branches may use tensors from outside as well. They return containers of tensors of the same structure, shapes and dtypes,
    and write nothing in place. Under vmap with a batched `pred` both branches run. `RuntimeError` for other arguments and results.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(pred, Tensor | bool | int | float | np.generic):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    given, structure = flatten(operands)
    if not isinstance(operands, tuple | list) or not all(isinstance(t, Tensor) for t in given):
        raise RuntimeError(
            f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}."
        )
    if not isinstance(pred, Tensor):
        return true_fn(*operands) if pred else false_fn(*operands)
    if pred._type.numel != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    predicate = cast(reshape(pred, ()), "bool")
    branches = [_Flat(fn, name, structure) for fn, name in ((true_fn, "true_fn"), (false_fn, "false_fn"))]
    call, inputs = _prepared(ops.cond, branches, given, [t._type for t in given], {})
    true, false = branches
    if true.structure != false.structure:
        raise RuntimeError(f"Unmatched output structure from tpc.cond branches: {true.structure} and {false.structure}")
    for i, (a, b) in enumerate(zip(true.types, false.types, strict=True)):
        if a.dtype != b.dtype:
            raise RuntimeError(f"When merging two branches' output in tpc.cond, expected same dtype but got {a.dtype} and {b.dtype}.")
        if a.shape != b.shape:
            raise RuntimeError(
                f"cond: output {i} of true_fn has shape {list(a.shape)}, that of false_fn {list(b.shape)}: shapes of programs are fixed"
            )
    if not true.types:
        return true.result([])
    return true.result(run(call, [predicate, *inputs]))


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Replaces `carried_inputs` by `body_fn(*carried_inputs)` as long as `cond_fn(*carried_inputs)` holds; returns the last ones.

    `carried_inputs` is a tuple or list of tensors, numbers and containers of them; `body_fn` returns the same structure, shapes and
    dtypes, `cond_fn` a tensor of one bool. Numbers become 0-d tensors. A loop has no reverse mode, as the number of rounds is not known
    when backward is recorded: use `scan`. Under vmap the loop goes on as long as some sample's condition holds. `RuntimeError` for other
    arguments and results.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of possibly nested dict/list/tuple of tensors, but got {carried_inputs}")
    leaves, structure = flatten(carried_inputs)
    if not leaves or not all(isinstance(t, Tensor | bool | int | float) for t in leaves):
        raise RuntimeError(
            f"carried_inputs must be a tuple of possibly nested dict/list/tuple of tensors or ints, but got {carried_inputs}"
        )
    given = [t if isinstance(t, Tensor) else as_tensor(t) for t in leaves]
    types = [t._type for t in given]
    condition, body = _Flat(cond_fn, "cond_fn", structure, _truth), _Flat(body_fn, "body_fn", structure)
    call, inputs = _prepared(ops.while_loop, [condition, body], given, types, {"carried": len(given)})
    _check_carried("body_fn_output and carried_inputs", structure, types, body.structure, body.types)
    results = list(run(call, inputs))
    return results[0] if body.structure == LEAF else unflatten(structure, results)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False, length: int | None = None
) -> tuple[Any, Any]:
    """`carry, y = combine_fn(carry, x)` for each element `x` of `xs` along `dim`, starting from `init`; returns the last carry and all `y`.

    `init`, `xs` and `y` are tensors or containers of them; the `y` are stacked along dimension `dim`, each at the place of its `x`. With
    `reverse` the last element comes first. `length` says how many steps there are where `xs` is empty (`()` or None). Differentiable:
    backward runs the steps the other way round, from what each was given. `RuntimeError` where `combine_fn` returns a carry of another
    structure, shape or dtype, and for other arguments.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    first, init_structure = flatten(init)
    scanned, xs_structure = flatten(() if xs is None else xs)
    if not first:
        raise RuntimeError("scan() operator requires init leaves.")
    for t in first:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"All init leaves must be a Tensor but got {t}")
    for t in scanned:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"All xs leaves must be a Tensor but got {t}")
        if t._type.rank == 0:
            raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    scanned = [movedim(t, d, 0) if (d := one_dim(dim, t._type.rank)) else t for t in scanned]
    steps = _length(scanned, length)
    types = [t._type for t in first] + [tensor_type(t._type.dtype, t._type.shape[1:]) for t in scanned]
    n = len(first)

    def step(*flat: Tensor) -> Any:
        got = combine_fn(unflatten(init_structure, flat[:n]), None if xs is None else unflatten(xs_structure, flat[n:]))
        if not isinstance(got, tuple | list) or len(got) != 2:
            raise RuntimeError(f"scan: combine_fn returns (carry, y), not {_shown(got)}")
        return tuple(got)

    body = _Flat(step, "combine_fn", None)
    attrs = {"carried": n, "scanned": len(scanned), "length": steps, "reverse": reverse}
    call, inputs = _prepared(ops.scan, [body], [*first, *scanned], types, attrs)
    carry_structure, y_structure = body.structure[1]
    returned = len(flatten(unflatten(carry_structure, range(len(body.types))))[0])
    _check_carried("init and carry", init_structure, types[:n], carry_structure, body.types[:returned])
    results = list(run(call, inputs))
    ys = [movedim(t, 0, dim) if dim % t._type.rank else t for t in results[n:]]
    return unflatten(init_structure, results[:n]), unflatten(y_structure, ys)


def _length(scanned: Sequence[Tensor], length: int | None) -> int:
    sizes = {t._type.shape[0] for t in scanned} | ({length} if length is not None else set())
    if len(sizes) > 1:
        raise RuntimeError(f"scan: all xs leaves must have the same number of elements along the scan dimension, got {sorted(sizes)}")
    return sizes.pop() if sizes else 0


class _Flat:
    """A user's function of containers as one of tensors; knows after its first run what it returns."""

    def __init__(self, function: Callable[..., Any], what: str, structure: Any, check: Callable[[Any], Any] = lambda got: got) -> None:
        self.function, self.what, self.inputs, self.check = function, what, structure, check
        self.structure: Any = None
        self.types: list[TensorType] = []

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        arguments = tensors if self.inputs is None else unflatten(self.inputs, tensors)
        found, self.structure = flatten(self.check(self.function(*arguments)))
        for x in found:
            if not isinstance(x, Tensor | bool | int | float):
                raise RuntimeError(f"{self.what} must return tensors and containers of tensors, but returned {_shown(x)}")
        made = [x if isinstance(x, Tensor) else as_tensor(x) for x in found]
        self.types = [t._type for t in made]
        return made

    def result(self, tensors: Sequence[Tensor]) -> Any:
        return unflatten(self.structure, list(tensors))


def _prepared(
    defn: OpDef, functions: Sequence[_Flat], given: Sequence[Tensor], types: Sequence[TensorType], attrs: dict[str, Any]
) -> tuple[Call, list[Tensor]]:
    """The call of functions that close over nothing, and its operands: those given and what the functions closed over."""
    lifted: dict[int, Tensor] = {}
    for function in functions:
        _, found = record_body(function.what, function, types, [False] * len(types))
        lifted |= {id(t): t for t in found}
    outer = list(lifted.values())
    made: tuple[Function, ...] = tuple(closed(f, len(given), outer) for f in functions)
    return Call(defn, made, attrs), [*given, *outer]


def _truth(got: Any) -> Tensor:
    if isinstance(got, bool):
        return as_tensor(got)
    if not isinstance(got, Tensor):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {_shown(got)}")
    if got._type.dtype != "bool" or got._type.numel != 1:
        raise RuntimeError(f"Expected cond_fn to return a scalar tensor or a bool but got {_shown(got)}")
    return reshape(got, ())


def _check_carried(what: str, structure: Any, types: Sequence[TensorType], got_structure: Any, got: Sequence[TensorType]) -> None:
    if len(types) != len(got):
        raise RuntimeError(f"Expected {what} to have same number of outputs but got {len(got)} and {len(types)}")
    for i, (a, b) in enumerate(zip(types, got, strict=True)):
        if a != b:
            kind = f"dtype: {a.dtype} vs {b.dtype}" if a.dtype != b.dtype else f"shape: {list(a.shape)} vs {list(b.shape)}"
            raise RuntimeError(f"Expected {what} to have same metadata but found: pair[{i}] differ in '{kind}'")
    if _loose(structure) not in (_loose(got_structure), (got_structure,)):
        raise RuntimeError(f"Expected {what} to have the same structure")


def _loose(structure: Any) -> Any:
    """A structure in which the outermost tuple may be a list."""
    return structure[1] if isinstance(structure, tuple) and structure[0] in (tuple, list) else structure


def _shown(x: Any) -> str:
    return str(x._type) if isinstance(x, Tensor) else f"{x!r:.60}"
