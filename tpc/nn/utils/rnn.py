"""Sequences of several lengths: padded to one length, or packed step by step, which recurrent layers take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tpc.functions.factories import full, tensor
from tpc.functions.joining import stack
from tpc.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpad_sequence",
]  # fmt: skip


class PackedSequence(NamedTuple):
    """Sequences, the longest first, step by step: `batch_sizes` says how many go on at each step, `sorted_indices` which they were."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With the elements converted."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def float(self) -> PackedSequence:
        """With float32 elements."""
        return self._replace(data=self.data.float())

    def double(self) -> PackedSequence:
        """With float64 elements."""
        return self._replace(data=self.data.double())

    def cpu(self) -> PackedSequence:
        """Itself."""
        return self

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Any) -> Any:
    """Where each number stands; None stays None."""
    return None if permutation is None else permutation.argsort()


def _lengths(batch_sizes: Sequence[int]) -> list[int]:
    """How long each sequence is, the longest first."""
    return [sum(n > k for n in batch_sizes) for k in range(batch_sizes[0])]


def _places(batch_sizes: Sequence[int]) -> Any:
    """Where the packed elements lie in the padded form, seen as [length * batch, ...]."""
    return tensor([t * batch_sizes[0] + k for t, n in enumerate(batch_sizes) for k in range(n)])


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """[length, batch, ...] (or batch first) without the padding; `RuntimeError` where lengths do not fall, unless they are to be sorted."""
    given = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    steps = input.transpose(0, 1) if batch_first else input
    if len(given) != steps.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(given)} (batch_size={steps.shape[1]})")
    if min(given) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    order = None
    if not enforce_sorted:
        order = tensor(sorted(range(len(given)), key=lambda k: -given[k]))
        steps = steps.index_select(1, order)
        given = sorted(given, reverse=True)
    elif given != sorted(given, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to have "
            "it sorted."
        )
    if given[0] > steps.shape[0]:
        raise RuntimeError(f"Expected no length above {steps.shape[0]}, that of the padded sequences, but got {given[0]}")
    sizes = [sum(n > t for n in given) for t in range(given[0])]
    data = steps[: given[0]].flatten(0, 1).index_select(0, _places(sizes))
    return PackedSequence(data, tensor(sizes), order, invert_permutation(order))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """The padded sequences in their first order, and their lengths."""
    sizes = sequence.batch_sizes.tolist()
    longest = len(sizes) if total_length is None else total_length
    if longest < len(sizes):
        raise ValueError(
            f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and "
            f"max sequence length being {len(sizes)}"
        )
    rest = tuple(sequence.data.shape[1:])
    blank: Any = full((longest * sizes[0], *rest), padding_value, dtype=sequence.data.dtype)
    padded = blank.index_copy(0, _places(sizes), sequence.data).view(longest, sizes[0], *rest)
    lengths: Any = tensor(_lengths(sizes))
    if sequence.unsorted_indices is not None:
        padded, lengths = padded.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(sequences: Iterable[Any], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Any:
    """Tensors [length, ...] as one, [longest, batch, ...] or batch first."""
    if padding_side not in ("left", "right"):
        raise ValueError(f"padding_side should be either 'right' or 'left', but got {padding_side}")
    given = list(sequences)
    longest = max(x.shape[0] for x in given)
    rows = []
    for x in given:
        row: Any = full((longest, *x.shape[1:]), padding_value, dtype=x.dtype)
        (row[: x.shape[0]] if padding_side == "right" else row[longest - x.shape[0] :]).copy_(x)
        rows.append(row)
    return stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded tensor."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors [length, ...], packed."""
    return pack_padded_sequence(pad_sequence(sequences), [x.shape[0] for x in sequences], enforce_sorted=enforce_sorted)
