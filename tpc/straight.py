"""The straight way through a compiled call: one function, written once, from the arguments to the results.

`compile.Variant` can do whatever a recording did to the world outside. Most recordings do little: they read tensors, write some of
them, set `.grad`, return new tensors. For those, every lookup that can be done once is done here, and a call runs a few
lines of generated Python. An outcome with anything else in it is left to `Variant`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tpc.autograd.node import Edge, hook_ids
from tpc.compiled_backward import SpentNode
from tpc.outcome import Made, Outcome, Source, tensor_of
from tpc.recording import NO_ATTRS, Recorded, leaf
from tpc.runtime.code import Code
from tpc.state import STATE
from tpc.storage import Storage
from tpc.strides import is_contiguous
from tpc.tensor import Tensor
from tpc.tree import LEAF, unflatten

if TYPE_CHECKING:
    from tpc.compile import Variant

MISS: Any = object()
"""What the function gives where the tensors do not stand as they stood when the variant was recorded."""

_DESCRIPTION = {
    "trace",
    "inputs",
    "sources",
    "outputs",
    "structure",
    "storage_source",
    "tensor_source",
    "sought",
    "met",
    "made",
    "inference",
}
_WRITTEN_OUT = {"results", "repeated", "writes", "touched", "grads", "watched", "plain", "grads_read"}


def straight(variant: Variant, leaves: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """The calls of a variant as one function of the leaves of the arguments; None where only `Variant` can make them."""
    outcome = variant.outcome
    if variant.viewed or variant.body.tracked or not _is_plain(outcome):
        return None
    return _Lines(variant, leaves).function()


def _is_plain(outcome: Outcome) -> bool:
    if any(getattr(outcome, f.name) for f in fields(outcome) if f.name not in _DESCRIPTION | _WRITTEN_OUT):
        return False
    made = [*outcome.results, *[new for _, new in outcome.grads]]
    if any(isinstance(x, Made) and (x.storage is not None or x.base is not None or x.grad is not None) for x in made):
        return False
    looked_at = [*[source for source, _, _ in outcome.watched], *[source for source, _ in outcome.grads_read]]
    return all(source.kind in ("arg", "outside") for source in looked_at)


class _Lines:
    def __init__(self, variant: Variant, leaves: Sequence[Any]) -> None:
        self.variant, self.outcome = variant, variant.outcome
        self.tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        self.code = Code(f"call of @{variant.body.name}", ["leaves"])
        self.code.shared.update(
            MISS=MISS, NO_ATTRS=NO_ATTRS, Recorded=Recorded, SpentNode=SpentNode, Storage=Storage, Tensor=Tensor,
            alias_pattern=alias_pattern, copyto=np.copyto, edges=edges, hook_ids=hook_ids, own=own, references=sys.getrefcount,
            unflatten=unflatten, program=variant.body.forward.run,
        )  # fmt: skip
        self.storages: list[str] = []
        """What the storages of the sources are called."""
        self.made: set[int] = set()
        """Outputs whose storage has been written out."""
        self.names: dict[int, str] = {}
        """What the tensors that the call makes are called, by the id of their `Made`."""
        if leaves:
            self.code.line(f"({', '.join(f'x{i}' for i in range(len(leaves)))},) = leaves")

    def function(self) -> Callable[[Sequence[Any]], Any]:
        self._fits()
        self._memory()
        arrays = "".join(f"a{n}, " for n in range(len(self.outcome.sources)))
        outs = "".join(f"o{n}, " for n in range(len(self.outcome.outputs)))
        self.code.line(f"({outs}) = program(({arrays}))")
        self._writes()
        self._results()
        return self.code.function({})

    def _tensor(self, source: Source) -> str:
        """An expression for the tensor of a source."""
        if source.kind == "arg":
            return f"x{source.ref}"
        if source.kind == "outside":
            return self.code.bind("t", source.ref)
        return f"{self._tensor(source.ref)}._grad"

    def _miss_if(self, condition: str) -> None:
        self.code.line(f"if {condition}: return MISS")

    def _fits(self) -> None:
        """What `Variant.fits` asks."""
        outcome, variant = self.outcome, self.variant
        if len(self.tensors) > 1:
            self._miss_if(f"alias_pattern(leaves) != {variant.aliases}")
        if variant.outside:
            outside = self.code.bind("f", variant.outside)
            for i in variant.free:
                self._miss_if(f"id(x{i}._storage) in {outside}")
        for i, tensor, storage in variant.bound:
            self._miss_if(f"x{i}._storage is not {self.code.bind('m', storage)}")
            if tensor is not None:
                self._miss_if(f"x{i} is not {self.code.bind('t', tensor)}")
        for tensor in outcome.plain:
            t = self.code.bind("t", tensor)
            self._miss_if(f"{t}._leaf or {t}._node is not None or ({t}._base is not None and {t}._tracked())")
        for source, is_leaf, hooks in outcome.watched:
            t = self._tensor(source)
            self._miss_if(f"{t}._node is {'not ' if is_leaf else ''}None or not ({t}._leaf and {t}._base is None or {t}._tracked())")
            if is_leaf:
                self._miss_if(f"hook_ids({t}) != {hooks}" if hooks else f"{t}.__dict__ and hook_ids({t})")
        for source, there in outcome.grads_read:
            self._miss_if(f"{self._tensor(source)}._grad is {'' if there else 'not '}None")

    def _memory(self) -> None:
        """The arrays of the sources as a0, a1 ...; those that the program overwrites are nobody else's."""
        donated = self.variant.body.donated()
        for n, source in enumerate(self.outcome.sources):
            s = self._storage(n, source)
            self.code.line(f"a{n} = {s}.value.data if {s}.shared is None else {s}.shared")
            self.code.line(f"if a{n} is None: a{n} = {s}.array()")
            if n in donated:
                held = f"references(a{n}) > {ARRAY_ALONE} or references({s}.value) > {VALUE_ALONE}"
                self.code.line(f"if {s}.shared is not None or {held} or not a{n}.flags.writeable: a{n} = own({s}, a{n})")

    def _storage(self, n: int, source: Source) -> str:
        """The name of the storage of source n."""
        if source.kind == "storage":
            s = self.code.bind("m", source.ref)
        else:
            s = f"s{n}"
            self.code.line(f"{s} = {self._tensor(source)}._storage")
        self.storages.append(s)
        return s

    def _writes(self) -> None:
        for n, count in self.outcome.touched:
            self.code.line(f"{self.storages[n]}.version += {count}")
        for output, n, count in self.outcome.writes:
            s = self.storages[n]
            self.code.line(f"if {s}.shared is not None: copyto({s}.shared, o{output})")
            self.code.line(f"elif o{output} is not a{n}: {s}.value = {self._value(output)}")
            self.code.line(f"{s}.version += {count}")

    def _value(self, output: int) -> str:
        return f"Recorded(None, (), NO_ATTRS, {self.code.bind('c', self.outcome.outputs[output].type)}, 0, o{output})"

    def _results(self) -> None:
        outcome = self.outcome
        results = [self._tensor_made(x) for x in outcome.results]
        for i, first in outcome.repeated:
            results[i] = results[first]
        for source, new in outcome.grads:
            self.code.line(f"{self._tensor(source)}._grad = {self._tensor_made(new)}")
        if outcome.structure == LEAF:
            self.code.line(f"return {results[0]}")
        elif outcome.structure == (tuple, (LEAF,) * len(results)):
            self.code.line(f"return ({''.join(f'{r}, ' for r in results)})")
        else:
            self.code.line(f"return unflatten({self.code.bind('f', outcome.structure)}, [{', '.join(results)}])")

    def _tensor_made(self, x: Any) -> str:
        """The name of a result; the lines that make it are written when it is first asked for."""
        if isinstance(x, Source):
            return self._tensor(x)
        if not isinstance(x, Made):
            return self.code.bind("c", x)
        name = self.names.get(id(x))
        if name is None:
            name = self.names[id(x)] = f"r{len(self.names)}"
            if x.output not in self.made:
                self.made.add(x.output)
                self.code.line(f"n{x.output} = Storage({self._value(x.output)})")
                is_inference = x.output in self.outcome.inference
                if is_inference != STATE.inference:
                    self.code.line(f"n{x.output}.inference = {is_inference}")
            type, views = self.code.bind("c", x.value.type), f", {self.code.bind('c', x.views)}" if x.views else ""
            self.code.line(f"{name} = Tensor(n{x.output}, {type}{views})")
            if x.edge is not None:
                self.code.line(f"{name}._node = SpentNode(edges({self.code.bind('f', self.variant.sought)}, leaves), ({type},))")
            elif x.leaf:
                self.code.line(f"{name}._leaf = True")
            if x.refusal is not None:
                self.code.line(f"{name}._refusal = {x.refusal!r}")
        return name


def edges(sought: Sequence[Source], leaves: Sequence[Any]) -> list[Edge]:
    """Where gradients of these tensors go."""
    tensors = [tensor_of(source, leaves) for source in sought]
    return [edge for t in tensors if t is not None and (edge := t._edge()) is not None]


def alias_pattern(leaves: Sequence[Any]) -> tuple[int, ...] | None:
    """For each tensor argument the first that has the same memory; None where all differ."""
    ids = [id(t._storage) for t in leaves if isinstance(t, Tensor) and not (t._views and is_contiguous(t))]
    if len(set(ids)) == len(ids):
        return None
    return tuple(ids.index(i) for i in ids)


def own(storage: Storage, array: np.ndarray) -> np.ndarray:
    """The content of a storage as an array that nobody else sees."""
    array = array.copy()
    if storage.shared is None:
        storage.value = leaf(array)
    return array


def _alone() -> tuple[int, int]:
    """Reference counts, as the generated lines see them, of an array and a value that only a storage holds."""
    code = Code("count", ["s0"])
    code.shared["references"] = sys.getrefcount
    code.line("a0 = s0.value.data")
    code.line("return references(a0), references(s0.value)")
    found: tuple[int, int] = code.function({})(Storage(leaf(np.empty(0))))
    return found


ARRAY_ALONE, VALUE_ALONE = _alone()
