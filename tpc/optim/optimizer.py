"""What optimisers have in common: parameter groups, state, saving and loading."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tpc.autograd.grad_mode import enable_grad, no_grad
from tpc.deferred import flush
from tpc.dtype import float64
from tpc.functions.factories import tensor, zeros_like
from tpc.record import scalar_tensor
from tpc.state import STATE
from tpc.storage import REARRANGED
from tpc.tensor import Tensor
from tpc.tracing import Unready


class Group(dict[str, Any]):
    """One parameter group. Numbers in `tensors` (the learning rate) live in tensors: `group["lr"] = 0.01` writes into it.

    Who reads one gets the number again, but a tensor where a tensor was given, and in a recording, which has to follow its changes.
    """

    def __init__(self, values: Mapping[str, Any], tensors: Iterable[str]) -> None:
        super().__init__(values)
        self.tensors = frozenset(tensors) & values.keys()
        self.varying: set[str] = set()
        self.given_as_tensors = {name for name in self.tensors if isinstance(values[name], Tensor)}
        for name in self.tensors:
            super().__setitem__(name, _scalar(values[name]))

    def stored(self) -> dict[str, Any]:
        """All settings, with the tensors that numbers live in."""
        return dict(super().items())

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if (name in self.tensors or name in self.varying) and name not in self.given_as_tensors and STATE.trace is None:
            return _plain(value)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """The setting of that name, or the default."""
        try:
            return self[name]
        except KeyError:
            return default

    def items(self) -> Any:
        """Names and settings."""
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        """Settings."""
        return [self[name] for name in self]

    def __iter__(self) -> Iterator[str]:
        # Of its own, so that `dict(group)` and `{**group}` ask for each setting.
        return super().__iter__()

    def __repr__(self) -> str:
        return repr(dict(self))

    def __setitem__(self, name: str, value: Any) -> None:
        old: Any = super().get(name)
        pairs = list(zip(old, value, strict=True)) if isinstance(old, tuple) and name in self.varying else [(old, value)]
        if name in self and (name in self.tensors or name in self.varying):
            with no_grad():
                for place, new in pairs:
                    place.fill_(new)
        else:
            REARRANGED.count += 1
            super().__setitem__(name, value)

    def vary(self, name: str) -> None:
        """Keeps a setting (a number or a tuple of numbers) in tensors from now on: to change it needs no new recording."""
        if name not in self.varying and name not in self.tensors:
            value = self[name]
            self[name] = tuple(map(_scalar, value)) if isinstance(value, tuple) else _scalar(value)
            self.varying.add(name)


class State(dict[str, Any]):
    """What an optimiser keeps for one parameter. In a recording no entry is made or replaced: it would not be there in later calls."""

    def __setitem__(self, name: str, value: Any) -> None:
        if STATE.trace is not None and self.get(name) is not value:
            raise Unready(f"the optimiser's state '{name}' is assigned. Write in place (copy_, add_ ...): that is part of a program")
        super().__setitem__(name, value)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The entry of that name, made if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Takes over entries."""
        for name, value in dict(*args, **kwargs).items():
            self[name] = value


def copied(value: Any) -> Any:
    """A value of the state, with tensors of its own."""
    if isinstance(value, list):
        return [copied(x) for x in value]
    return value.clone() if isinstance(value, Tensor) else value


def _scalar(value: Any) -> Tensor:
    # In double precision, so that the number is read back as it was given. Beside a parameter's dtype, that of a 0-d tensor does not count.
    return value if isinstance(value, Tensor) else tensor(float(value), dtype=float64)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, Tensor) else value


ACCEPTED = frozenset({"foreach", "fused", "capturable", "differentiable"})
"""Flags of PyTorch's that say how, not what, is computed; they have no effect."""


class Optimizer:
    """Updates `params` in place from their `.grad`.

    Subclasses say which state each parameter has (`STATE`: zeros of its shape, made at construction), which settings
    are tensors (`TENSORS`), and how one parameter is updated (`update`).
    """

    STATE: tuple[str, ...] = ()
    TENSORS: tuple[str, ...] = ("lr",)

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls) -> None:
        if "step" in cls.__dict__:
            cls.step = _noted(cls.__dict__["step"])  # type: ignore[method-assign]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds parameters with settings of their own."""
        params = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if p in self.state:
                raise ValueError("some parameters appear in more than one parameter group")
        REARRANGED.count += 1
        made = Group({"params": params, **self.defaults, **{k: v for k, v in group.items() if k != "params"}}, self.TENSORS)
        self.param_groups.append(made)
        for p in params:
            self.state[p] = State(self.initial_state(p, made))

    def initial_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Zeros for each name in `state_names`: of the parameter's shape, but for the number of steps."""
        return {n: scalar_tensor(0.0, "f64").clone() if n == "step" else zeros_like(p) for n in self.state_names(group)}

    def state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Which state tensors a parameter of this group has; ``step`` counts its updates, for those who need to know."""
        return self.STATE

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters (or fills them with zeros)."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad.detach_().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient; `closure` recomputes and returns the loss first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                settings = group.stored()
                for p in settings["params"]:
                    if p.grad is not None:
                        state = self.state[p]
                        if "step" in state:
                            state["step"].add_(1)
                        self.update(p, p.grad, state, settings)
        return loss

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {number}", *[f"    {k}: {_plain(group[k])}" for k in sorted(group) if k != "params"]]
        return "\n".join([*lines, ")"])

    def update(self, p: Tensor, grad: Tensor, state: dict[str, Tensor], group: Mapping[str, Any]) -> None:
        """Writes the new value of one parameter."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def state_dict(self) -> dict[str, Any]:
        """State and settings, with parameters by number."""
        numbers = {p: i for i, p in enumerate(self.state)}
        groups = [{**{k: _plain(v) for k, v in g.items()}, "params": [numbers[p] for p in g["params"]]} for g in self.param_groups]
        return {"state": {numbers[p]: {k: copied(v) for k, v in s.items()} for p, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Takes over what `state_dict` gave; `ValueError` where the parameters differ in number or shape."""
        if len(saved["state"]) != len(self.state) or len(saved["param_groups"]) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameters or parameter groups")
        for i, (p, state) in enumerate(self.state.items()):
            for name, value in saved["state"][i].items():
                if isinstance(value, Tensor) and name in state and value.shape != state[name].shape:
                    raise ValueError(
                        f"state {name!r} of parameter {i} has shape {list(value.shape)}, not {list(state[name].shape)} like {list(p.shape)}"
                    )
        with no_grad():
            for i, state in enumerate(self.state.values()):
                for name, value in saved["state"][i].items():
                    if isinstance(value, Tensor) and isinstance(state.get(name), Tensor):
                        state[name].copy_(value)
                    else:
                        state[name] = copied(value)
            for group, given in zip(self.param_groups, saved["param_groups"], strict=True):
                for name, value in given.items():
                    if name != "params":
                        group[name] = value


def _noted(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` whose recordings depend on the optimiser's settings and state."""

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is not None:
            STATE.trace.modules[id(self)] = self
        result = step(self, *args, **kwargs)
        # The end of a step is where deferred graphs have the same shape every time, and so find their executable.
        flush()
        return result

    return run


Optimizer.step = _noted(Optimizer.step)  # type: ignore[method-assign]


def check(condition: bool, name: str, value: Any) -> None:
    """`ValueError` in PyTorch's words where a setting is out of range."""
    if not condition:
        raise ValueError(f"Invalid {name}: {value}")


def no_others(flags: Mapping[str, Any]) -> None:
    """`TypeError` where a setting is none of those that are accepted without effect."""
    for name in flags.keys() - ACCEPTED:
        raise TypeError(f"__init__() got an unexpected keyword argument '{name}'")


def check_betas(betas: tuple[float, float]) -> None:
    """`ValueError` unless both shares are in [0, 1)."""
    for i, beta in enumerate(betas):
        check(0.0 <= beta < 1.0, f"beta parameter at index {i}", beta)


def directed(p: Any, grad: Any, group: Mapping[str, Any], decoupled: bool = False) -> Any:
    """The gradient to go down, with weight decay; a decoupled one shrinks the parameter itself."""
    grad = -grad if group["maximize"] else grad
    if not group["weight_decay"]:
        return grad
    if decoupled:
        p.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
    return grad + p * group["weight_decay"]


def is_scalar_at_least(value: Any, low: float) -> bool:
    """Whether a setting is a number (or a tensor, which is not looked at) of at least `low`."""
    return isinstance(value, Tensor) or value >= low
