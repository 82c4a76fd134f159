"""The sample table of tests/ops as calls of the public functions: every operator that has one of its name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from both import Call

from tests.ops import (  # noqa: F401 - they fill the table
    samples_elementwise,
    samples_indexing,
    samples_linalg,
    samples_nn,
    samples_reduction,
    samples_shape,
)
from tests.ops.sample import SAMPLES, Sample

RENAMED = {"dims": "dim"}
NOT_THE_SAME = {
    "where",
    "cast",
    "copy",
    "index",
    "index_put",
    "slice",
    "pad",
    "flip",
    "permute",
    "reshape",
    "broadcast_to",
    "cat",
    "nonzero",
    "full",
}
"""Operators whose public function takes its arguments in another form."""


def calls(torch: Any, tpc: Any) -> Iterator[Call]:
    """A call for each sample that both libraries have a function for."""
    for name, samples in SAMPLES.items():
        if name in NOT_THE_SAME or not hasattr(torch, name) or not hasattr(tpc, name):
            continue
        parameters = set(inspect.signature(inspect.unwrap(getattr(tpc, name))).parameters)
        for sample in samples:
            options = {RENAMED.get(k, k): v for k, v in sample.attrs.items()}
            if set(options) <= parameters:
                yield _call(sample, options)


def _call(sample: Sample, options: dict[str, Any]) -> Call:
    return Call(sample.name, tuple(sample.arrays()), options)
