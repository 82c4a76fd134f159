"""`tpc.utils.data`: data sets and a loader that stacks their samples into batches, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tpc.functions.factories import tensor
from tpc.functions.joining import stack
from tpc.functions.random import Generator, randperm
from tpc.tensor import Tensor

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate"]


class Dataset:
    """Samples by number: subclasses have `__getitem__` and `__len__`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset):
    """Rows of tensors of one length."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(x.shape[0] != tensors[0].shape[0] for x in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(x[index] for x in self.tensors)  # type: ignore[index]

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Subset(Dataset):
    """Some samples of another data set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one batch: tensors, arrays and numbers stacked, tuples and dicts part by part, anything else a list."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        return tensor(np.stack(batch))
    if isinstance(first, (bool, int, float)):
        return tensor(list(batch))
    if isinstance(first, dict):
        return {k: default_collate([x[k] for x in batch]) for k in first}
    if isinstance(first, (tuple, list)):
        return type(first)([default_collate(part) for part in zip(*batch, strict=True)])
    return list(batch)


class DataLoader:
    """Batches of a data set, in order or shuffled anew at every pass. Workers and pinned memory are not used."""

    def __init__(
        self, dataset: Any, batch_size: int = 1, shuffle: bool = False, *, drop_last: bool = False, num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, generator: Generator | None = None,
    ) -> None:  # fmt: skip
        if batch_size < 1:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.shuffle, self.generator, self.collate_fn = shuffle, generator, collate_fn or default_collate

    def __len__(self) -> int:
        full, rest = divmod(len(self.dataset), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        count = len(self.dataset)
        order = randperm(count, generator=self.generator).tolist() if self.shuffle else range(count)
        for i in range(len(self)):
            yield self.collate_fn([self.dataset[k] for k in order[i * self.batch_size : (i + 1) * self.batch_size]])
