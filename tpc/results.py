"""What one compiled call gives back: tensors on the arrays that its program computed, and its effects on tensors from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tpc.autograd.node import Edge
from tpc.compiled_backward import BodyNode, SpentNode
from tpc.outcome import Made, Source, storage_of, tensor_of
from tpc.recording import NO_ATTRS, Recorded
from tpc.storage import Storage
from tpc.tensor import Tensor
from tpc.tree import unflatten

if TYPE_CHECKING:
    from tpc.compile import Variant


class Results:
    """The tensors of one call. Each `Made` is one tensor, however often it is asked for; those of one storage share memory."""

    def __init__(
        self, variant: Variant, outs: Sequence[np.ndarray], node: BodyNode | None, edges: Sequence[Edge | None], leaves: Sequence[Any]
    ) -> None:
        self.variant, self.outcome = variant, variant.outcome
        self.outs, self.node, self.edges, self.leaves = outs, node, edges, leaves
        self.storages: dict[int, Storage] = {}
        self.tensors: dict[int, Tensor] = {}

    def give(self) -> Any:
        """Applies the effects; the result of the call."""
        outcome = self.outcome
        # First of all, so that results which are views of these are of their new history.
        for source, moved in outcome.moved:
            owner = self._outside(source)
            owner._node, owner._slot = self._history(moved)
            owner._edits += 1
        results = [self.tensor(x) for x in outcome.results]
        for i, first in outcome.repeated:
            results[i] = results[first]
        for source, new in outcome.grads:
            self._outside(source)._grad = self.tensor(new)
        for source, flag in outcome.flags:
            self._outside(source)._leaf = flag
        if self.node is not None:
            self.node.made = self.storages
            self._join_leaves(self.node)
        return results[0] if self.variant.single else unflatten(outcome.structure, results)

    def _outside(self, source: Source) -> Tensor:
        owner = tensor_of(source, self.leaves)
        assert owner is not None
        return owner

    def tensor(self, x: Any) -> Any:
        """The tensor of a `Made` or a `Source`; anything else is a result as it is."""
        if x.__class__ is Source:
            return tensor_of(x, self.leaves)
        if x.__class__ is not Made:
            return x
        made = self.tensors.get(id(x))
        if made is None:
            made = self.tensors[id(x)] = self._on_outside_memory(x) if x.storage is not None else self._on_new_memory(x)
            if x.edge is not None:
                made._node, made._slot = self._history(x)
            elif x.leaf:
                made._leaf = True
            made._refusal = x.refusal
            if x.grad is not None:
                made._grad = self.tensor(x.grad)
        return made

    def _on_outside_memory(self, x: Made) -> Tensor:
        assert x.storage is not None
        views, base = x.views, self.tensor(x.base)
        if x.storage.kind == "arg" and x.storage.ref in self.variant.viewed:
            given = self.leaves[x.storage.ref]
            views, base = (*given._views, *views), given._base if base is not None and given._base is not None else base
        return Tensor(storage_of(x.storage, self.leaves), x.value.type, views, base)

    def _on_new_memory(self, x: Made) -> Tensor:
        storage = self.storages.get(x.output)
        if storage is None:
            type = self.outcome.outputs[x.output].type
            storage = self.storages[x.output] = Storage(Recorded(None, (), NO_ATTRS, type, 0, self.outs[x.output]))
            storage.inference = x.output in self.outcome.inference
        return Tensor(storage, x.value.type, x.views, self.tensor(x.base))

    def _history(self, x: Made) -> Edge:
        slot = self.variant.tracked.get(id(x))
        if slot is None or self.node is None:
            return SpentNode([e for e in self.edges if e is not None], (x.value.type,)), 0
        return self.node, slot

    def _join_leaves(self, node: BodyNode) -> None:
        """Gradients of leaves that the call itself made leave the node by edges that exist only now."""
        for i, x in self.variant.own_leaves:
            leaf = self.tensors.get(id(x))
            if leaf is not None:
                node._edges = (*node._edges[:i], (leaf._accumulator(), 0), *node._edges[i + 1 :])
