"""Backward of a compiled call under transforms: gradients that are batched or carry tangents go through its program one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpc.autograd.tangents import below, set_tangent, tangent_of
from tpc.batching.batched import Batched, VmapLevel, innermost, is_batched, lowered
from tpc.ir.types import TensorType
from tpc.state import STATE
from tpc.tensor import Tensor

Grads = Sequence[Tensor | None]
Run = Callable[[list[Tensor | None]], Grads]


def is_transformed(grads: Grads) -> bool:
    """Whether some gradient is batched or carries a tangent that is followed."""
    return any(isinstance(g, Batched) or tangent_of(g, level) is not None for g in grads for level in (*STATE.duals, None))


def transformed(run: Run, grads: Grads, types: Sequence[TensorType]) -> list[Tensor | None]:
    """`run`, which is linear, on transformed gradients; `types` are those of its results."""
    level = innermost(grads)
    return _with_tangents(run, grads) if level is None else _by_sample(run, grads, types, level)


def _by_sample(run: Run, grads: Grads, types: Sequence[TensorType], level: VmapLevel) -> list[Tensor | None]:
    from tpc.functions.factories import zeros_of
    from tpc.functions.joining import stack
    from tpc.functions.shape import select

    if any(g is not None and is_batched(g, level) and g._tracked() for g in grads) and STATE.grad_enabled:
        raise RuntimeError("vmap: second derivatives inside vmap of a call compiled outside of it; compile the whole instead")
    with lowered(level):
        if level.batch_size == 0:
            return [Batched(zeros_of(t._replace(shape=(0, *t.shape))), level) for t in types]
        rows = [
            run([select(g._physical, 0, k) if isinstance(g, Batched) and g._level is level else g for g in grads])
            for k in range(level.batch_size)
        ]
        columns = list(zip(*rows, strict=True))
        return [None if c[0] is None else Batched(stack(c), level) for c in columns]


def _with_tangents(run: Run, grads: Grads) -> list[Tensor | None]:
    """The tangent of a linear function's result is the function of the tangents."""
    from tpc.functions.factories import zeros_of

    level = next(level for level in reversed(STATE.duals) if any(tangent_of(g, level) is not None for g in grads))
    with below(level):
        results = list(run(list(grads)))
        tangents = [tangent_of(g, level) for g in grads]
        given = [None if g is None else zeros_of(g._type) if t is None else t for g, t in zip(grads, tangents, strict=True)]
        for result, tangent in zip(results, run(given), strict=True):
            if result is not None and tangent is not None:
                set_tangent(result, level, tangent)
    return results
