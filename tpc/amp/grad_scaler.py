"""Loss scaling: gradients of half precision kept from vanishing by a large factor, which adapts itself."""

from __future__ import annotations

import warnings
from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.functions import elementwise as e
from tpc.functions import reduction
from tpc.functions.factories import tensor
from tpc.tensor import Tensor


class GradScaler:
    """Multiplies losses by a scale, divides gradients by it before a step, and skips steps with infinite gradients.

    After such a step the scale shrinks; after `growth_interval` good ones it grows. With `enabled=False` everything passes through; so it
    does for "cuda", of which there is none.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if enabled and device != "cpu":
            warnings.warn(f"torch.{device}.amp.GradScaler is enabled, but {device.upper()} is not available.  Disabling.", stacklevel=2)
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._device, self._enabled = device, enabled
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._scale = tensor(float(init_scale))
        self._growth_tracker = tensor(0)
        self._found: dict[int, Tensor] = {}
        """By optimiser, whether some gradient of it is infinite or NaN: those whose gradients were unscaled since the last update."""

    def scale(self, outputs: Any) -> Any:
        """A tensor, or a list of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return e.mul(outputs, self._scale)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimiser's parameters by the scale."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        found: Tensor | None = None
        inverse = e.reciprocal(self._scale)
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(inverse)
                        bad = e.logical_not(reduction.all(e.isfinite(p.grad)))
                        found = bad if found is None else e.logical_or(found, bad)
        if found is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        self._found[id(optimizer)] = found

    def step(self, optimizer: Any, *args: Any, **options: Any) -> Any:
        """`optimizer.step()`, unless some gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **options)
        if "closure" in options:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if bool(self._found[id(optimizer)]) else optimizer.step(*args, **options)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale to what was found, or sets it."""
        if not self._enabled:
            return
        with no_grad():
            if new_scale is not None:
                self._scale.fill_(new_scale)
            else:
                if not self._found:
                    raise AssertionError("No inf checks were recorded prior to update.")
                found = next(iter(self._found.values()))
                for other in self._found.values():
                    found = e.logical_or(found, other)
                good = e.add(self._growth_tracker, 1)
                grows = e.logical_and(e.logical_not(found), e.ge(good, self._growth_interval))
                factor = e.where(found, self._backoff_factor, e.where(grows, self._growth_factor, 1.0))
                self._growth_tracker.copy_(e.where(e.logical_or(found, grows), 0, good))
                self._scale.mul_(factor)
        self._found = {}

    def get_scale(self) -> float:
        """The scale; 1 where scaling is off."""
        return float(self._scale.item()) if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether scaling is on."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after many good steps."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a bad step."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def state_dict(self) -> dict[str, Any]:
        """What has to be saved to go on from here."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": int(self._growth_tracker.item()),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._scale = tensor(float(state_dict["scale"]))
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = tensor(int(state_dict["_growth_tracker"]))
