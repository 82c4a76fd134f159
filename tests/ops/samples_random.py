"""Samples of random numbers: operand 0 is a generator's state, (key, counter)."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import sample

STATE = np.array([1234, 5], np.uint64)

for name in ("rand", "randn"):
    for dtype in ("f16", "f32", "f64"):
        sample(name, STATE, shape=(3, 4), dtype=dtype)
    sample(name, STATE, shape=(), dtype="f32")
    sample(name, STATE, shape=(0, 2), dtype="f32")
    sample(name, np.array([0, 2**64 - 1], np.uint64), shape=(9,), dtype="f64")
sample("randn", STATE, shape=(3,), dtype="c64")
for dtype in ("i64", "i32", "u8", "f32", "bool"):
    sample("randint", STATE, low=0, high=2, shape=(3, 4), dtype=dtype)
sample("randint", STATE, low=-7, high=100, shape=(), dtype="i64")
sample("randperm", STATE, n=10)
sample("randperm", STATE, n=0)
