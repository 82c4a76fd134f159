"""Section T: passes inside passes, and several threads."""

from __future__ import annotations

import gc
import threading

import pytest

import tpc
from tests.contract.modes import Double, Mode, Square, custom, leaf
from tpc.utils.checkpoint import checkpoint


class Handmade(tpc.autograd.Function):
    """Checkpointing written by hand: backward runs the function again and back-propagates through that."""

    @staticmethod
    def forward(ctx, function, x):
        ctx.function = function
        ctx.save_for_backward(x)
        return function(x)

    @staticmethod
    def backward(ctx, g):
        inner = ctx.saved_tensors[0].detach().requires_grad_()
        with tpc.enable_grad():
            y = ctx.function(inner)
        tpc.autograd.backward(y, g)
        return None, inner.grad


def test_198_backward_inside_backward(mode: Mode):
    x = leaf(2.0)
    mode.backward(lambda x: Handmade.apply(Square.apply, x), x)
    assert x.grad.tolist() == [4.0]


def test_198_to_any_depth(mode: Mode):
    nested = Square.apply
    for _ in range(4):
        nested = lambda x, inner=nested: Handmade.apply(inner, x) * 1
    x = leaf(2.0)
    mode.backward(nested, x)
    assert x.grad.tolist() == [4.0]


def test_198_inside_grad(mode: Mode):
    (gx,) = mode.gradients(lambda x: Handmade.apply(lambda x: Square.apply(x) * x, x), leaf(2.0))
    assert gx.tolist() == [12.0]


def test_198_the_outer_pass_is_unaffected(mode: Mode):
    seen = []

    def backward(ctx, g):
        seen.append(tpc.is_grad_enabled())
        inner = leaf(5.0)
        with tpc.enable_grad():
            y = Square.apply(inner)
        (gi,) = tpc.autograd.grad(y, inner, create_graph=True)
        seen.append(tpc.is_grad_enabled())
        return g * gi.detach()

    Odd = custom(forward=lambda ctx, x: x * 1, backward=backward)
    x = leaf(2.0)
    mode.backward(lambda x: Double.apply(Odd.apply(Double.apply(x))), x)
    assert x.grad.tolist() == [40.0]
    assert seen[:2] == [False, False]


def test_198_errors_of_the_inner_pass_come_out(mode: Mode):
    def broken(ctx, g):
        raise LookupError("from the inner backward")

    Broken = custom(forward=lambda ctx, x: x * 1, backward=broken)
    x = leaf(2.0)
    with pytest.raises(LookupError, match="from the inner backward"):
        mode.backward(lambda x: Handmade.apply(Broken.apply, x), x)
    mode.backward(Square.apply, x)
    assert x.grad.tolist() == [4.0]


def test_198_the_inner_pass_may_reach_leaves_from_outside(mode: Mode):
    """As a checkpointed module does: parameters get their gradients from the pass inside."""
    w = leaf(10.0)
    x = leaf(2.0)
    mode.backward(lambda x: Handmade.apply(lambda x: Square.apply(x) * w, x), x)
    assert (x.grad.tolist(), w.grad.tolist()) == ([40.0], [4.0])


@pytest.mark.parametrize("reentrant", [True, False])
def test_198_checkpoint_both_ways(mode: Mode, reentrant: bool):
    runs = []

    def part(x, w):
        runs.append(1)
        return Square.apply(x) * w

    x, w = leaf(2.0), leaf(10.0)
    mode.backward(lambda x, w: checkpoint(part, x, w, use_reentrant=reentrant) * 3, x, w)
    assert (x.grad.tolist(), w.grad.tolist()) == ([120.0], [12.0])
    assert len(runs) >= 2


def test_198_checkpoint_under_grad(mode: Mode):
    (gx,) = mode.gradients(lambda x: checkpoint(lambda x: Square.apply(x).sin(), x, use_reentrant=False), leaf(2.0))
    assert tpc.allclose(gx, 4 * tpc.cos(tpc.tensor([4.0])))


def test_198_checkpoint_in_second_order(mode: Mode):
    def run(x):
        y = checkpoint(lambda x: Square.apply(x) * x, x, use_reentrant=False)
        (first,) = tpc.autograd.grad(y, x, tpc.ones(1), create_graph=True)
        return tpc.autograd.grad(first, x, tpc.ones(1))[0]

    assert mode.call(run, leaf(2.0)).tolist() == [12.0]


@pytest.mark.parametrize("reentrant", [True, False])
def test_198_checkpoint_draws_the_same_random_numbers_again(mode: Mode, reentrant: bool):
    def part(x):
        return x * tpc.rand(4)

    tpc.manual_seed(0)
    x = tpc.ones(4).requires_grad_()
    y = mode.backward(lambda x: checkpoint(part, x, use_reentrant=reentrant), x)
    assert tpc.equal(x.grad, y.detach())


# --- threads ------------------------------------------------------------------------------------


def run_threads(count: int, work) -> list:
    """Runs `work(i)` in threads; the exceptions they raised."""
    raised = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised


def test_199_backward_runs_on_the_calling_thread():
    seen = []

    def backward(ctx, g):
        seen.append(threading.get_ident())
        return g

    custom(forward=lambda ctx, x: x * 1, backward=backward).apply(leaf(1.0)).backward()
    assert seen == [threading.get_ident()]


def test_199_threads_accumulate_into_one_leaf(mode: Mode):
    x = leaf(3.0)

    def work(i):
        for _ in range(20):
            mode.backward(Square.apply, x)

    assert run_threads(4, work) == []
    assert x.grad.tolist() == [4 * 20 * 6.0]


def test_199_threads_share_one_compiled_function(mode: Mode):
    call = mode.compiled(lambda x: Square.apply(x) * 2)
    got = {}

    def work(i):
        x = leaf(float(i))
        for _ in range(10):
            call(x).backward()
        got[i] = x.grad.tolist()

    assert run_threads(4, work) == []
    assert got == {i: [40.0 * i] for i in range(4)}


# --- long chains --------------------------------------------------------------------------------


def test_200_chains_of_20_000_nodes():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = Double.apply(y) * 0.5
    (gx,) = tpc.autograd.grad(y, x)
    assert gx.tolist() == [1.0]
    del y
    gc.collect()


def test_200_they_are_freed_without_recursion():
    y = leaf(1.0)
    for _ in range(20_000):
        y = Double.apply(y)
    del y
    z = leaf(1.0)
    for _ in range(20_000):
        z = z + 1
    del z


def test_200_inside_a_compiled_function():
    def run(x):
        y = x
        for _ in range(3_000):
            y = Double.apply(y) * 0.5
        return tpc.autograd.grad(y, x)[0]

    assert tpc.compile(run)(leaf(1.0)).tolist() == [1.0]


def test_201_threads_that_run_one_graph(mode: Mode):
    """At least one pass succeeds; the others may be told that the graph is freed."""
    x = leaf(3.0)
    y = mode.call(lambda x: Square.apply(x).sum(), x)
    raised = run_threads(4, lambda i: y.backward())
    assert len(raised) < 4
    assert all("second time" in str(error) for error in raised)
    assert x.grad.tolist() == [6.0 * (4 - len(raised))]
