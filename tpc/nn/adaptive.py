"""The adaptive softmax, for many classes of which few are frequent (Grave et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tpc.functions.elementwise import where
from tpc.functions.factories import zeros
from tpc.functions.joining import cat
from tpc.nn import functional as fn
from tpc.nn.containers import ModuleList, Sequential
from tpc.nn.linear import Linear
from tpc.nn.module import Module


class _ASMoutput(NamedTuple):
    """The logarithm of the target's probability per sample, and their negative mean."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """[batch, in_features] and targets [batch] (or one of each) to logarithms of probabilities and the loss.

    Classes are sorted by how frequent they are: the head knows those below `cutoffs[0]` and one entry for each further cluster, whose
    layers have `in_features / div_value ** k` hidden features.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        given = list(cutoffs)
        if not given:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if given != sorted(set(given)) or min(given) <= 0 or max(given) > n_classes - 1 or any(int(c) != c for c in given):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 "
                "and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*given, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = given[0], len(given)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, dtype=dtype)
        self.tail = ModuleList()
        for k in range(self.n_clusters):
            hidden = int(in_features // div_value ** (k + 1))
            size = self.cutoffs[k + 1] - self.cutoffs[k]
            self.tail.append(Sequential(Linear(in_features, hidden, False, dtype=dtype), Linear(hidden, size, False, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Those of its linear layers."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        single = target_.dim() == 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1 or (not single and input_.shape[0] != target_.shape[0]):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        if bool(((target < 0) | (target >= self.n_classes)).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, {target.max().item()}] "
                "were found. "
            )
        place: Any = where(target < self.shortlist_size, target, 0)
        inside: Any = zeros(target.shape, dtype=input.dtype)
        for k, low, high in zip(range(self.n_clusters), self.cutoffs, self.cutoffs[1:], strict=False):
            mine = (target >= low) & (target < high)
            # The weights of a cluster that no target is in get no gradient at all.
            if bool(mine.any()):
                logs = fn.log_softmax(self.tail[k](input), -1)
                inside = where(mine, logs.gather(1, where(mine, target - low, 0).unsqueeze(1)).squeeze(1), inside)
                place = where(mine, self.shortlist_size + k, place)
        output = fn.log_softmax(self.head(input), -1).gather(1, place.unsqueeze(1)).squeeze(1) + inside
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Any) -> Any:
        """Logarithms of all classes' probabilities, [batch, n_classes]."""
        head: Any = fn.log_softmax(self.head(input), -1)
        short = self.shortlist_size
        tails = [fn.log_softmax(part(input), -1) + head[:, short + k].unsqueeze(1) for k, part in enumerate(self.tail)]
        return cat([head[:, :short], *tails], 1)

    def predict(self, input: Any) -> Any:
        """The likeliest class, [batch]; a cluster's classes are looked at only where the head prefers a cluster."""
        first = self.head(input).argmax(1)
        return where(first < self.shortlist_size, first, self.log_prob(input).argmax(1))
