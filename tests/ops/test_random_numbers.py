"""Random operators: their distributions, and states whose streams never overlap."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from tests.ops.sample import Sample
from tests.ops.test_every_op import run
from tpc.runtime.kernels import random

STATE = np.array([99, 2**40], np.uint64)


def draw(name: str, state: np.ndarray = STATE, **attrs) -> tuple[np.ndarray, np.ndarray]:
    numbers, after = run(Sample(name, (state,), attrs).op(), [state])
    return numbers, after


DRAWS = {
    "rand f64": ("rand", {"shape": (1001,), "dtype": "f64"}),
    "rand f32": ("rand", {"shape": (1001,), "dtype": "f32"}),
    "rand f16": ("rand", {"shape": (1001,), "dtype": "f16"}),
    "randn f64": ("randn", {"shape": (1001,), "dtype": "f64"}),
    "randn f32": ("randn", {"shape": (1001,), "dtype": "f32"}),
    "randn c64": ("randn", {"shape": (1001,), "dtype": "c64"}),
    "randint": ("randint", {"low": 0, "high": 2**62 + 1, "shape": (1001,), "dtype": "i64"}),
    "randperm": ("randperm", {"n": 1001}),
    "nothing": ("rand", {"shape": (0,), "dtype": "f32"}),
}


@pytest.mark.parametrize("case", DRAWS)
def test_the_next_state_lies_behind_all_that_was_used(case: str):
    name, attrs = DRAWS[case]
    generators, stream = [], random.stream

    def watched(state: np.ndarray) -> np.random.Generator:
        generators.append(stream(state))
        return generators[-1]

    with mock.patch.object(random, "stream", watched):
        _, after = draw(name, **attrs)
    used = int(generators[0].bit_generator.state["state"]["counter"][0])
    assert after[0] == STATE[0]
    assert used <= int(after[1])
    assert after[1] > STATE[1]


@pytest.mark.parametrize("case", [c for c in DRAWS if c != "nothing"])
def test_a_state_gives_the_same_numbers_and_the_next_one_others(case: str):
    name, attrs = DRAWS[case]
    first, after = draw(name, **attrs)
    again, _ = draw(name, **attrs)
    second, _ = draw(name, after, **attrs)
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != second.tobytes()


def test_uniform_numbers():
    for dtype in ("f16", "f32", "f64"):
        numbers, _ = draw("rand", shape=(20000,), dtype=dtype)
        assert numbers.min() >= 0
        assert numbers.max() < 1
        assert abs(numbers.mean(dtype=np.float64) - 0.5) < 0.01


def test_normal_numbers():
    for dtype in ("f16", "f32", "f64", "c64"):
        numbers, _ = draw("randn", shape=(20000,), dtype=dtype)
        assert abs(numbers.astype(np.complex128).mean()) < 0.03
        assert abs(numbers.astype(np.complex128).var() - 1) < 0.03


def test_integers_and_permutations():
    numbers, _ = draw("randint", low=-3, high=5, shape=(5000,), dtype="i32")
    assert sorted(set(numbers.tolist())) == list(range(-3, 5))
    order, _ = draw("randperm", n=500)
    assert sorted(order.tolist()) == list(range(500))
    assert order.tolist() != list(range(500))
