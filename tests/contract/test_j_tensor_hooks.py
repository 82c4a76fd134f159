"""Section J, second part: hooks on tensors, their order, retained gradients."""

from __future__ import annotations

import warnings

import pytest

import tpc
from tests.contract.modes import Double, Mode, Square, leaf, plain

graph = tpc.autograd.graph

BAD_RETURNS = {
    "a wrong shape": (lambda g: tpc.ones(5), RuntimeError, "has changed the size of value"),
    "a wrong dtype": (lambda g: g.to(tpc.float64), RuntimeError, "has changed the type of value"),
    "a number": (lambda g: 5, TypeError, "expected Variable"),
    "a tuple": (lambda g: (g,), TypeError, "expected Variable"),
}


@pytest.mark.parametrize("kind", BAD_RETURNS)
def test_124_what_a_tensor_hook_must_not_return(mode: Mode, kind: str):
    hook, error, words = BAD_RETURNS[kind]

    def on_output(x):
        y = Square.apply(x)
        y.register_hook(hook)
        return y

    with pytest.raises(error, match=words):
        mode.backward(on_output, leaf(3.0))


@pytest.mark.parametrize("kind", BAD_RETURNS)
def test_124_nor_one_of_a_leaf(mode: Mode, kind: str):
    hook, error, words = BAD_RETURNS[kind]
    x = leaf(3.0)
    x.register_hook(hook)
    with pytest.raises(error, match=words):
        mode.backward(Square.apply, x)


def test_125_tensor_hooks_see_the_total_gradient_once_and_in_order(mode: Mode):
    seen = []

    def hooked(x):
        y = Square.apply(x)
        y.register_hook(lambda g: seen.append("first"))
        y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: g + 1)
        return y * 3 + y * 4

    x = leaf(3.0)
    mode.backward(hooked, x)
    assert x.grad.item() == (7 * 2 + 1) * 6
    assert mode.name != "deferred" or seen == ["first"]


def test_125_hooks_of_leaves(mode: Mode):
    x = leaf(3.0)
    x.register_hook(lambda g: g * 10)
    mode.backward(lambda x: Square.apply(x) + x, x)
    assert x.grad.item() == 70.0


def test_125_hooks_on_results_of_the_call(mode: Mode):
    x = leaf(3.0)
    y = mode.call(Square.apply, x)
    y.register_hook(lambda g: g * 10)
    (y * 2 + y).backward(tpc.ones(1))
    assert x.grad.item() == 180.0


def test_125_an_untracked_tensor_has_no_hooks(mode: Mode):
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        mode.call(lambda x: x.register_hook(lambda g: g), plain(1.0))


def test_126_the_order_of_all_hooks():
    seen = []
    x = leaf(2.0)
    y = Square.apply(x)
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate.register_hook(lambda gi, go: seen.append("accumulation node, after"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("after accumulation"))
    accumulate.register_prehook(lambda go: seen.append("accumulation node, before"))
    x.register_hook(lambda g: seen.append("leaf"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("node, after"))
    y.grad_fn.register_prehook(lambda go: seen.append("node, before"))
    y.register_hook(lambda g: seen.append("output"))
    y.backward(tpc.ones(1))
    assert seen == [
        "output",
        "node, before",
        "node, after",
        "leaf",
        "accumulation node, before",
        "after accumulation",
        "accumulation node, after",
    ]


def test_126_the_order_shows_in_the_values(mode: Mode):
    def hooked(x):
        y = Square.apply(x)
        y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1,))
        y.grad_fn.register_prehook(lambda go: (go[0] + 1,))
        y.register_hook(lambda g: g * 10)
        return y

    x = leaf(2.0)
    x.register_hook(lambda g: g * 100)
    mode.backward(hooked, x)
    assert x.grad.item() == ((1 * 10 + 1) * 4 + 1) * 100


def test_127_retain_grad_keeps_the_gradient_after_all_tensor_hooks(mode: Mode):
    def retained(x):
        y = x * 1
        y.retain_grad()
        y.register_hook(lambda g: g * 10)
        (y * 3).backward(tpc.ones(1))
        assert y.retains_grad
        return y.grad * 1

    assert mode.call(retained, leaf(1.0)).item() == 30.0


def test_127_it_adds_up_over_passes(mode: Mode):
    def retained(x):
        y = x * 1
        y.retain_grad()
        for _ in range(2):
            (y * 3).backward(tpc.ones(1), retain_graph=True)
        return y.grad * 1

    assert mode.call(retained, leaf(1.0)).item() == 6.0


def test_127_results_of_the_call_can_retain_theirs(mode: Mode):
    y = mode.call(Square.apply, leaf(3.0))
    y.retain_grad()
    (y * 3).backward(tpc.ones(1))
    assert (y.grad.item(), y.retains_grad) == (3.0, True)


def test_127_retain_grad_on_leaves_and_untracked_tensors():
    x = leaf(1.0)
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        plain(1.0).retain_grad()


def test_128_post_accumulate_hooks_run_after_grad_changed():
    x = leaf(2.0)
    seen = []

    def take(p):
        seen.append((p is x, p.grad.item()))
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(take)
    (x * 3).backward(tpc.ones(1))
    assert (seen, x.grad) == ([(True, 3.0)], None)
    handle.remove()
    (x * 3).backward(tpc.ones(1))
    assert (len(seen), x.grad.item()) == (1, 3.0)


def test_128_a_step_in_a_post_accumulate_hook(mode: Mode):
    x = leaf(2.0)

    def step(p):
        with tpc.no_grad():
            p.add_(p.grad, alpha=-0.5)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    mode.backward(lambda x: Square.apply(x), x)
    assert (x.item(), x.grad) == (0.0, None)


def test_128_only_leaves_have_them(mode: Mode):
    with pytest.raises(RuntimeError, match="non-leaf"):
        mode.call(lambda x: (x * 1).register_post_accumulate_grad_hook(lambda p: None), leaf(1.0))
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        plain(1.0).register_post_accumulate_grad_hook(lambda p: None)


@pytest.mark.parametrize("result", [3, "text"])
def test_128_they_return_none(mode: Mode, result: object):
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda p: result)
    with pytest.raises(TypeError):
        mode.backward(lambda x: x * 1, x)


def test_130_grad_runs_hooks_of_requested_tensors_but_not_those_of_accumulation():
    seen = []
    x = leaf(2.0)
    y = x * 1
    z = Square.apply(y)
    x.register_hook(lambda g: seen.append("x") or g * 10)
    z.grad_fn.register_prehook(lambda go: seen.append("z, before"))
    y.grad_fn.register_prehook(lambda go: seen.append("y, before"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("after accumulation"))
    y.grad_fn.next_functions[0][0].register_hook(lambda gi, go: seen.append("accumulation node"))
    (gx,) = tpc.autograd.grad(z, x, tpc.ones(1))
    assert (gx.item(), x.grad, seen) == (40.0, None, ["z, before", "y, before", "x"])


def test_130_hooked_values(mode: Mode):
    x = leaf(2.0)
    x.register_hook(lambda g: g * 10)
    (gx,) = mode.gradients(Square.apply, x)
    assert (gx.item(), x.grad) == (40.0, None)


def test_130_a_tensor_asked_for_beside_one_behind_it_comes_unhooked(mode: Mode):
    def both(x):
        y = x * 1
        y.register_hook(lambda g: g * 10)
        return tpc.autograd.grad(Square.apply(y), [y, x], tpc.ones(1))

    gy, gx = mode.call(both, leaf(2.0))
    assert (gy.item(), gx.item()) == (4.0, 40.0)


def test_132_a_multi_gradient_hook_gets_all_gradients_once():
    seen = []
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    graph.register_multi_grad_hook([a, b, c], lambda gs: seen.append([None if g is None else g.item() for g in gs]))
    (a * b).sum().backward()
    (a * b * c).sum().backward()
    assert seen == [[3.0, 2.0, None], [12.0, 8.0, 6.0]]


def test_132_any_means_the_first():
    seen = []
    a, b = leaf(2.0), leaf(3.0)
    handle = graph.register_multi_grad_hook([a, b], lambda g: seen.append(g.item()), mode="any")
    (a * b).sum().backward()
    (a * b).sum().backward()
    assert len(seen) == 2
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 2


def test_132_there_is_no_other_mode():
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook([leaf(1.0)], lambda gs: None, mode="some")


def test_132_in_every_mode(mode: Mode):
    def function(x, y):
        got = []
        a, b = x * 1, y * 1
        graph.register_multi_grad_hook([a, b], lambda gs: got.append(gs[0] * 10 + gs[1]))
        (a * b).sum().backward()
        return got[0].detach()

    assert mode.call(function, leaf(2.0), leaf(3.0)).item() == 32.0


class Trouble(Exception):
    pass


def trouble(*_):
    raise Trouble("in a hook")


@pytest.mark.parametrize("register", ["output", "before", "after"])
def test_133_exceptions_in_hooks_abort_the_pass(mode: Mode, register: str):
    def hooked(x):
        y = Square.apply(x)
        places = {"output": y.register_hook, "before": y.grad_fn.register_prehook, "after": y.grad_fn.register_hook}
        places[register](trouble)
        return y

    x = leaf(3.0)
    with pytest.raises(Trouble, match="in a hook"):
        mode.backward(hooked, x)
    assert x.grad is None


def test_133_exceptions_in_hooks_of_leaves(mode: Mode):
    x = leaf(3.0)
    x.register_hook(trouble)
    with warnings.catch_warnings(), pytest.raises(Trouble, match="in a hook"):
        mode.backward(Square.apply, x)


def test_a_second_pass_gives_a_retained_gradient_a_tensor_of_its_own(mode: Mode):
    """The `.grad` of a leaf is added to in place, that of another tensor is replaced: who holds the first keeps its values."""

    def run(x):
        h = Double.apply(x)
        h.retain_grad()
        (h * 3).sum().backward(retain_graph=True)
        first = h.grad
        (h * h).sum().backward()
        return first, h.grad

    first, second = mode.compiled(run)(leaf(3.0))
    assert (first.tolist(), second.tolist()) == ([3.0], [15.0])
