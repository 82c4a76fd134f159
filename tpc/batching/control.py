"""Control flow under vmap: the same control flow of batched functions; where a predicate differs between samples, both ways are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpc.batching.batched import Batched, VmapLevel, entered, physical
from tpc.bodies import Function
from tpc.ir.ops import control as ops
from tpc.state import STATE
from tpc.tensor import Tensor

if TYPE_CHECKING:
    from tpc.autograd.control import Call


def batched(call: Call, operands: Sequence[Tensor], flags: Sequence[bool], level: VmapLevel) -> Sequence[Tensor]:
    """Physical results, batch first, from physical operands of which `flags` says which are batched."""
    rule = {"cond": _cond, "while_loop": _while, "scan": _scan}[call.defn.name]
    return rule(call, operands, flags, level)


def _cond(call: Call, operands: Sequence[Tensor], flags: Sequence[bool], level: VmapLevel) -> Sequence[Tensor]:
    from tpc.autograd.control import Call, run
    from tpc.functions.elementwise import where
    from tpc.functions.factories import ones
    from tpc.functions.shape import reshape

    functions = tuple(_mapped(f, flags[1:], level) for f in call.functions)
    if not flags[0]:
        return run(Call(ops.cond, functions, {}), operands)
    always = ones((), dtype=operands[0].dtype)
    ways = [run(Call(ops.cond, (f, f), {}), [always, *operands[1:]]) for f in functions]
    chosen = []
    for a, b in zip(*ways, strict=True):
        predicate = reshape(operands[0], (level.batch_size, *[1] * (a._type.rank - 1)))
        chosen.append(where(predicate, a, b))
    return chosen


def _while(call: Call, operands: Sequence[Tensor], flags: Sequence[bool], level: VmapLevel) -> Sequence[Tensor]:
    """Runs as long as some sample's condition holds; samples whose condition fails stay as they are."""
    from tpc.autograd.control import Call, run
    from tpc.functions.elementwise import where
    from tpc.functions.reduction import any as any_of
    from tpc.functions.shape import reshape

    n = call.carried
    all_flags = [True] * n + list(flags[n:])
    condition, body = (_mapped(f, all_flags, level) for f in call.functions)

    def some(*tensors: Tensor) -> list[Tensor]:
        return [any_of(condition(*tensors)[0])]

    def masked(*tensors: Tensor) -> list[Tensor]:
        (holds,) = condition(*tensors)
        return [
            where(reshape(holds, (level.batch_size, *[1] * (old._type.rank - 1))), new, old)
            for new, old in zip(body(*tensors), tensors[:n], strict=True)
        ]

    given = [_spread(t, f, level) for t, f in zip(operands[:n], flags[:n], strict=True)]
    return run(Call(ops.while_loop, (some, masked), call.attrs), [*given, *operands[n:]])


def _scan(call: Call, operands: Sequence[Tensor], flags: Sequence[bool], level: VmapLevel) -> Sequence[Tensor]:
    """What is scanned has the batch behind the axis of steps, in and out."""
    from tpc.autograd.control import Call, run
    from tpc.functions.shape import movedim

    n, m = call.carried, call.scanned
    all_flags = [True] * n + list(flags[n:])
    given = [_spread(t, f, level) for t, f in zip(operands[:n], flags[:n], strict=True)]
    given += [movedim(t, 0, 1) if f else t for t, f in zip(operands[n : n + m], flags[n : n + m], strict=True)]
    results = run(Call(ops.scan, (_mapped(call.functions[0], all_flags, level),), call.attrs), [*given, *operands[n + m :]])
    return [*results[:n], *[movedim(t, 0, 1) for t in results[n:]]]


def _spread(t: Tensor, flag: bool, level: VmapLevel) -> Tensor:
    from tpc.functions.shape import expand, unsqueeze

    return t if flag else expand(unsqueeze(t, 0), (level.batch_size, *t._type.shape))


def _mapped(function: Function, flags: Sequence[bool], level: VmapLevel) -> Function:
    """The function of physical tensors, batch first; all its results are batched."""

    def mapped(*tensors: Tensor) -> list[Tensor]:
        inner = VmapLevel(level.batch_size, level.randomness, len(STATE.vmaps) + 1)
        with entered(inner):
            outputs = function(*[Batched(t, inner) if f else t for t, f in zip(tensors, flags, strict=True)])
        return [physical(o, inner) for o in outputs]

    return mapped
