"""Random numbers. A generator's state is a tensor: every draw reads it and writes the next one, eagerly and inside traces alike."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tpc.batching.batched import Batched, VmapLevel, lowered
from tpc.dtype import BY_IR, default_dtype, ir_dtype
from tpc.functions import elementwise as e
from tpc.functions.dims import one_dim
from tpc.functions.factories import checked_shape
from tpc.functions.joining import stack
from tpc.ir.opdef import OpDef
from tpc.ir.ops import random as ops
from tpc.ir.types import is_complex, is_floating, real_dtype
from tpc.record import cast, record
from tpc.state import STATE
from tpc.tensor import Tensor, from_array

_SEED_BITS = (1 << 64) - 1


class Generator:
    """A stream of random numbers with a state of its own: `state` is the tensor (key, counter)."""

    def __init__(self, device: Any = "cpu") -> None:
        self.state = _fresh_state(DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream that belongs to `seed`, from its beginning."""
        self.state._write(_fresh_state(seed))
        return self

    def seed(self) -> int:
        """Starts a stream that nobody can foresee; returns its seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that the stream was started with."""
        return int(self.state._array()[0])

    def get_state(self) -> Tensor:
        """A copy of the state."""
        return e.clone(self.state)

    def set_state(self, new_state: Tensor) -> Generator:
        """Goes on from a state that `get_state` gave."""
        if not isinstance(new_state, Tensor) or new_state._type != self.state._type:
            raise TypeError("a generator state is what get_state() returned")
        self.state._write(e.clone(new_state))
        return self

    def clone_state(self) -> Generator:
        """Another generator at the same point."""
        return Generator().set_state(self.state)

    @property
    def device(self) -> Any:
        from tpc.device import CPU

        return CPU


DEFAULT_SEED = 67280421310721
"""PyTorch's, as good as any."""


def _fresh_state(seed: int) -> Tensor:
    if not -(1 << 63) <= seed <= _SEED_BITS:
        raise RuntimeError(f"Overflow when unpacking long long: the seed {seed} does not fit 64 bits")
    return from_array(np.array([seed & _SEED_BITS, 0], dtype=np.uint64))


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the default generator with a number that nobody can foresee, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """A copy of the default generator's state."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = (), enabled: bool = True, **options: Any) -> Iterator[None]:
    """Restores the default generator's state after the block."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            set_rng_state(before)


def _draw(defn: OpDef, generator: Generator | None, attrs: dict[str, Any]) -> Tensor:
    """One op on the generator's state, which moves on."""
    if STATE.vmaps:
        return _draw_batched(STATE.vmaps[-1], defn, generator, attrs)
    state = (generator or default_generator).state
    value, after = record(defn, (state,), attrs)
    state._write(after)
    return value  # type: ignore[no-any-return]


def _draw_batched(level: VmapLevel, defn: OpDef, generator: Generator | None, attrs: dict[str, Any]) -> Tensor:
    """Inside vmap: an error, one draw for all samples, or one for each."""
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
            "vmap or perform the randomness operation out of vmap"
        )
    with lowered(level):
        if level.randomness == "same":
            return _draw(defn, generator, attrs)
        if defn is ops.randperm:
            return Batched(stack([_draw(defn, generator, attrs) for _ in range(level.batch_size)]), level)
        return Batched(_draw(defn, generator, {**attrs, "shape": (level.batch_size, *attrs["shape"])}), level)


def _finished(x: Tensor, requires_grad: bool, out: Tensor | None = None) -> Tensor:
    if out is not None:
        return e.stored(x, out)
    return x.requires_grad_() if requires_grad else x


def _number(shape: tuple[int, ...], dtype: Any, defn: OpDef, generator: Generator | None) -> Tensor:
    kind = default_dtype() if dtype is None else ir_dtype(dtype)
    if is_complex(kind):
        part = BY_IR[real_dtype(kind)]
        real, imag = (_number(shape, part, defn, generator) for _ in range(2))
        both = e.add(cast(real, kind), e.mul(imag, 1j))
        return e.mul(both, math.sqrt(0.5)) if defn is ops.randn else both
    if not is_floating(kind):
        raise RuntimeError(f"{defn.name} is not implemented for {BY_IR[kind]}: random numbers are floating")
    return _draw(defn, generator, {"shape": shape, "dtype": kind})


def rand(
    *size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    return _finished(_number(checked_shape(size), dtype, ops.rand, generator), requires_grad, out)


def randn(
    *size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers of the standard normal distribution."""
    return _finished(_number(checked_shape(size), dtype, ops.randn, generator), requires_grad, out)


def randint(
    *args: Any, low: int = 0, high: int | None = None, size: Sequence[int] | None = None, generator: Generator | None = None,
    out: Tensor | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
) -> Tensor:  # fmt: skip
    """`randint(high, size)` or `randint(low, high, size)`: integers in [low, high)."""
    given = list(args)
    if size is None:
        size = given.pop()
    if len(given) == 2:
        low, high = given
    elif given:
        high = given[0] if high is None else high
    if high is None:
        raise TypeError("randint() needs high and size")
    kind = "i64" if dtype is None else ir_dtype(dtype)
    return _finished(_integers(int(low), int(high), checked_shape((size,)), kind, generator), requires_grad, out)


def _integers(low: int, high: int, shape: tuple[int, ...], kind: str, generator: Generator | None) -> Tensor:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    drawn = kind if kind[0] in "iu" else "i64"
    return cast(_draw(ops.randint, generator, {"low": low, "high": high, "shape": shape, "dtype": drawn}), kind)


def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """0 to n - 1 in random order."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    drawn = _draw(ops.randperm, generator, {"n": int(n)})
    return _finished(cast(drawn, "i64" if dtype is None else ir_dtype(dtype)), requires_grad, out)


def rand_like(
    input: Tensor, *, dtype: Any = None, generator: Generator | None = None, requires_grad: bool = False, **options: Any
) -> Tensor:
    """Uniform numbers in the shape and dtype of `input`."""
    return _finished(_number(input._type.shape, input.dtype if dtype is None else dtype, ops.rand, generator), requires_grad)


def randn_like(
    input: Tensor, *, dtype: Any = None, generator: Generator | None = None, requires_grad: bool = False, **options: Any
) -> Tensor:
    """Standard normal numbers in the shape and dtype of `input`."""
    return _finished(_number(input._type.shape, input.dtype if dtype is None else dtype, ops.randn, generator), requires_grad)


def randint_like(input: Tensor, *args: int, low: int = 0, high: int | None = None, dtype: Any = None, **options: Any) -> Tensor:
    """Integers in [low, high) in the shape and dtype of `input`."""
    if args:
        low, high = (0, args[0]) if len(args) == 1 else args
    if high is None:
        raise TypeError("randint_like() needs high")
    return _integers(low, high, input._type.shape, input._type.dtype if dtype is None else ir_dtype(dtype), options.get("generator"))


def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers with mean and standard deviation given per element, or once with `size`."""
    if size is not None:
        shape: tuple[int, ...] = checked_shape((size,))
    else:
        shapes = [x._type.shape for x in (mean, std) if isinstance(x, Tensor)]
        if not shapes:
            raise TypeError("normal() needs a tensor as mean or std, or a size")
        shape = np.broadcast_shapes(*shapes)
    kinds = [x.dtype for x in (mean, std) if isinstance(x, Tensor) and is_floating(x._type.dtype)]
    drawn = _number(shape, dtype if dtype is not None else kinds[0] if kinds else None, ops.randn, generator)
    return _finished(e.add(e.mul(drawn, std), mean), requires_grad, out)


def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """0 or 1, 1 with the probability that `input` (or `p`) says."""
    kind = input._type.dtype if is_floating(input._type.dtype) else default_dtype()
    if p is None and not is_floating(input._type.dtype):
        raise RuntimeError(f"bernoulli takes probabilities, so a floating tensor, not {input.dtype}")
    uniform = _number(input._type.shape, BY_IR[kind], ops.rand, generator)
    return e.stored(cast(e.lt(uniform, input.detach() if p is None else p), input._type.dtype), out)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Indices drawn with the weights in each row of `input`."""
    from tpc.functions.arranging import cumsum
    from tpc.functions.ordering import topk
    from tpc.functions.reduction import sum
    from tpc.functions.shape import unsqueeze

    weights = input.detach()
    categories = weights._type.shape[-1]
    if weights._type.rank not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not replacement:
        if num_samples > categories:
            raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
        # the largest of w / exponential is category i with probability w_i / sum(w)
        waiting = e.neg(e.log1p(e.neg(_number(weights._type.shape, input.dtype, ops.rand, generator))))
        return e.stored(topk(e.div(weights, waiting), num_samples).indices, out)
    steps = cumsum(weights, -1)
    drawn = _number((*weights._type.shape[:-1], num_samples), input.dtype, ops.rand, generator)
    total = steps[..., -1:]  # type: ignore[index]
    below = e.le(unsqueeze(steps, -2), unsqueeze(e.mul(drawn, total), -1))
    return e.stored(e.clamp_max(sum(below, one_dim(-1, below._type.rank)), categories - 1), out)


# --- filling in place ---------------------------------------------------------------------------


def _uniform(x: Tensor, generator: Generator | None) -> Tensor:
    return _number(x._type.shape, x.dtype, ops.rand, generator)


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None, **options: Any) -> Tensor:
    """Uniform numbers in [from, to)."""
    low = options.pop("from", from_)
    if low > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
    return self._write(e.add(e.mul(_uniform(self, generator), to - low), low))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    return self._write(e.add(e.mul(_number(self._type.shape, self.dtype, ops.randn, generator), std), mean))


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """exp of normal numbers."""
    return self._write(e.exp(e.add(e.mul(_number(self._type.shape, self.dtype, ops.randn, generator), std), mean)))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """0 or 1, 1 with probability `p`, a number or a tensor."""
    kind = self._type.dtype if is_floating(self._type.dtype) else default_dtype()
    uniform = _number(self._type.shape, BY_IR[kind], ops.rand, generator)
    return self._write(cast(e.lt(uniform, p.detach() if isinstance(p, Tensor) else p), self._type.dtype))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Exponential numbers with rate `lambd`."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return self._write(e.div(e.log1p(e.neg(_uniform(self, generator))), -lambd))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Number of trials up to the first success, which has probability `p`."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    uniform = _number(self._type.shape, self.dtype if is_floating(self._type.dtype) else None, ops.rand, generator)
    return self._write(cast(e.add(e.floor(e.div(e.log1p(e.neg(uniform)), math.log1p(-p))), 1), self._type.dtype))


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Numbers of the Cauchy distribution."""
    angle = e.mul(e.sub(_uniform(self, generator), 0.5), math.pi)
    return self._write(e.add(e.mul(e.tan(angle), sigma), median))


def random_(self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Integers in [from, to); `random_(to)` starts at 0; without arguments the whole range of the dtype."""
    if to is None:
        from_, to = 0, from_
    if to is None:
        dtype = self._type.dtype
        to = 2 if dtype == "bool" else 1 << 24 if dtype == "f32" else 1 << 53 if dtype == "f64" else 1 << 11 if dtype == "f16" else 0
        to = to or int(np.iinfo(self._type.numpy_dtype).max)
    return self._write(_integers(int(from_ or 0), int(to), self._type.shape, self._type.dtype, generator))
