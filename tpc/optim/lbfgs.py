"""L-BFGS: Newton steps with an inverse Hessian that is known from the last gradients (Nocedal & Wright, algorithms 7.4 and 7.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tpc.autograd.grad_mode import enable_grad, no_grad
from tpc.functions.joining import cat
from tpc.optim.line_search import Point, strong_wolfe
from tpc.optim.optimizer import Optimizer, State, check, copied, is_scalar_at_least
from tpc.state import STATE
from tpc.tensor import Tensor
from tpc.tracing import Untraceable

LEAST_CURVATURE = 1e-10
"""A pair of step and change of gradient with less is not remembered: the inverse Hessian has to stay positive definite."""


class LBFGS(Optimizer):
    """`step(closure)` moves all parameters together, up to `max_iter` times; the closure clears gradients, computes the loss,
    back-propagates and returns it. One group of parameters only. Its decisions look at values, so it runs deferred, never compiled.
    """

    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1.0, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check(is_scalar_at_least(lr, 0.0), "learning rate", lr)
        super().__init__(
            params,
            {
                "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def initial_state(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Any]:
        """What is known so far belongs to the first parameter."""
        if self.state:
            return {}
        return {"func_evals": 0, "n_iter": 0, "old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}

    def state_dict(self) -> dict[str, Any]:
        """State and settings, with parameters by number."""
        numbered = [{k: copied(v) for k, v in s.items()} for s in self.state.values()]
        held, self.state = self.state, {p: State() for p in self.state}
        try:
            made = super().state_dict()
        finally:
            self.state = held
        return {**made, "state": {0: numbered[0]}}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        super().load_state_dict({**saved, "state": {i: {} for i in range(len(self.state))}})
        self.state[next(iter(self.state))] = State({k: copied(v) for k, v in saved["state"][0].items()})

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters; returns the loss of before."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        if STATE.trace is not None:
            raise Untraceable("LBFGS decides by the values of losses and gradients how often to call the closure. Compile the closure")
        return _Run(self, closure).go()


class _Run:
    """One call of `step`."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        self.group = optimizer.param_groups[0]
        self.params: list[Any] = self.group["params"]
        self.state: dict[str, Any] = optimizer.state[self.params[0]]
        self.closure = enable_grad()(closure)
        self.evaluations = 0
        self.move: Any = None

    def gradient(self) -> Any:
        return cat([(p.detach() * 0 if p.grad is None else p.grad).reshape(-1) for p in self.params])

    def counted(self) -> Any:
        self.evaluations += 1
        self.state["func_evals"] += 1
        return self.closure()

    def go(self) -> Any:
        first = self.counted()
        loss, gradient = float(first), self.gradient()
        state, group = self.state, self.group
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        for number in range(1, group["max_iter"] + 1):
            direction = self.direction(gradient)
            rate = float(group["lr"])
            if state["n_iter"] == 1:
                rate *= min(1.0, 1.0 / float(gradient.abs().sum()))
            state |= {"d": direction, "prev_flat_grad": gradient, "prev_loss": loss, "t": rate}
            slope = float(gradient @ direction)
            if slope > -group["tolerance_change"]:
                break
            before = loss
            loss, gradient = self.moved(Point(0.0, loss, gradient, slope), direction, rate, number == group["max_iter"])
            if (
                self.evaluations >= group["max_eval"] or float(gradient.abs().max()) <= group["tolerance_grad"]
                or float((direction * state["t"]).abs().max()) <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):  # fmt: skip
                break
        return first

    def direction(self, gradient: Any) -> Any:
        """The Newton direction; down the gradient at first."""
        state = self.state
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            return -gradient
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = float(change @ step)
        if curvature > LEAST_CURVATURE:
            for name, value in (("old_dirs", change), ("old_stps", step), ("ro", 1.0 / curvature)):
                state[name] = [*state[name], value][-self.group["history_size"] :]
            state["H_diag"] = curvature / float(change @ change)
        pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
        made, shares = -gradient, []
        for change, step, inverse in reversed(pairs):
            shares.append((step @ made) * inverse)
            made = made - change * shares[-1]
        made = made * state["H_diag"]
        for (change, step, inverse), share in zip(pairs, reversed(shares), strict=True):
            made = made + step * (share - (change @ made) * inverse)
        return made

    def moved(self, start: Point, direction: Any, rate: float, last: bool) -> tuple[float, Any]:
        """Loss and gradient after a step along a direction, which is found by trial if a line search is asked for."""
        search = self.group["line_search_fn"]
        if search is None:
            self.put(rate, direction, [p.clone() for p in self.params])
            return (start.loss, start.gradient) if last else (float(self.counted()), self.gradient())
        if search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [p.clone() for p in self.params]

        def evaluate(at: float) -> Point:
            self.put(at, direction, origin)
            loss, gradient = float(self.counted()), self.gradient()
            return Point(at, loss, gradient, float(gradient @ direction))

        found, _ = strong_wolfe(evaluate, start, rate, float(direction.abs().max()))
        self.put(found.at, direction, origin)
        self.state["t"] = found.at
        return found.loss, found.gradient

    def put(self, at: float, direction: Any, origin: list[Any]) -> None:
        """Sets the parameters to a place on the line."""
        used = 0
        for p, old in zip(self.params, origin, strict=True):
            p.copy_(old + direction[used : used + p.numel()].view_as(p) * at)
            used += p.numel()
