"""vmap over custom Functions: the user's `vmap`, or a rule generated from forward, backward and jvp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tpc.batching.batched import Batched, VmapLevel, entered, is_batched, lowered, physical
from tpc.state import STATE
from tpc.tensor import Tensor
from tpc.tree import flatten, map_leaves, unflatten


class VmapInfo(NamedTuple):
    """What a `vmap` static method is told."""

    batch_size: int
    randomness: str


def batched_forward(cls: Any, level: VmapLevel, args: tuple[Any, ...]) -> Any:
    """What `cls` computes on arguments some of which are batched at `level`: outputs batched at it."""
    from tpc.autograd.function import Function

    if getattr(cls, "stands_for_a_batch", False):
        return _generated(cls, level, args)
    name = cls.__name__
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
            f"setup_context staticmethod ({name})."
        )
    has_rule = cls.vmap is not Function.vmap
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please "
            "set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
        )
    if not has_rule and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap staticmethod "
            "or set generate_vmap_rule=True."
        )
    return _by_rule(cls, level, args) if has_rule else _generated(cls, level, args)


def _by_rule(cls: Any, level: VmapLevel, args: tuple[Any, ...]) -> Any:
    below = tuple(map_leaves(lambda x: x._entered[0] if is_batched(x, level) else x, a) for a in args)
    in_dims = tuple(_in_dims(a, level) for a in args)
    with lowered(level):
        returned = cls.vmap(VmapInfo(level.batch_size, level.randomness), in_dims, *below)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(f"{cls.__name__}.vmap was expected to have two returns, (output, out_dims), but got {_count(returned)}")
    output, out_dims = returned
    return _wrapped(cls, level, output, out_dims)


def _count(returned: Any) -> str:
    return f"{len(returned)} returns" if isinstance(returned, tuple) else type(returned).__name__


def _in_dims(arg: Any, level: VmapLevel) -> Any:
    """The batch dimension where batched, None elsewhere, in the shape of the argument."""
    return map_leaves(lambda x: x._entered[1] if is_batched(x, level) else None, arg)


def _wrapped(cls: Any, level: VmapLevel, output: Any, out_dims: Any) -> Any:
    found, structure = flatten(output)
    if out_dims is None or isinstance(out_dims, int):
        dims = [out_dims] * len(found)
    else:
        dims, given = flatten(out_dims)
        if len(dims) != len(found) or (isinstance(output, tuple) and given != structure):
            raise RuntimeError(
                f"{cls.__name__}.vmap returned an incompatible (output, out_dims) tuple: out_dims {out_dims} for {len(found)} outputs"
            )
    return unflatten(structure, [_out(level, x, d) for x, d in zip(found, dims, strict=True)])


def _out(level: VmapLevel, x: Any, dim: int | None) -> Any:
    from tpc.functions.shape import movedim

    if not isinstance(x, Tensor) or dim is None:
        return x
    with lowered(level):
        return Batched(movedim(x, dim, 0) if dim else x, level)


def _generated(cls: Any, level: VmapLevel, args: tuple[Any, ...]) -> Any:
    """Runs the Function below the level as one Function on physical tensors, whose backward is the user's, batched."""
    found, structure = flatten(args)
    call = _Call(cls, level, structure, [is_batched(x, level) for x in found])
    with lowered(level):
        outputs = call.function.apply(*[x._physical if is_batched(x, level) else x for x in found])
    spread = [Batched(o, level) if flag else o for o, flag in zip(outputs, call.out_flags, strict=True)]
    return unflatten(call.out_structure, spread)


class _Call:
    """One application of a generated rule; `function` is the Function that stands for it below the level."""

    def __init__(self, cls: Any, level: VmapLevel, structure: Any, flags: Sequence[bool]) -> None:
        from tpc.autograd.function import Function

        self.cls, self.level, self.structure, self.flags = cls, level, structure, flags
        self.inner = cls._backward_cls()
        self.out_structure: Any = None
        self.out_flags: list[bool] = []
        members = {"forward": staticmethod(self.forward), "backward": staticmethod(self.backward), "jvp": staticmethod(self.jvp)}
        self.function: Any = type(f"Vmapped{cls.__name__}", (Function,), {**members, "stands_for_a_batch": True})

    def forward(self, ctx: Any, *leaves: Any) -> tuple[Any, ...]:
        self.inner.needs_input_grad = ctx.needs_input_grad
        with entered(self.level):
            args = unflatten(self.structure, [Batched(x, self.level) if f else x for x, f in zip(leaves, self.flags, strict=True)])
            output = self._run(args)
            found, self.out_structure = flatten(output)
            self.out_flags = [is_batched(o, self.level) for o in found]
        self.kept = list(self.inner.to_save or ())
        self.kept_forward = list(self.inner.saved_for_forward or ())
        ctx.save_for_backward(*[self._bare(t) for t in self.kept])
        ctx.save_for_forward(*[self._bare(t) for t in self.kept_forward])
        ctx.set_materialize_grads(self.inner._materialize)
        if self.inner.non_differentiable:
            ctx.mark_non_differentiable(*[self._bare(t) for t in self.inner.non_differentiable])
        if self.inner.dirty_tensors:
            ctx.mark_dirty(*[self._bare(t) for t in self.inner.dirty_tensors])
        return tuple(self._bare(o) for o in found)

    def _run(self, args: tuple[Any, ...]) -> Any:
        from tpc.autograd.function import Function

        if self.cls.setup_context is Function.setup_context:
            return self.cls.forward(self.inner, *args)
        output = self.cls.forward(*args)
        self.cls.setup_context(self.inner, args, output)
        return output

    def _bare(self, t: Any) -> Any:
        return t._physical if is_batched(t, self.level) else t

    def _again(self, bare: Sequence[Any], like: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(Batched(b, self.level) if is_batched(t, self.level) else b for b, t in zip(bare, like, strict=True))

    def backward(self, ctx: Any, *grads: Any) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        with entered(self.level):
            self.inner._given_tensors = self._again(saved, self.kept)
            given = [Batched(g, self.level) if g is not None and flag else g for g, flag in zip(grads, self.out_flags, strict=True)]
            returned = self.inner._backward()(self.inner, *given)
            returned = returned if isinstance(returned, tuple) else (returned,)
        return tuple(self._summed(g, flag) for g, flag in zip(_padded(returned, len(self.flags)), self.flags, strict=True))

    def _summed(self, grad: Any, batched: bool) -> Any:
        """The gradient of an input that is not batched is the sum over the batch."""
        if grad is None:
            return None
        with entered(self.level), lowered(self.level):
            if batched:
                return physical(grad, self.level)
            return grad._physical.sum(0) if is_batched(grad, self.level) else grad

    def jvp(self, ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        with entered(self.level):
            self.inner._given_tensors = self._again(saved, self.kept_forward)
            given = [Batched(t, self.level) if t is not None and flag else t for t, flag in zip(tangents, self.flags, strict=True)]
            returned = self.cls.jvp(self.inner, *given)
            returned = returned if isinstance(returned, tuple) else (returned,)
        with entered(self.level), lowered(self.level):
            return tuple(
                None if t is None else physical(t, self.level) if flag else t for t, flag in zip(returned, self.out_flags, strict=True)
            )


def _padded(returned: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if len(returned) > count and all(g is None for g in returned[count:]):
        return returned[:count]
    if len(returned) != count:
        raise RuntimeError(f"backward returned an incorrect number of gradients (expected {count}, got {len(returned)})")
    return returned


def active_level(tensors: Sequence[Any]) -> VmapLevel | None:
    """The level at which a call on these tensors is batched, if any."""
    from tpc.batching.batched import innermost

    return innermost(tensors) if STATE.transforming else None
