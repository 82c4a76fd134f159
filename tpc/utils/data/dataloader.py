"""The loader: samples of a data set, stacked into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tpc.functions.factories import tensor
from tpc.functions.joining import stack
from tpc.functions.random import Generator
from tpc.tensor import Tensor
from tpc.utils.data.dataset import IterableDataset
from tpc.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


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


def default_convert(data: Any) -> Any:
    """A sample with its arrays as tensors, tuples and dicts part by part."""
    if isinstance(data, (np.ndarray, np.generic)):
        return tensor(data)
    if isinstance(data, dict):
        return {k: default_convert(x) for k, x in data.items()}
    return type(data)([default_convert(x) for x in data]) if isinstance(data, (tuple, list)) else data


def get_worker_info() -> None:
    """None: there are no workers."""


class DataLoader:
    """Batches of a data set, in order, shuffled anew at every pass, or as a sampler says. Everything happens in this process: what is
    said about workers, pinned memory and time limits has no effect."""

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
        num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
        timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None, generator: Generator | None = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        iterable = isinstance(dataset, IterableDataset)
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler options")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and ((shuffle and iterable) or drop_last):
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and not iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            # A stream has no numbers: its samples themselves are gathered into batches.
            batch_sampler = BatchSampler(dataset if iterable else sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        self.sampler, self.batch_sampler, self.num_workers, self.pin_memory = sampler, batch_sampler, num_workers, pin_memory
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._iterable = iterable

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        return len(self.dataset if self._iterable else self.sampler)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is None:
            for x in self.dataset if self._iterable else map(self.dataset.__getitem__, self.sampler):
                yield self.collate_fn(x)
            return
        for batch in self.batch_sampler:
            yield self.collate_fn(batch if self._iterable else [self.dataset[k] for k in batch])
