"""`Function.apply`: binding arguments, running forward unrecorded, giving its outputs their node."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from tpc.autograd.function_jvp import push_tangents
from tpc.autograd.function_node import FunctionNode, kept
from tpc.batching.function_rule import active_level, batched_forward
from tpc.recording import Scope, user_frame
from tpc.state import STATE
from tpc.tensor import Tensor
from tpc.tree import flatten, leaves, unflatten
from tpc.writing import CUSTOM_VIEW, NO_GRAD_VIEW, rebase


def apply(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `cls.forward` and makes its outputs results of a node of `cls`."""
    from tpc.autograd.function import Function

    split = cls.setup_context is not Function.setup_context
    if kwargs or split:
        args, kwargs = _bound(cls, split, args, kwargs)
    if STATE.trace is not None:
        found, structure = flatten(args)
        within = STATE.trace.inside(found)
        if within is not found:
            args = unflatten(structure, within)
    ctx: FunctionNode = cls._backward_cls()
    ctx._loc = STATE.loc or user_frame()
    slots = _slots(ctx, args)
    tensors = [t for t in slots if isinstance(t, Tensor)]
    if STATE.trace is not None and STATE.grad_enabled:
        STATE.trace.look(tensors)
    ctx.needs_input_grad = tuple([isinstance(t, Tensor) and t._tracked() for t in slots])
    ctx._slots = tuple([isinstance(t, Tensor) for t in slots])
    recorded = STATE.grad_enabled and any(ctx.needs_input_grad)
    level = active_level(tensors) if STATE.transforming else None
    output = _forward(cls, ctx, split, args, kwargs, level)
    outputs = list(output) if isinstance(output, (tuple, list)) else [output]
    # Edges are taken before outputs are re-labelled: a dirty input still has its old history here.
    edges = [t._edge() if recorded else None for t in tensors]
    wrapped = _Outputs(cls, ctx, tensors, outputs, recorded).wrap(edges)
    if split and (ctx.to_save or ctx.saved_for_forward):
        _refuse_returned_inputs(ctx, tensors, outputs)
    if recorded and ctx.to_save is not None:
        ctx._kept = kept(ctx, ctx.to_save, wrapped)
    if STATE.duals:
        push_tangents(cls, ctx, slots, outputs, wrapped, ctx.dirty_tensors or ())
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = None
    if isinstance(output, list):
        return wrapped
    return tuple(wrapped) if isinstance(output, tuple) else wrapped[0]


def _forward(cls: Any, ctx: FunctionNode, split: bool, args: tuple[Any, ...], kwargs: dict[str, Any], level: Any) -> Any:
    outer = STATE.grad_enabled, STATE.scope, STATE.loc, STATE.duals
    STATE.scope = Scope(cls.__name__, ctx._sequence, STATE.scope)
    STATE.loc = None
    try:
        if level is not None:
            # History and tangents below the level are followed there, by what stands for this call on physical tensors.
            output = batched_forward(cls, level, args)
        STATE.grad_enabled, STATE.duals = False, ()
        if not split:
            return cls.forward(ctx, *args, **kwargs)
        if level is None:
            output = cls.forward(*args, **kwargs)
            STATE.grad_enabled = False
        cls.setup_context(ctx, args, output)
        return output
    finally:
        STATE.grad_enabled, STATE.scope, STATE.loc, STATE.duals = outer


# --- arguments ----------------------------------------------------------------------------------


@cache
def signature_of(forward: Any, split: bool) -> inspect.Signature:
    """The parameters of a forward that calls of apply fill: without ctx."""
    signature = inspect.signature(forward)
    if split:
        return signature
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        parameters = parameters[1:]  # ctx
    return signature.replace(parameters=parameters)


def _bound(cls: Any, split: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments with keywords at their place (split style: defaults too); keyword-only ones stay keywords."""
    signature = signature_of(cls.forward, split)
    parameters = signature.parameters
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{cls.__name__}.forward: {error}") from None
    if split:
        bound.apply_defaults()
    else:
        _refuse_gap(cls, parameters, bound)
    return bound.args, bound.kwargs


def _refuse_gap(cls: Any, parameters: Any, bound: inspect.BoundArguments) -> None:
    """A keyword behind a parameter that was left out has no position to move to."""
    ordinary = [n for n, p in parameters.items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    given = [n for n in ordinary if n in bound.arguments]
    for expected, n in zip(ordinary, given, strict=False):
        if expected != n:
            raise TypeError(f"{cls.__name__}.forward: missing required argument '{expected}' before keyword '{n}'")


def _slots(ctx: FunctionNode, args: tuple[Any, ...]) -> list[Any]:
    """One slot per argument; a container that holds a tensor anywhere has one per leaf."""
    slots: list[Any] = []
    arguments: list[int | None] = []
    for arg in args:
        if isinstance(arg, (list, tuple, dict)):
            inside = leaves(arg)
            if any(isinstance(x, Tensor) for x in inside):
                slots.extend(inside)
                arguments.append(len(inside))
                continue
        slots.append(arg)
        arguments.append(None)
    ctx._arguments = tuple(arguments)
    return slots


# --- outputs ------------------------------------------------------------------------------------


class _Outputs:
    """What forward returned, on its way to being the results of `ctx`."""

    def __init__(self, cls: Any, ctx: FunctionNode, inputs: Sequence[Tensor], outputs: Sequence[Any], recorded: bool) -> None:
        self.cls, self.ctx, self.inputs, self.outputs, self.recorded = cls, ctx, inputs, outputs, recorded
        self.dirty = _tensors(ctx.dirty_tensors, "mark_dirty can only accept variables")
        marked = _tensors(ctx.non_differentiable, "mark_non_differentiable only accepts variable arguments")
        ctx._marked = frozenset(i for i, o in enumerate(outputs) if any(o is m for m in marked))
        ctx._metas = tuple([o._type if isinstance(o, Tensor) else None for o in outputs])  # type: ignore[misc]
        self.differentiable = [recorded and isinstance(o, Tensor) and ctx._tracks(i) for i, o in enumerate(outputs)]

    def wrap(self, edges: Sequence[Any]) -> list[Any]:
        if self.recorded:
            self.ctx._edges = tuple(edges)
            if STATE.vmaps:
                self.ctx._depth = max([e[0]._depth for e in edges if e is not None], default=0)
        self._check_dirty()
        return [self._one(i, o) if isinstance(o, Tensor) else o for i, o in enumerate(self.outputs)]

    def _one(self, slot: int, output: Tensor) -> Tensor:
        is_input = any(output is t for t in self.inputs)
        if is_input and any(output is d for d in self.dirty):
            return self._written(slot, output)
        if is_input:
            return self._alias(slot, output)
        if not self.differentiable[slot]:
            output._take_history(None, 0)
            return output
        output._take_history(self.ctx, slot)
        if output._base is not None:
            output._base_edits = output._base._edits
            output._refusal = self._view_refusal(slot)
        return output

    def _alias(self, slot: int, output: Tensor) -> Tensor:
        """An input returned as it is: a view of it, with this node."""
        if not self.differentiable[slot] and output._tracked():
            return output.detach()
        made = Tensor(output._storage, output._type, output._views, output._base if output._base is not None else output)
        if self.differentiable[slot]:
            made._node, made._slot = self.ctx, slot
            made._refusal = self._view_refusal(slot)
        else:
            made._refusal = NO_GRAD_VIEW
        return made

    def _view_refusal(self, slot: int) -> str:
        what = f"Output {slot} of {self.ctx.name()} is a view and is being modified inplace."
        if sum(self.differentiable) > 1:
            return (
                f"{what} This view is the output of a function that returns multiple views. Such functions do not allow the output views "
                "to be modified inplace. You should replace the inplace operation by an out-of-place one."
            )
        return (
            f"{what} {CUSTOM_VIEW} (or because an input was returned as-is) and the autograd logic to handle view+inplace would override "
            "the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can "
            "fix this by cloning the output of the custom Function."
        )

    def _written(self, slot: int, x: Tensor) -> Tensor:
        """A dirty input: the same object, on the new node."""
        if not self.differentiable[slot]:
            return x.detach() if x._tracked() else x
        moved = Tensor(x._storage, x._type, x._views)
        moved._node, moved._slot = self.ctx, slot
        if x._base is None:
            rebase(x, moved)
        else:
            from tpc.record import record_scatter

            base = x._base
            rebase(base, record_scatter(base._snapshot(), x._views[len(base._views) :], moved._snapshot()))
            x._take_history(self.ctx, slot)
            x._base_edits = base._edits
        return x

    def _check_dirty(self) -> None:
        for d in self.dirty:
            # The mark counts as a write, besides those that forward made.
            d._storage.write(d._storage.read())
            if not any(d is o for o in self.outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                    f"inplace must all be outputs of the Function ({self.cls.__name__})."
                )
            if not self.recorded:
                continue
            if any(d is t for t in self.inputs):
                self._check_dirty_input(d)
            elif d._base is not None:
                raise RuntimeError(f"a view that is no input was given to mark_dirty; only inputs may be marked ({self.cls.__name__})")
            else:
                warnings.warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed "
                    f"to mark_dirty() ({self.cls.__name__}).",
                    UserWarning,
                    stacklevel=5,
                )

    def _check_dirty_input(self, d: Tensor) -> None:
        if d._base is not None:
            if d._refusal is not None:
                raise RuntimeError(d._refusal)
            if d._base._leaf and d._base._node is None:
                raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
            if len(self.outputs) > 1:
                raise RuntimeError(
                    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than "
                    "one Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view "
                    f"(using .clone() for example) or make your Function only return one Tensor ({self.cls.__name__})."
                )
        elif d._leaf and d._node is None:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")


def _tensors(marked: tuple[Any, ...] | None, rule: str) -> tuple[Tensor, ...]:
    for i, t in enumerate(marked or ()):
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{rule}, but argument {i} is of type {type(t).__name__}")
    return marked or ()


def _refuse_returned_inputs(ctx: FunctionNode, inputs: Sequence[Tensor], outputs: Sequence[Any]) -> None:
    """In split style an input that comes back as it is would be saved without its new history."""
    dirty = ctx.dirty_tensors or ()
    for t in (*(ctx.to_save or ()), *(ctx.saved_for_forward or ())):
        if any(t is x for x in inputs) and any(t is o for o in outputs) and not any(t is d for d in dirty):
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
                "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
                "forward function itself."
            )
