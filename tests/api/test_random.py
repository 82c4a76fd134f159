"""Random numbers: reproducible streams, distributions, generators, what happens inside compiled functions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tpc
from tpc.functions import random as r
from tpc.nn import functional as nn

MANY = 20_000


@pytest.fixture(autouse=True)
def same_numbers_every_time():
    with r.fork_rng():
        r.manual_seed(7)
        yield


def moments(x: tpc.Tensor) -> tuple[float, float]:
    return x.mean().item(), x.std().item()


# --- streams ------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_stream_again():
    r.manual_seed(1)
    first = [r.rand(3).tolist(), r.randn(2).tolist(), r.randperm(5).tolist()]
    r.manual_seed(1)
    assert [r.rand(3).tolist(), r.randn(2).tolist(), r.randperm(5).tolist()] == first
    r.manual_seed(2)
    assert r.rand(3).tolist() != first[0]


def test_no_number_comes_twice():
    assert r.rand(4).tolist() != r.rand(4).tolist()


def test_a_state_can_be_kept_and_gone_back_to():
    r.rand(3)
    state = r.get_rng_state()
    first = r.rand(3)
    r.set_rng_state(state)
    assert r.rand(3).tolist() == first.tolist()
    with pytest.raises(TypeError, match="generator state"):
        r.set_rng_state(tpc.zeros(2))


def test_fork_rng_leaves_the_stream_where_it_was():
    state = r.get_rng_state().tolist()
    with r.fork_rng():
        r.rand(3)
    assert r.get_rng_state().tolist() == state


def test_generators_are_independent():
    g = r.Generator().manual_seed(5)
    first = r.rand(2, generator=g).tolist()
    r.rand(10)
    assert r.rand(2, generator=r.Generator().manual_seed(5)).tolist() == first
    twin = g.clone_state()
    assert r.rand(2, generator=g).tolist() == r.rand(2, generator=twin).tolist()
    assert g.initial_seed() == 5


def test_seeds():
    r.manual_seed(11)
    assert r.initial_seed() == 11
    assert r.manual_seed(-1).initial_seed() == 2**64 - 1
    assert r.seed() == r.initial_seed()
    with pytest.raises(RuntimeError, match="does not fit 64 bits"):
        r.manual_seed(2**65)


# --- distributions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda: r.rand(MANY), 0.5, 12**-0.5),
        (lambda: r.randn(MANY), 0, 1),
        (lambda: r.randn(MANY, dtype=tpc.float16).float(), 0, 1),
        (lambda: r.normal(2.0, 3.0, (MANY,)), 2, 3),
        (lambda: r.normal(tpc.full((MANY,), 2.0), 3.0), 2, 3),
        (lambda: r.randint(0, 10, (MANY,)).float(), 4.5, 2.87),
        (lambda: r.bernoulli(tpc.full((MANY,), 0.3)), 0.3, 0.458),
        (lambda: tpc.empty(MANY).uniform_(-1, 3), 1, 4 * 12**-0.5),
        (lambda: tpc.empty(MANY).normal_(1, 2), 1, 2),
        (lambda: tpc.empty(MANY).exponential_(2), 0.5, 0.5),
        (lambda: tpc.empty(MANY).bernoulli_(0.25), 0.25, 0.433),
        (lambda: tpc.empty(MANY).geometric_(0.5), 2, 2**0.5),
        (lambda: tpc.empty(MANY).random_(10), 4.5, 2.87),
        (lambda: nn.dropout(tpc.ones(MANY), 0.2), 1, 0.5),
    ],
)
def test_mean_and_deviation(draw: Callable[[], tpc.Tensor], mean: float, deviation: float):
    assert moments(draw()) == (pytest.approx(mean, abs=0.05), pytest.approx(deviation, rel=0.05))


def test_ranges():
    x = r.rand(MANY)
    assert x.min().item() >= 0
    assert x.max().item() < 1
    k = r.randint(3, 6, (MANY,))
    assert (k.min().item(), k.max().item(), k.dtype) == (3, 5, tpc.int64)
    assert sorted(r.randperm(50).tolist()) == list(range(50))
    assert set(r.bernoulli(r.rand(100)).tolist()) == {0, 1}


def test_multinomial_draws_by_weight():
    counts = r.multinomial(tpc.tensor([0.1, 0.0, 0.9]), MANY, replacement=True).bincount()
    assert counts[1].item() == 0
    assert (counts[0] / MANY).item() == pytest.approx(0.1, abs=0.02)
    assert sorted(r.multinomial(tpc.ones(4), 4).tolist()) == [0, 1, 2, 3]
    assert r.multinomial(tpc.tensor([[0.0, 1.0], [1.0, 0.0]]), 1).tolist() == [[1], [0]]
    with pytest.raises(RuntimeError, match="without replacement"):
        r.multinomial(tpc.ones(2), 3)


def test_shapes_and_dtypes():
    assert (r.rand(2, 3).shape, r.rand((2, 3)).shape, r.rand().shape, r.rand(0).shape) == ((2, 3), (2, 3), (), (0,))
    assert r.randn(2, dtype=tpc.float64).dtype is tpc.float64
    assert r.randn(2, dtype=tpc.complex64).dtype is tpc.complex64
    like = tpc.ones(2, 2, dtype=tpc.float64)
    assert (r.rand_like(like).dtype, r.randn_like(like, dtype=tpc.float32).dtype) == (tpc.float64, tpc.float32)
    assert (r.randint_like(like, 5).dtype, r.randint(2, (3,), dtype=tpc.int8).dtype) == (tpc.float64, tpc.int8)
    assert r.rand(2, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: r.rand(-1), "negative dimension"),
        (lambda: r.rand(2, dtype=tpc.int64), "random numbers are floating"),
        (lambda: r.randint(5, 3, (2,)), "expects 'from' to be less than 'to'"),
        (lambda: tpc.ones(2).uniform_(1, 0), r"from=1 > to=0"),
        (lambda: tpc.ones(2).normal_(std=-1), "std >= 0.0"),
        (lambda: tpc.ones(2, requires_grad=True).uniform_(), "a leaf Variable that requires grad"),
    ],
)
def test_refusals(call: Callable[[], object], message: str):
    with pytest.raises(RuntimeError, match=message):
        call()


# --- gradients and compiled functions -----------------------------------------------------------


def test_dropout_scales_what_it_keeps_and_its_gradient():
    x = tpc.ones(1000, requires_grad=True)
    y = nn.dropout(x, 0.75)
    assert set(y.tolist()) == {0, 4}
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert nn.dropout(x, 0.75, training=False) is x
    assert nn.dropout(x, 1.0).sum().item() == 0


def test_a_compiled_function_draws_what_the_plain_one_draws():
    def noisy(x: tpc.Tensor) -> tuple[tpc.Tensor, tpc.Tensor]:
        return nn.dropout(x, 0.5) + r.rand_like(x), r.randn(3)

    x = tpc.ones(5)
    r.manual_seed(3)
    expected = [[y.tolist() for y in noisy(x)] for _ in range(3)]
    compiled = tpc.compile(noisy)
    r.manual_seed(3)
    assert [[y.tolist() for y in compiled(x)] for _ in range(3)] == expected


def test_backward_sees_the_mask_of_forward():
    @tpc.compile
    def step(x: tpc.Tensor) -> tuple[tpc.Tensor, tpc.Tensor]:
        y = nn.dropout(x, 0.5)
        return y, tpc.autograd.grad(y.sum(), x)[0]

    y, g = step(tpc.ones(100, requires_grad=True))
    assert y.tolist() == g.tolist()


def test_seeding_works_inside_a_compiled_function():
    @tpc.compile
    def draw() -> tpc.Tensor:
        r.manual_seed(5)
        return r.rand(3)

    assert draw().tolist() == draw().tolist()
    r.manual_seed(5)
    assert r.rand(3).tolist() == draw().tolist()
