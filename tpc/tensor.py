"""The tensor: a handle on a storage's current value, with its autograd history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from tpc.dtype import SCALAR_NAMES, can_cast
from tpc.ir.opdef import AttrValue, OpDef
from tpc.ir.types import TensorType, is_differentiable
from tpc.recording import Recorded, emit, leaf
from tpc.state import STATE, inside
from tpc.storage import REARRANGED, Alias, Storage
from tpc.typed import Typed
from tpc.writing import CUSTOM_VIEW, NO_GRAD_VIEW, base_was_written, move_retained, overlaps, rebase

if TYPE_CHECKING:
    from tpc.autograd.node import AccumulateGrad, Node


class View(NamedTuple):
    """One step of a view chain: the op that reads, and the op that writes through it (None: the view's inverse, a view again)."""

    defn: OpDef
    attrs: dict[str, AttrValue]
    type: TensorType


class Tensor(Typed):
    """An n-dimensional array of one dtype that records what is done to it.

    `_views` leads from the storage to this tensor. `_base` is the tensor that this one is a differentiable view of; its history
    is re-derived when the base's was rewritten (`_base_edits`). `_node`/`_slot` is the gradient edge, `_leaf` whether a leaf
    requires grad.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_accumulate",
        "_base",
        "_base_edits",
        "_edits",
        "_grad",
        "_leaf",
        "_node",
        "_read_from",
        "_read_value",
        "_refusal",
        "_slot",
        "_storage",
        "_tangent",
        "_trace",
        "_type",
        "_views",
    )

    def __init__(self, storage: Any = None, type: Any = None, views: Any = (), base: Any = None, *more: int) -> None:
        if type.__class__ is not TensorType:  # a user's Tensor(2, 3) or Tensor([1.0, 2.0])
            from tpc.functions.factories import legacy_tensor

            given = legacy_tensor(*[x for x in (storage, type, views, base, *more) if x is not None and (x.__class__ is not tuple or x)])
            storage, type, views, base = given._storage, given._type, given._views, None
        self._storage: Storage = storage
        self._type: TensorType = type
        self._views: tuple[View, ...] = views
        self._base: Tensor | None = base
        self._base_edits = base._edits if base is not None else 0
        self._edits: int = 0
        self._node: Node | None = None
        self._slot = 0
        self._leaf = False
        self._grad: Tensor | None = None
        self._accumulate: ref[AccumulateGrad] | None = None
        self._refusal: str | None = None
        """Why an in-place write to this view is an error (views made by Functions, under no_grad, by split)."""
        self._read_from: Recorded | None = None
        self._read_value: Recorded | None = None
        self._tangent: Any = None
        self._trace = STATE.trace
        """The trace that made this tensor (its memory may come from outside all the same)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the methods that tpc.methods attaches

    # --- value ---

    def _read(self) -> Recorded:
        """The current value, as a node of the graph that is being recorded."""
        value = self._storage.read()
        if not self._views:
            return value
        if self._read_from is value:
            return self._read_value  # type: ignore[return-value]
        first = value
        for view in self._views:
            value = emit(view.defn, (value,), view.attrs, view.type)
        self._read_from, self._read_value = first, value
        return value

    def _array(self) -> np.ndarray:
        """The current value as an array that nobody may write."""
        if STATE.trace is None and self._storage.trace is None:
            array = self._storage.array()
            for view in self._views:
                from tpc.runtime.kernels.registry import bind_view

                array = bind_view(view.defn, view.attrs, view.type)(array)
            return array
        from tpc.deferred import compute

        return compute(self._read())

    # --- history ---

    def _edge(self) -> tuple[Node, int] | None:
        """Where this tensor's gradient goes: (node, output number), or None where it needs none."""
        if self._base is not None and self._base_edits != self._base._edits:
            self._rederive()
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            return trace.edge(self)
        if self._node is not None:
            return self._node, self._slot
        if self._leaf:
            return self._accumulator(), 0
        return None

    def _accumulator(self) -> AccumulateGrad:
        node = self._accumulate() if self._accumulate is not None else None
        if node is None:
            from tpc.autograd.node import AccumulateGrad

            node = AccumulateGrad(self)
            self._accumulate = ref(node)
        return node

    def _rederive(self) -> None:
        """The base was written through some view: this view's history is now that of the base, seen through the chain."""
        from tpc.record import record_view

        base = self._base
        assert base is not None
        if self._refusal is not None and base._tracked():
            raise RuntimeError(base_was_written(self._refusal))
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            trace.remember(self, "_node", "_slot", "_base_edits")
        self._base_edits = base._edits
        moved: Tensor = base
        grad_enabled, STATE.grad_enabled = STATE.grad_enabled, True
        try:
            for view in self._views[len(base._views) :]:
                moved = record_view(moved, view)
        finally:
            STATE.grad_enabled = grad_enabled
        move_retained(self, moved._node, moved._slot)
        self._node, self._slot = moved._node, moved._slot

    def _tracked(self) -> bool:
        """Whether operations on this tensor are recorded for backward. A view made under no_grad counts like its base, though no gradient
        flows through it."""
        if self._base is not None:
            if self._base_edits != self._base._edits:
                self._rederive()
            if self._refusal is NO_GRAD_VIEW and self._base._tracked():
                return True
        return self._node is not None or self._leaf

    @property
    def requires_grad(self) -> bool:
        return self._tracked()

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise RuntimeError("requires_grad must be a bool")
        if self._tracked() and self._node is not None:
            hint = (
                " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{'' if value else hint}")
        if value and not is_differentiable(self._type.dtype):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if value and self._storage.inference and not STATE.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            trace.remember(self, "_leaf")
        if STATE.vmaps:
            self.__dict__["_depth"] = len(STATE.vmaps)
        self._leaf = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        if not requires_grad or self.grad_fn is None:
            self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        self._tracked()
        return self._node is None

    @property
    def grad_fn(self) -> Node | None:
        self._tracked()
        return self._node

    @property
    def output_nr(self) -> int:
        self._tracked()
        return self._slot

    @property
    def _version(self) -> int:
        if self._storage.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._storage.current_version()

    def _snapshot(self) -> Tensor:
        """Another tensor with the value and the history of this moment, that later writes do not reach."""
        if (within := inside(self)) is not self:
            return within._snapshot()  # type: ignore[no-any-return]
        if STATE.trace is not None:
            STATE.trace.look((self,))
        value = self._read()
        made = Tensor(Storage(value), self._type)
        edge = self._edge()
        if edge is not None:
            made._node, made._slot = edge
        self._copy_tangents(made)
        return made

    def _copy_tangents(self, made: Tensor) -> None:
        if self._tangent is not None and STATE.duals:
            made._tangent = {level: t._snapshot() for level, t in self._tangent.items()}

    def _take_history(self, node: Node | None, slot: int) -> None:
        """Makes this tensor output `slot` of `node`, or one without history."""
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            trace.remember(self, "_node", "_slot", "_leaf")
        move_retained(self, node, slot)
        self._node, self._slot, self._leaf = node, slot, False

    def _forget_history(self) -> None:
        """Makes this tensor a leaf that needs no gradient."""
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            trace.remember(self, "_edits")
        self._take_history(None, 0)
        self._edits += 1

    # --- writing ---

    def _refuse_write(self, new: Tensor) -> None:
        """Raises where PyTorch forbids writing this tensor in place."""
        if self._storage.inference and not STATE.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal tensor "
                "before doing inplace update."
            )
        if not STATE.grad_enabled:
            return
        if self._refusal is not None and (self._tracked() or new._tracked() or CUSTOM_VIEW in self._refusal):
            raise RuntimeError(self._refusal)
        if self._base is not None and self._tracked() and self._base.grad_fn is None and not self._leaf:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if self._leaf and self._node is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")

    def _write(self, new: Tensor, places: Tensor | None = None) -> Tensor:
        """Makes `new` (same shape) the content: the storage gets a new value, this tensor and its base the new history.

        Where several elements are one place in memory, `places` says which of them are written.
        """
        from tpc import transforming
        from tpc.record import cast, record_scatter

        if new._type.shape != self._type.shape:
            raise RuntimeError(f"output with shape {list(self._type.shape)} doesn't match the broadcast shape {list(new._type.shape)}")
        if new._type.dtype != self._type.dtype:
            if not can_cast(new._type.dtype, self._type.dtype):
                raise RuntimeError(
                    f"result type {SCALAR_NAMES[new._type.dtype]} can't be cast to the desired output type {SCALAR_NAMES[self._type.dtype]}"
                )
            new = cast(new, self._type.dtype)
        self._refuse_write(new)
        base = self._base if self._base is not None else self
        steps = self._views[len(base._views) :]
        if places is None and self._views and overlaps(self):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation."
            )
        content = record_scatter(base._snapshot(), steps, new, places) if steps else new
        base._store(content, places if base is self else None)
        rebase(base, content)
        if base is not self and STATE.grad_enabled:
            self._rederive()
        if STATE.transforming:
            transforming.written(self, new)
        return self

    def _store(self, content: Tensor, places: Tensor | None = None) -> None:
        """Gives the memory behind this base the value of `content`."""
        from tpc.record import record_scatter

        value = content._read()
        if self._views:
            whole = Tensor(Storage(self._storage.read()), self._storage.read().type)
            value = record_scatter(whole, self._views, content.detach(), places)._read()
        self._storage.write(value)

    # --- PyTorch's bookkeeping methods ---

    def detach(self) -> Tensor:
        """An alias without history."""
        if (within := inside(self)) is not self:
            return within.detach()  # type: ignore[no-any-return]
        if STATE.trace is not None:
            STATE.trace.look((self,))
        return Tensor(self._storage, self._type, self._views)

    def _without_history(self) -> Tensor:
        """An alias with its tangents and without the history of the tensor itself; what is below a batch keeps its own."""
        if STATE.trace is not None:
            STATE.trace.look((self,))
        made = Tensor(self._storage, self._type, self._views)
        made._tangent = self._tangent
        return made

    def _rearrange(self, other: Tensor) -> None:
        """Sees the memory that `other` sees, as it does."""
        self._storage, self._type, self._views = other._storage, other._type, other._views
        self._read_from = self._read_value = None
        REARRANGED.count += 1

    def _unversioned(self) -> Tensor:
        return Tensor(Alias(self._storage), self._type, self._views)

    @property
    def data(self) -> Tensor:
        return inside(self)._unversioned()  # type: ignore[no-any-return]

    @data.setter
    def data(self, other: Tensor) -> None:
        trace = STATE.trace
        if trace is not None:
            self._storage.write(other._read())
            return
        self._rearrange(other)

    def _get_grad(self) -> Tensor | None:
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            trace.grad_was_read(self)
        return self._grad

    @property
    def grad(self) -> Tensor | None:
        if self._node is not None and self._grad is None and "_retains" not in self.__dict__:
            import warnings

            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
                "during autograd.backward(). Use .retain_grad() on it if you want it to be.",
                UserWarning,
                stacklevel=2,
            )
        return self._get_grad()

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            from tpc.autograd.grad_dtype import check_assigned

            check_assigned(self, value)
        self._set_grad(value)

    def _set_grad(self, value: Tensor | None) -> None:
        trace = STATE.trace
        if trace is not None and self._trace is not trace:
            trace.remember(self, "_grad")
        self._grad = value


def from_recorded(value: Recorded) -> Tensor:
    """A new tensor, with memory of its own, on a recorded value."""
    return Tensor(Storage(value), value.type)


def from_array(array: np.ndarray) -> Tensor:
    """A new tensor on an array that nobody else will write."""
    return from_recorded(leaf(array))
