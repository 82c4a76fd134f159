"""Section J, first part: hooks on nodes."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, Square, custom, leaf, plain


class Mixed(tpc.autograd.Function):
    """(a * b * k, a + b) with a number between the tensors."""

    @staticmethod
    def forward(ctx, a, k, b):
        ctx.k = k
        ctx.save_for_backward(a, b)
        return a * b * k, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * ctx.k + h, None, g * a * ctx.k + h


def hooked(register, b=None):
    """The first output of `Mixed`, with a hook put on its node by `register(node)`."""

    def function(a, *rest):
        y, _ = Mixed.apply(a, 10, rest[0] if rest else b)
        register(y.grad_fn)
        return y

    return function


def test_118_a_node_hook_sees_tensor_slots_and_raw_output_gradients(mode: Mode):
    seen = []

    def hook(grad_inputs, grad_outputs):
        seen.append((type(grad_inputs), [g is None for g in grad_inputs], type(grad_outputs), [g is None for g in grad_outputs]))

    a, b = leaf(2.0), leaf(3.0)
    mode.backward(hooked(lambda node: node.register_hook(hook)), a, b)
    assert seen[-1] == (tuple, [False, False], tuple, [False, True])
    assert (a.grad.item(), b.grad.item()) == (30.0, 20.0)


def test_118_what_it_returns_replaces_the_input_gradients(mode: Mode):
    a, b = leaf(2.0), leaf(3.0)
    mode.backward(hooked(lambda node: node.register_hook(lambda gi, go: (gi[0] * 7, None))), a, b)
    assert (a.grad.item(), b.grad) == (210.0, None)


def test_118_gradients_of_untracked_tensors_are_seen_too():
    seen = []
    y = hooked(lambda node: node.register_hook(lambda gi, go: seen.append([g.item() for g in gi])), plain(3.0))(leaf(2.0))
    y.backward(tpc.ones(1))
    assert seen == [[30.0, 20.0]]


def test_119_a_prehook_sees_and_replaces_the_raw_output_gradients(mode: Mode):
    seen = []

    def prehook(grad_outputs):
        seen.append([g is None for g in grad_outputs])
        return grad_outputs[0] * 7, None

    a, b = leaf(2.0), leaf(3.0)
    mode.backward(hooked(lambda node: node.register_prehook(prehook)), a, b)
    assert (seen[-1], a.grad.item(), b.grad.item()) == ([False, True], 210.0, 140.0)


def test_119_a_missing_gradient_cannot_be_made_up(mode: Mode):
    register = lambda node: node.register_prehook(lambda go: (go[0], tpc.ones(1)))
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        mode.backward(hooked(register), leaf(2.0), leaf(3.0))


def test_120_hooks_run_in_order_each_on_what_the_one_before_returned(mode: Mode):
    def register(node):
        node.register_hook(lambda gi, go: (gi[0] + 1, gi[1]))
        node.register_hook(lambda gi, go: (gi[0] * 10, gi[1]))
        node.register_prehook(lambda go: (go[0] + 1, go[1]))
        node.register_prehook(lambda go: (go[0] * 10, go[1]))

    a, b = leaf(2.0), leaf(3.0)
    mode.backward(hooked(register), a, b)
    assert (a.grad.item(), b.grad.item()) == ((20 * 30 + 1) * 10, 20 * 20)


def test_121_forward_may_register_hooks_on_ctx(mode: Mode):
    def forward(ctx, x):
        ctx.register_hook(lambda gi, go: (gi[0] + 1,))
        ctx.register_prehook(lambda go: (go[0] * 10,))
        return x * 2

    x = leaf(1.0)
    mode.backward(custom(forward=forward, backward=lambda ctx, g: g * 2).apply, x)
    assert x.grad.item() == 21.0


REGISTRATIONS = {
    "tensor": lambda y: y.register_hook(lambda g: g * 100),
    "node": lambda y: y.grad_fn.register_hook(lambda gi, go: (gi[0] * 100,)),
    "pre": lambda y: y.grad_fn.register_prehook(lambda go: (go[0] * 100,)),
    "multi": lambda y: tpc.autograd.graph.register_multi_grad_hook([y], lambda gs: pytest.fail("it was removed")),
}


@pytest.mark.parametrize("kind", REGISTRATIONS)
def test_122_handles_remove_any_number_of_times(mode: Mode, kind: str):
    def removed(x):
        y = Square.apply(x)
        handle = REGISTRATIONS[kind](y)
        handle.remove()
        handle.remove()
        return y

    x = leaf(3.0)
    mode.backward(removed, x)
    assert x.grad.item() == 6.0


def test_122_a_removal_made_by_a_hook_counts_from_the_next_pass():
    seen = []
    x = leaf(1.0)

    def first(g):
        seen.append(1)
        second.remove()

    x.register_hook(first)
    second = x.register_hook(lambda g: seen.append(2))
    for _ in range(2):
        (x * 1).backward(tpc.ones(1))
    assert seen == [1, 2, 1]


def test_122_handles_are_context_managers():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 100):
        (x * 1).backward(tpc.ones(1))
    (x * 1).backward(tpc.ones(1))
    assert x.grad.item() == 101.0


BAD_RETURNS = {
    "too few": (lambda gs: (gs[0],), RuntimeError, "incorrect number of values"),
    "too many": (lambda gs: (*gs, None), RuntimeError, "incorrect number of values"),
    "a number": (lambda gs: 3, TypeError, "expected tuple"),
    "a list": (lambda gs: list(gs), TypeError, "expected tuple"),
    "a tensor": (lambda gs: gs[0], TypeError, "expected tuple"),
    "a wrong shape": (lambda gs: (tpc.ones(3), gs[1]), RuntimeError, "has changed the size of value"),
    "a wrong dtype": (lambda gs: (gs[0].to(tpc.float64), gs[1]), RuntimeError, "has changed the type of value"),
    "no tensor": (lambda gs: (3, gs[1]), TypeError, "expected Variable"),
}


@pytest.mark.parametrize("kind", BAD_RETURNS)
@pytest.mark.parametrize("where", ["before", "after"])
def test_123_what_a_node_hook_must_not_return(mode: Mode, kind: str, where: str):
    result, error, words = BAD_RETURNS[kind]

    def register(node):
        if where == "before":
            node.register_prehook(result)
        else:
            node.register_hook(lambda gi, go: result(gi))

    with pytest.raises(error, match=words):
        mode.backward(hooked(register), leaf(2.0), leaf(3.0))


def test_129_leaves_are_reached_through_accumulation_nodes():
    x = leaf(3.0)
    seen = []
    node, number = Square.apply(x).grad_fn.next_functions[0]
    assert (type(node).__name__, number, node.variable is x) == ("AccumulateGrad", 0, True)
    node.register_prehook(lambda go: seen.append(("pre", len(go))))
    node.register_hook(lambda gi, go: seen.append(("post", gi, go[0].item())))
    Square.apply(x).backward(tpc.ones(1))
    assert seen == [("pre", 1), ("post", (), 6.0)]


def test_129_a_prehook_of_the_accumulation_node_replaces_the_gradient(mode: Mode):
    def function(x):
        y = Square.apply(x)
        node = y.grad_fn.next_functions[0][0]
        handle = node.register_prehook(lambda go: (go[0] * 10,))
        y.backward(tpc.ones(1))
        handle.remove()

    x = leaf(3.0)
    mode.call(function, x)
    assert x.grad.item() == 60.0


def test_131_a_nodes_hooks_do_not_run_for_its_outputs_gradient_alone(mode: Mode):
    seen = []

    def function(x):
        y = Square.apply(x)
        y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
        y.grad_fn.register_prehook(lambda go: seen.append("pre"))
        (gy,) = tpc.autograd.grad(y * 3, y, tpc.ones(1))
        return gy

    assert mode.call(function, leaf(3.0)).item() == 3.0
    assert seen == []
