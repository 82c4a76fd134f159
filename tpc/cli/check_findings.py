"""What may be wrong about a Function, or cost more than it has to: one check per kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tpc.autograd.backward import grad
from tpc.autograd.function import Function, once_differentiable
from tpc.autograd.gradient_check import GradcheckError, gradcheck, gradgradcheck
from tpc.cli.check_arguments import concrete
from tpc.cli.check_probe import Probe
from tpc.cli.stop import RAISED, Stop
from tpc.functions.random import manual_seed
from tpc.ir.signature import counted
from tpc.tensor import Tensor, from_array

_ONCE = once_differentiable(lambda ctx: None).__code__


class Finding(NamedTuple):
    """`level` is "wrong", "cost", or "open" where nothing could be checked."""

    level: str
    kind: str
    message: str


class Failed(Stop):
    """Forward does not take the arguments."""


def check(function: type[Function], args: Sequence[Any]) -> list[Finding]:
    """All findings for one Function; `Failed` where forward raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Check(function, args).findings()


class _Check:
    def __init__(self, function: type[Function], args: Sequence[Any]) -> None:
        self.function, self.args = function, args
        before = _state(function)
        try:
            self.probe = self.applied()
            values = [o._array() for o in self.probe.outputs if isinstance(o, Tensor)]
        except Exception as error:
            raise Failed(RAISED, f"{type(error).__name__}: {error}") from error
        self.changed = [name for name, value in _state(function).items() if name in before and before[name] != value]
        again = [o._array() for o in self.applied().outputs if isinstance(o, Tensor)]
        self.drifts = len(values) != len(again) or any(
            a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(values, again, strict=True)
        )

    def applied(self, unpack: Any = None, precise: bool = True) -> Probe:
        return Probe(self.function, concrete(self.args, precise), unpack)

    @property
    def is_once(self) -> bool:
        return getattr(self.function.backward, "__code__", None) is _ONCE

    def findings(self) -> list[Finding]:
        found = [*self.forward()]
        if not self.probe.tracked:
            return found
        broken = [*self.backward()]
        found += broken
        found += self.saving(bool(broken))
        if not broken:
            # Where calls differ there is nothing to compare.
            broken = [] if self.drifts else [*self.arriving()] or [*self.derivatives()]
            found += broken or self.constant()
        return found

    # --- forward ---

    def forward(self) -> Iterator[Finding]:
        for i in self.probe.written:
            yield Finding("wrong", "mark-dirty", f"forward writes argument {i} in place without ctx.mark_dirty")
        if self.changed:
            yield Finding("wrong", "python-state", f"a call changes {', '.join(self.changed)}: a compiled call does so once, when recorded")
        if self.drifts:
            yield Finding("wrong", "python-state", "two calls on the same arguments and seed differ: forward depends on more than them")
        for name, tensors in self.probe.attributes.items():
            size = sum(t._type.nbytes for t in tensors)
            is_output = any(t is o for t in tensors for o in self.probe.outputs)
            why = "an output there is a cycle that only gc frees" if is_output else "not freed by backward, writes to it go unnoticed"
            yield Finding("wrong", "ctx-attribute", f"ctx.{name} holds {size:,} bytes: {why}; use ctx.save_for_backward")

    # --- what backward returns ---

    def backward(self) -> Iterator[Finding]:
        probe = self.probe
        before = [s.storage.current_version() for s in probe.saved if hasattr(s, "storage")]
        seeds = probe.seeds()
        marks = [s._storage.current_version() for s in seeds]
        try:
            probe.run(seeds)
        except Exception as error:
            yield from self._returned()
            if not probe.returned or not any(True for _ in self._returned()):
                yield Finding("wrong", _kind_of(error), f"backward raises {type(error).__name__}: {error}")
            return
        yield from self._returned()
        if before != [s.storage.current_version() for s in probe.saved if hasattr(s, "storage")]:
            yield Finding("wrong", "writes-saved", "backward writes a saved tensor in place: a second backward is wrong or raises")
        if marks != [s._storage.current_version() for s in seeds]:
            yield Finding("wrong", "writes-gradient", "backward writes the gradient that it is given in place: others may read it")

    def _returned(self) -> Iterator[Finding]:
        for returned in self.probe.returned[-1:]:
            slots = self.probe.slots
            surplus = returned[len(slots) :]
            if len(returned) != len(slots) and not (len(returned) > len(slots) and all(g is None for g in surplus)):
                if not any(isinstance(g, (list, tuple, dict)) for g in returned):
                    yield Finding("wrong", "count", f"backward returns {counted(len(returned), 'gradient')} for {len(slots)} arguments")
                return
            for i, (x, g) in enumerate(zip(slots, returned, strict=False)):
                yield from self._slot(i, x, g)

    def _slot(self, i: int, x: Any, g: Any) -> Iterator[Finding]:
        if not isinstance(x, Tensor):
            if g is not None:
                yield Finding("wrong", "count", f"backward returns a gradient for argument {i}, which is no tensor; it must be None")
        elif g is None:
            if x.requires_grad and self._depends(i):
                yield Finding("wrong", "none", f"backward returns None for argument {i}, which the outputs depend on")
        elif not isinstance(g, Tensor):
            yield Finding("wrong", "type", f"backward returns {type(g).__name__} for argument {i}, not a tensor or None")
        elif x.requires_grad:
            if g._type.shape != x._type.shape:
                yield Finding(
                    "wrong", "shape", f"backward returns shape {list(g._type.shape)} for argument {i} of shape {list(x._type.shape)}"
                )
            if g._type.dtype != x._type.dtype:
                yield Finding("wrong", "dtype", f"backward returns {g._type.dtype} for argument {i} of {x._type.dtype}")
        elif self.probe.node.needs_input_grad[i] is False and x._type.dtype[0] == "f":
            yield Finding("cost", "unneeded", f"backward computes a gradient for argument {i}, which needs none: ask ctx.needs_input_grad")

    def _depends(self, i: int) -> bool:
        """Whether an output moves with argument i."""
        args = concrete(self.args, True)
        moved = [x for x in Probe(self.function, args).inputs if x.requires_grad]
        number = [k for k, x in enumerate(self.probe.slots) if isinstance(x, Tensor) and x.requires_grad].index(i)
        target = moved[number].detach()
        target.copy_(from_array(target._array() * 1.25 + 0.125))
        new = Probe(self.function, args).tracked
        return any(not np.array_equal(a._array(), b._array()) for a, b in zip(self.probe.tracked, new, strict=False))

    # --- what is saved ---

    def saving(self, broken: bool) -> Iterator[Finding]:
        sizes = [s.type.nbytes for s in self.applied(precise=False).saved]
        if broken or not sizes:
            return
        seeds = self.probe.seeds()
        plain = self.applied(lambda k, t: t).run(seeds)
        for k, size in enumerate(sizes):
            if size and all(self._same(plain, k, other, seeds) for other in _OTHERS):
                yield Finding("cost", "unused", f"saved tensor {k} ({size:,} bytes) is never used by backward; leave it out")

    def _same(self, plain: Sequence[Any], k: int, other: Callable[[np.ndarray], np.ndarray], seeds: Sequence[Tensor]) -> bool:
        """Whether backward gives the same with another value for saved tensor k."""
        try:
            got = self.applied(lambda n, t: from_array(other(t._array())) if n == k else t).run(seeds)
        except Exception:
            return False
        return all(
            (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b, equal_nan=True))
            for a, b in zip(plain, got, strict=True)
        )

    # --- derivatives ---

    def derivatives(self) -> Iterator[Finding]:
        args = concrete(self.args, True)
        if not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            return

        call, points = _along_lines(self._tracked, args) if _is_large(args) else (self._tracked, args)
        try:
            gradcheck(call, points, check_undefined_grad=False)
        except GradcheckError as error:
            yield Finding("wrong", "gradient", f"backward and finite differences disagree: {_short(error)}")
            return
        except Exception as error:
            yield Finding("wrong", "raises", f"backward raises {type(error).__name__} for the gradient of one output: {error}")
            return
        if self.is_once:
            return
        try:
            gradgradcheck(call, points, check_undefined_grad=False)
        except Exception as error:
            cure = "save inputs, return intermediates, or mark backward @once_differentiable"
            yield Finding("wrong", "double-backward", f"second derivatives are wrong ({_short(error)}): {cure}")

    def _tracked(self, *given: Any) -> tuple[Tensor, ...]:
        manual_seed(0)
        output = self.function.apply(*[x.clone() if isinstance(x, Tensor) and x.requires_grad else x for x in given])
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        return tuple(o for o in outputs if isinstance(o, Tensor) and o.requires_grad)

    def constant(self) -> Iterator[Finding]:
        """Outputs that no input has a gradient of: finite differences have agreed."""
        for k, output in enumerate(self.probe.tracked if len(self.probe.tracked) > 1 else ()):
            wanted = [x for x in self.probe.inputs if x.requires_grad]
            got = grad([output], wanted, [self.probe.seeds()[k]], retain_graph=True, allow_unused=True)
            if all(g is None or not g._array().any() for g in got):
                yield Finding(
                    "cost", "mark-non-differentiable", f"output {k} has no gradient: backward gets zeros for it unless it is marked"
                )

    def arriving(self) -> Iterator[Finding]:
        """Gradients that are not contiguous, and none at all."""
        for name, made in (("expanded", _expanded), ("transposed", _transposed)):
            odd = [made(s) for s in self.probe.seeds()]
            try:
                got, wanted = self.applied().run(odd), self.applied().run([s.contiguous() for s in odd])
            except Exception as error:
                yield Finding("wrong", "non-contiguous", f"backward fails on {name} gradients, which sum() and t() give: {_short(error)}")
                return
            if any(a is not None and b is not None and not np.allclose(a, b, equal_nan=True) for a, b in zip(got, wanted, strict=True)):
                yield Finding("wrong", "non-contiguous", f"backward gives other values for {name} gradients")
        probe = self.applied()
        if probe.node._materialize or len(probe.tracked) < 2:
            return
        for k, output in enumerate(probe.tracked):
            try:
                grad([output], [x for x in probe.inputs if x.requires_grad], [probe.seeds()[k]], retain_graph=True, allow_unused=True)
            except Exception as error:
                text = f"with set_materialize_grads(False), backward fails where only output {k} has a gradient: {_short(error)}"
                yield Finding("wrong", "none-gradient", text)
                return


def _flipped(a: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "b":
        return ~a
    return a.max(initial=0) + a.min(initial=0) - a if a.dtype.kind in "iu" else -a - 0.5


def _scaled(a: np.ndarray) -> np.ndarray:
    return _flipped(a) if a.dtype.kind in "biu" else a * 1.5 + 3


_OTHERS = (_flipped, _scaled)


def _expanded(seed: Tensor) -> Tensor:
    expanded: Tensor = seed.flatten()[:1].sum().expand(seed.shape)
    return expanded


def _transposed(seed: Tensor) -> Tensor:
    return seed.transpose(-1, -2).contiguous().transpose(-1, -2) if seed.ndim > 1 else seed


def _along_lines(call: Callable[..., tuple[Tensor, ...]], args: Sequence[Any]) -> tuple[Callable[..., tuple[Tensor, ...]], Sequence[Any]]:
    """`call` on two lines through `args`, its outputs weighed and added up: for Jacobians too large to compute."""
    rng = np.random.default_rng(2)

    def random(t: Tensor) -> Tensor:
        return from_array(rng.standard_normal(t._type.shape).astype(t._type.numpy_dtype))

    lines = [[random(x) if isinstance(x, Tensor) and x.requires_grad else None for x in args] for _ in range(2)]
    fixed = [x.detach() if isinstance(x, Tensor) else x for x in args]
    weights = [random(o) / o._type.numel**0.5 for o in call(*args)]

    def along(t: Any) -> tuple[Tensor, ...]:
        moved = [x if u is None else x + t[0] * u + t[1] * v for x, u, v in zip(fixed, *lines, strict=True)]
        return tuple((w * o).sum() for w, o in zip(weights, call(*moved), strict=True))

    return along, (from_array(np.zeros(2)).requires_grad_(),)


def _is_large(args: Any) -> bool:
    return sum(x._type.numel for x in args if isinstance(x, Tensor)) > 256


def _kind_of(error: Exception) -> str:
    return "writes-saved" if "modified by an inplace operation" in str(error) else "raises"


def _short(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(",")


def _state(function: type[Function]) -> dict[str, str]:
    """Plain values that the class and its module hold."""
    import sys

    spaces = {function.__name__: vars(function), "": vars(sys.modules.get(function.__module__, object))}
    plain = (int, float, str, bool, list, dict, set)
    return {
        f"{owner}.{name}" if owner else name: repr(value)
        for owner, space in spaces.items()
        for name, value in space.items()
        if isinstance(value, plain) and not name.startswith("_")
    }
