"""Section D, continued: hooks on saved tensors."""

from __future__ import annotations

import threading

import pytest

import tpc
from tests.contract.modes import Mode, Square, custom, leaf, plain

graph = tpc.autograd.graph


def halved(x):
    """Packs to float16 and back."""
    return graph.saved_tensors_hooks(lambda t: (t.dtype, t.to(tpc.float16)), lambda kept: kept[1].to(kept[0]))


class Several(tpc.autograd.Function):
    """a * b with a, None and b saved; backward reads twice."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, None, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, nothing, _ = ctx.saved_tensors
        _, _, b = ctx.saved_tensors
        assert nothing is None
        return g * b, g * a


def test_066_each_saved_tensor_is_packed_once_and_unpacked_at_every_read(mode: Mode):
    log = []

    def pack(t):
        log.append("pack")
        return {"kept": t}

    def unpack(kept):
        log.append("unpack")
        return kept["kept"]

    def hooked(a, b):
        with graph.saved_tensors_hooks(pack, unpack):
            return Several.apply(a, b)

    a, b = leaf(2.0), leaf(3.0)
    mode.backward(hooked, a, b)
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)
    assert (log.count("pack"), log.count("unpack")) == (2, 4)


def test_066_values_make_the_trip_through_the_hooks(mode: Mode):
    def hooked(x):
        with halved(x):
            return Square.apply(x)

    x = leaf(1.0 + 2**-12)
    mode.backward(hooked, x)
    assert x.grad.item() == 2.0


def test_066_hooks_around_a_call_and_pack_after_forward(mode: Mode):
    log = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        log.append("forward over")
        return x * x

    Saving = custom(forward=forward, backward=lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    x = leaf(3.0)
    with graph.saved_tensors_hooks(lambda t: log.append("pack") or t * 10, lambda t: t):
        out = mode.call(Saving.apply, x)
    out.backward(tpc.ones(1))
    assert (x.grad.item(), log[:2]) == (60.0, ["forward over", "pack"])


def test_067_the_innermost_hooks_win_and_only_in_their_block(mode: Mode):
    def nested(x):
        with graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
            first = Square.apply(x)
            with graph.saved_tensors_hooks(lambda t: t * 1000, lambda t: t):
                second = Square.apply(x)
            third = Square.apply(x)
        return first, second, third, Square.apply(x)

    x = leaf(1.0)
    mode.backward(nested, x)
    assert x.grad.item() == 20 + 2000 + 20 + 2


class Trouble(Exception):
    pass


def trouble(*_):
    raise Trouble("in a hook")


def test_068_an_exception_in_pack_comes_out_of_apply(mode: Mode):
    def hooked(x):
        with graph.saved_tensors_hooks(trouble, lambda t: t):
            return Square.apply(x)

    with pytest.raises(Trouble, match="in a hook"):
        mode.call(hooked, leaf(1.0))


def test_068_an_exception_in_unpack_comes_out_of_the_pass(mode: Mode):
    def hooked(x):
        with graph.saved_tensors_hooks(lambda t: t, trouble):
            return Square.apply(x)

    mode.call(hooked, leaf(1.0))
    with pytest.raises(Trouble, match="in a hook"):
        mode.backward(hooked, leaf(1.0))


def test_068_unpack_must_give_a_tensor(mode: Mode):
    def hooked(x):
        with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
            return Square.apply(x)

    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor"):
        mode.backward(hooked, leaf(1.0))


def test_069_pack_must_not_write_its_argument(mode: Mode):
    def hooked(w):
        x = w * 1
        with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            return Square.apply(x)

    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        mode.call(hooked, leaf(1.0))


def test_070_a_packed_copy_outlives_a_write(mode: Mode):
    def written(w):
        x = w * 1
        with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = Square.apply(x)
        x.add_(10)
        return y

    w = leaf(3.0)
    mode.backward(written, w)
    assert w.grad.item() == 6.0


def test_071_hooks_belong_to_their_thread():
    got = []

    def other():
        x = leaf(1.0)
        Square.apply(x).backward(tpc.ones(1))
        got.append(x.grad.item())

    with graph.saved_tensors_hooks(lambda t: t * 1000, lambda t: t):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert got == [2.0]


def test_072_pack_sees_tracked_inputs_and_outputs_as_they_are(mode: Mode):
    seen = []

    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    Both = custom(forward=forward, backward=lambda ctx, g: g * 2 * ctx.saved_tensors[0])

    def hooked(w):
        x = w * 1
        with graph.saved_tensors_hooks(lambda t: seen.append((t is x, t.grad_fn is not None, t.requires_grad)) or t, lambda t: t):
            return Both.apply(x)

    w = leaf(3.0)
    mode.backward(hooked, w)
    assert seen[:2] == [(True, True, True), (False, True, True)]
    assert w.grad.item() == 6.0


def test_072_what_is_unpacked_stays_connected(mode: Mode):
    def second(x):
        with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            y = Square.apply(x)
        (first,) = tpc.autograd.grad(y, x, tpc.ones(1), create_graph=True)
        return first

    x = leaf(3.0)
    mode.backward(second, x)
    assert x.grad.item() == 2.0


def test_072_hooks_can_be_forbidden(mode: Mode):
    def hooked(x):
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return Square.apply(x)

    with graph.disable_saved_tensors_hooks("not now"), pytest.raises(RuntimeError, match="not now"):
        mode.call(hooked, leaf(1.0))
    assert mode.call(hooked, leaf(3.0)).item() == 9.0


def test_072_save_on_cpu(mode: Mode):
    def hooked(x):
        with graph.save_on_cpu():
            return Square.apply(x)

    x = leaf(3.0)
    mode.backward(hooked, x)
    assert x.grad.item() == 6.0


def test_072_mutation_can_be_allowed(mode: Mode):
    """Difference: PyTorch wants the backward pass inside the block too."""

    def written(w):
        with graph.allow_mutation_on_saved_tensors():
            x = w * 1
            y = Square.apply(x)
            x.add_(10)
            with tpc.no_grad():
                x.mul_(2)
            return y + Square.apply(x)

    w = leaf(3.0)
    mode.backward(written, w)
    assert w.grad.item() == 6.0 + 52.0


def test_072_hooks_on_one_saved_tensor():
    x, y = leaf(2.0), plain(3.0)
    out = Several.apply(x, y)
    out.grad_fn._raw_saved_tensors[2].register_hooks(lambda t: t * 100, lambda t: t)
    out.backward(tpc.ones(1))
    assert x.grad.item() == 300.0


def test_072_hooks_on_one_saved_tensor_come_too_late_after_reading():
    out = Square.apply(leaf(2.0))
    raw = out.grad_fn._raw_saved_tensors[0]
    raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
