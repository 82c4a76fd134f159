"""Connectionist temporal classification: all alignments of a target with a longer sequence, added up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpc.functions import elementwise as e
from tpc.functions.factories import arange, filled, full
from tpc.functions.gathering import gather
from tpc.functions.joining import cat, stack
from tpc.functions.losses import reduced
from tpc.functions.reduction import logsumexp, mean, sum
from tpc.functions.shape import expand, reshape, sliced, unsqueeze
from tpc.ir.types import tensor_type
from tpc.record import cast
from tpc.tensor import Tensor, from_array

NONE = -1e30
"""The logarithm of an impossibility: finite, so that differences of two stay numbers."""


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log-probability of `targets` under every alignment with `log_probs` [time, batch, classes].

    Targets are padded rows, or one row after the other in one dimension. A target too long for its input costs infinity, or 0
    with `zero_infinity`.
    """
    batched = log_probs._type.rank == 3
    if not batched:
        log_probs = unsqueeze(log_probs, 1)
        targets = unsqueeze(targets, 0) if targets._type.rank == 1 else targets
    _, batch, classes = log_probs._type.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    ends, sizes = (_lengths(x, batch, name) for x, name in ((input_lengths, "input_lengths"), (target_lengths, "target_lengths")))
    rows = targets if targets._type.rank == 2 else _padded(targets, sizes)
    losses = e.neg(_alignments(log_probs, cast(rows, "i64"), ends, sizes, blank))
    impossible = e.gt(losses, -NONE / 2)
    losses = e.where(impossible, 0.0 if zero_infinity else math.inf, e.add(losses, _normalisation(log_probs, ends)))
    if not batched:
        losses = reshape(losses, ())
        sizes = reshape(sizes, ())
    if reduction == "mean":
        return mean(e.div(losses, e.clamp_min(cast(sizes, losses._type.dtype), 1)))
    return reduced(losses, reduction)


def _lengths(x: Any, batch: int, name: str) -> Tensor:
    lengths = x if isinstance(x, Tensor) else from_array(np.array(x, np.int64).reshape(-1))
    lengths = reshape(lengths, -1)
    if lengths._type.numel != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    return cast(lengths, "i64")


def _padded(targets: Tensor, sizes: Tensor) -> Tensor:
    """Concatenated targets as rows: their lengths are looked at."""
    lengths = sizes._array()
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    places = starts[:, None] + np.arange(max(int(lengths.max(initial=0)), 1))
    return targets[from_array(np.minimum(places, targets._type.numel - 1))]  # type: ignore[index, no-any-return]


def _alignments(logs: Tensor, rows: Tensor, ends: Tensor, sizes: Tensor, blank: int) -> Tensor:
    """For each sample the logarithm of the summed probability of its alignments: the forward algorithm over blank, label, blank, ..."""
    steps, batch, _ = logs._type.shape
    longest = rows._type.shape[1]
    gaps = filled(tensor_type("i64", (batch, longest)), blank)
    states = cat([reshape(stack([gaps, rows], 2), (batch, 2 * longest)), full((batch, 1), blank, dtype=rows.dtype)], 1)
    count = 2 * longest + 1
    known = e.le(arange(count), e.mul(unsqueeze(sizes, 1), 2))
    safe = e.where(known, states, blank)
    scores = gather(logs, 2, expand(unsqueeze(safe, 0), (steps, batch, count)))
    # A label may be reached past a blank unless it repeats the label before.
    before = cat([full((batch, 2), blank, dtype=rows.dtype), sliced(states, 1, 0, count - 2)], 1)
    skips = e.logical_and(e.ne(states, blank), e.ne(states, before))
    nothing = full((batch, 1), NONE, dtype=logs.dtype)
    totals = e.where(e.lt(arange(count), 2), scores[0], NONE)  # type: ignore[index]
    totals = e.where(known, totals, NONE)
    for t in range(1, steps):
        one = cat([nothing, sliced(totals, 1, 0, count - 1)], 1)
        two = e.where(skips, cat([nothing, nothing, sliced(totals, 1, 0, count - 2)], 1), NONE) if count > 2 else None
        ways = stack([totals, one] if two is None else [totals, one, two], 2)
        moved = e.where(known, e.clamp_min(e.add(logsumexp(ways, 2), scores[t]), NONE), NONE)  # type: ignore[index]
        totals = e.where(e.lt(t, unsqueeze(ends, 1)), moved, totals)
    last = unsqueeze(e.mul(sizes, 2), 1)
    final = gather(totals, 1, last)
    label = e.where(e.gt(last, 0), gather(totals, 1, e.clamp_min(e.sub(last, 1), 0)), NONE)
    return logsumexp(cat([final, label], 1), 1)


def _normalisation(logs: Tensor, ends: Tensor) -> Tensor:
    """Zero, with the gradient of the sums of probabilities: PyTorch's gradient is that of normalised inputs."""
    steps = logs._type.shape[0]
    within = e.lt(reshape(arange(steps), (steps, 1)), ends)
    total = sum(e.where(within, sum(e.exp(logs), 2), 0), 0)
    return e.sub(total, total.detach())
