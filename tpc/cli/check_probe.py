"""One application of a Function under watch: what its forward marks, saves and writes, and what its backward returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tpc.autograd.backward import grad
from tpc.autograd.function import Function
from tpc.autograd.function_node import FunctionNode
from tpc.autograd.graph import saved_tensors_hooks
from tpc.functions.random import manual_seed
from tpc.tensor import Tensor, from_array
from tpc.tree import flatten, leaves, unflatten

_OWN = frozenset(FunctionNode().__dict__) | {"_loc", "_metadata"}


class Probe:
    """Applies `function` to `args`; `run` back-propagates."""

    dirty: tuple[Any, ...] = ()
    """What forward marked as written."""

    def __init__(self, function: type[Function], args: Sequence[Any], unpack: Callable[[int, Tensor], Tensor] | None = None) -> None:
        self.function = function
        self.packed: list[Tensor] = []
        self.unpack = unpack
        self.returned: list[tuple[Any, ...]] = []
        self.inputs = [x for x in leaves(list(args)) if isinstance(x, Tensor)]
        given, structure = flatten(list(args))
        self.given = unflatten(structure, [x.clone() if isinstance(x, Tensor) and x.requires_grad else x for x in given])
        """Not leaves, so that forward may write them."""
        self.slots = leaves(self.given)
        before = [x._storage.current_version() if isinstance(x, Tensor) else 0 for x in self.slots]
        manual_seed(0)
        with self._watched(), self._hooks():
            output = function.apply(*self.given)
        self.outputs = list(output) if isinstance(output, (tuple, list)) else [output]
        self.tracked = [o for o in self.outputs if isinstance(o, Tensor) and o.requires_grad]
        self.node: Any = next((o.grad_fn for o in self.tracked), None)
        marked = {id(t) for t in self.dirty}
        self.written = [
            i
            for i, x in enumerate(self.slots)
            if isinstance(x, Tensor) and x._storage.current_version() != before[i] and id(x) not in marked
        ]

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Notes the marks of forward, which the node forgets, for the time of the block."""
        name = "forward" if self.function.setup_context is Function.setup_context else "setup_context"
        original, own = getattr(self.function, name), self.function.__dict__.get(name)

        def watched(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(ctx, *args, **kwargs)
            self.dirty = ctx.dirty_tensors if isinstance(ctx.dirty_tensors, tuple) else ()
            return result

        with _replaced(self.function, name, watched, own):
            yield

    @contextmanager
    def _hooks(self) -> Iterator[None]:
        if self.unpack is None:
            yield
            return
        unpack = self.unpack

        def pack(t: Tensor) -> int:
            self.packed.append(t.detach().clone())
            return len(self.packed) - 1

        with saved_tensors_hooks(pack, lambda k: unpack(k, self.packed[k])):
            yield

    @property
    def saved(self) -> list[Any]:
        return [s for s in (self.node._raw_saved_tensors if self.node is not None else ()) if s is not None]

    @property
    def attributes(self) -> dict[str, list[Tensor]]:
        """Attributes of ctx that hold tensors."""
        own = self.node.__dict__ if self.node is not None else {}
        held = {name: [x for x in leaves([value]) if isinstance(x, Tensor)] for name, value in own.items() if name not in _OWN}
        return {name: tensors for name, tensors in held.items() if tensors}

    def seeds(self) -> list[Tensor]:
        rng = np.random.default_rng(1)
        return [from_array(rng.standard_normal(o._type.shape).astype(o._type.numpy_dtype)) for o in self.tracked]

    def run(self, seeds: Sequence[Tensor]) -> list[np.ndarray | None]:
        """Gradients of the tracked arguments; `returned` gets what backward gave."""
        name = "vjp" if self.function.vjp is not Function.vjp else "backward"
        original, own = getattr(self.function, name), self.function.__dict__.get(name)

        def watched(ctx: Any, *grads: Any) -> Any:
            result = original(ctx, *grads)
            self.returned.append(result if isinstance(result, tuple) else (result,))
            return result

        manual_seed(0)
        with _replaced(self.function, name, watched, own):
            wanted = [x for x in self.inputs if x.requires_grad]
            got = grad(self.tracked, wanted, list(seeds), retain_graph=True, allow_unused=True)
        return [None if g is None else np.array(g.detach()._array()) for g in got]


@contextmanager
def _replaced(function: type[Function], name: str, by: Any, own: Any) -> Iterator[None]:
    setattr(function, name, staticmethod(by))
    try:
        yield
    finally:
        if own is None:
            delattr(function, name)
        else:
            setattr(function, name, own)
