"""Quantiles, modes, histograms, covariance, and derivatives of sampled functions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tpc.dtype import BY_IR
from tpc.functions import elementwise as e
from tpc.functions.derived import lerp
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import as_operand, stored
from tpc.functions.factories import arange, full, linspace, ones_of, tensor
from tpc.functions.gathering import index_add
from tpc.functions.joining import cat
from tpc.functions.linalg import matmul
from tpc.functions.ordering import pair, sort
from tpc.functions.reduction import Pair, amax, amin, argmax, mean, picked, sum, with_dims
from tpc.functions.scans import cummax, places
from tpc.functions.shape import flatten, movedim, reshape, sliced, transpose
from tpc.ir.types import is_complex, is_differentiable, is_floating, real_dtype
from tpc.record import cast
from tpc.state import STATE
from tpc.tensor import Tensor

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")

# --- order statistics ---------------------------------------------------------------------------


def _ranks(name: str, q: Any, x: Tensor) -> Tensor:
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return tensor(float(q), dtype=x.dtype)
    if q._type.rank > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q._type.dtype != x._type.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if STATE.trace is None and not STATE.vmaps and not all(0 <= v <= 1 for v in flatten(q.detach()).tolist()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, how: str, out: Tensor | None, skip: bool) -> Tensor:
    if not input._type.numel:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if input._type.dtype not in ("f32", "f64"):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if how not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {how}")
    wanted = _ranks(name, q, input)
    rank = input._type.rank
    at = one_dim(0 if dim is None else dim, rank)
    x = flatten(input) if dim is None else movedim(with_dims(input), at, -1)
    found = movedim(_at_ranks(sort(x).values, x, reshape(wanted, (-1,)), how, skip), -1, 0)
    rows = list(x._type.shape[:-1])
    if keepdim and rank:
        rows = [1] * rank if dim is None else [*rows[:at], 1, *rows[at:]]
    elif dim is not None and not rank:
        rows = []
    return stored(reshape(found, (*wanted._type.shape, *rows)), out)


def _at_ranks(ordered: Tensor, x: Tensor, q: Tensor, how: str, skip: bool) -> Tensor:
    """The elements of sorted rows at the share `q` of their length, interpolated. Rows with NaN give NaN unless those are skipped."""
    size = x._type.shape[-1]
    known = sum(cast(e.logical_not(e.isnan(x.detach())), q._type.dtype), -1, keepdim=True)
    rank = e.mul(q, e.clamp_min(e.sub(known, 1), 0) if skip else float(size - 1))
    if not skip:
        rank = e.where(e.eq(known, size), rank, float(size - 1))
    if how in ("lower", "higher", "nearest"):
        rank = {"lower": e.floor, "higher": e.ceil, "nearest": e.round}[how](rank)
    below = e.floor(rank.detach())
    low = picked(ordered, cast(below, "i64"), -1)
    if how in ("lower", "higher", "nearest"):
        return low
    high = picked(ordered, cast(e.ceil(rank.detach()), "i64"), -1)
    return lerp(low, high, full((), 0.5, dtype=BY_IR[q._type.dtype]) if how == "midpoint" else e.sub(rank, below))


def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out: Tensor | None = None
) -> Tensor:
    """The values below which the shares `q` of the elements lie; several shares come first in the shape. NaN where there is one."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out, skip=False)


def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out: Tensor | None = None
) -> Tensor:
    """`quantile` of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out, skip=True)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Pair:
    """(values, indices) of the most frequent elements, the smallest of equally frequent ones; the index is that of the last."""
    at, x = one_dim(dim, input._type.rank), with_dims(input)
    if x._type.shape[at] == 0:
        raise IndexError(f"mode(): Expected reduction dim {at} to have non-zero size.")
    ordered, order = sort(x.detach(), at, stable=True)
    size = x._type.shape[at]
    here = places(ordered, at)
    fresh = e.ne(sliced(ordered, at, 1, size), sliced(ordered, at, 0, size - 1))
    starts = cat((sliced(here, at, 0, 1), e.where(fresh, sliced(here, at, 1, size), 0)), at)
    end = argmax(e.sub(here, cummax(starts, at).values), at, keepdim=True)
    indices = picked(order, end, at)
    values = picked(x, indices, at)
    if not keepdim or not input._type.shape:
        kept = x._type.shape[:at] + x._type.shape[at + 1 :]
        values, indices = reshape(values, kept), reshape(indices, kept)
    return pair(values, indices, out)


# --- histograms ---------------------------------------------------------------------------------


class Histogram(NamedTuple):
    """How much lies in each bin, and the borders between bins."""

    hist: Tensor
    bin_edges: Tensor


def _limits(name: str, x: Tensor, low: Any, high: Any, border: float) -> tuple[Tensor, Tensor]:
    """The range of the bins: that of the data where both bounds are equal, wider by a border at each side where that is empty."""
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min" if name == "torch.histc" else f"{name}: min should not exceed max")
    kind = x._type.dtype
    if low == high and x._type.numel:
        a, b = amin(x), amax(x)
        if STATE.trace is None and not STATE.vmaps and not math.isfinite(float(e.sub(b, a))):
            raise RuntimeError(f"{name}: range of [{float(a)}, {float(b)}] is not finite")
    else:
        a, b = (cast(as_operand(float(v)), kind) for v in (low, high))
    empty = e.eq(a, b)
    return e.where(empty, e.sub(a, border), a), e.where(empty, e.add(b, border), b)


def _counted(x: Tensor, bins: int, low: Tensor, high: Tensor, weights: Tensor) -> Tensor:
    """The weights of a vector's elements added up in bins of equal width; what is outside is left out."""
    inside = e.logical_and(e.ge(x, low), e.le(x, high))
    share = e.div(e.mul(e.sub(e.where(inside, x, low), low), bins), e.sub(high, low))
    bin = e.clamp_max(cast(share, "i64"), bins - 1)
    base = cast(e.mul(arange(bins), 0), x._type.dtype)
    return index_add(base, 0, bin, e.where(inside, weights, 0))


def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements lie in each of `bins` equal parts of [min, max] (the range of the data where both are equal)."""
    if not is_floating(input._type.dtype):
        raise NotImplementedError(f"histc is for floating tensors, not {input.dtype}")
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    x = flatten(input.detach())
    low, high = _limits("torch.histc", x, min, max, 1)
    return stored(_counted(x, bins, low, high, ones_of(x._type)), out)


def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None, density: bool = False, out: Any = None
) -> Histogram:
    """(hist, bin_edges): elements, or their weights, per bin. `bins` is a number or the borders themselves."""
    x = flatten(input.detach())
    weights = ones_of(x._type) if weight is None else flatten(weight.detach())
    if isinstance(bins, Tensor):
        from tpc.functions.searching import searchsorted

        edges, count = bins, bins._type.numel - 1
        inside = e.logical_and(e.ge(x, edges[0]), e.le(x, edges[-1]))  # type: ignore[index]
        bin = e.clamp(e.sub(searchsorted(edges, x, right=True), 1), 0, count - 1)
        hist = index_add(cast(e.mul(arange(count), 0), x._type.dtype), 0, bin, e.where(inside, weights, 0))
    else:
        least, most = (0, 0) if range is None else range
        low, high = _limits("torch.histogram()", x, least, most, 0.5)
        steps = linspace(0.0, 1.0, int(bins) + 1, dtype=BY_IR[x._type.dtype])
        edges = e.add(low, e.mul(e.sub(high, low), steps))
        hist = _counted(x, int(bins), low, high, weights)
    if density:
        hist = e.div(e.div(hist, sum(hist)), e.sub(sliced(edges, 0, 1, edges._type.numel), sliced(edges, 0, 0, edges._type.numel - 1)))
    return Histogram(hist, edges) if out is None else Histogram(stored(hist, out[0]), stored(edges, out[1]))


# --- several variables --------------------------------------------------------------------------


def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Covariances of the variables that the rows are; columns are observations, which may have counts and weights."""
    if input._type.rank > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input._type.rank} dimensions")
    x = input if input._type.rank == 2 else reshape(input, (1, -1))
    if not is_differentiable(x._type.dtype):
        x = cast(x, "f32")
    kind, count = x._type.dtype, x._type.shape[1]
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given._type.rank > 1 or given._type.numel != count:
            raise RuntimeError(f"cov(): expected {name} to have one number per observation, {count} of them")
        part = cast(given, real_dtype(kind))
        weights = part if weights is None else e.mul(weights, part)
    total: Any = count if weights is None else sum(weights)
    centre = mean(x, 1, keepdim=True) if weights is None else e.div(sum(e.mul(x, weights), 1, keepdim=True), total)
    away = e.sub(x, centre)
    if weights is None:
        free: Any = max(total - correction, 0)
    elif aweights is not None and correction:
        free = e.clamp_min(e.sub(total, e.div(e.mul(correction, sum(e.mul(weights, cast(aweights, real_dtype(kind))))), total)), 0)
    else:
        free = e.clamp_min(e.sub(total, correction), 0)
    other = e.conj(transpose(away if weights is None else e.mul(away, weights), 0, 1))
    found = e.div(matmul(away, other), free)
    return reshape(found, ()) if x._type.shape[0] == 1 else found


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of the variables that the rows are, in [-1, 1]."""
    if input._type.rank > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input._type.rank} dimensions"
        )
    c = cov(input)
    if not c._type.shape:
        return e.div(c, c)
    from tpc.functions.shape import diagonal

    spread = e.sqrt(e.real(diagonal(c)))
    scaled = e.div(e.div(c, reshape(spread, (-1, 1))), reshape(spread, (1, -1)))
    if is_complex(c._type.dtype):
        return scaled
    return e.clamp(scaled, -1, 1)
