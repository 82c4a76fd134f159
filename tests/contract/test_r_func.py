"""Section R: Functions under `tpc.func` and `tpc.autograd.functional`."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, Square, custom, leaf, plain
from tpc.autograd import functional
from tpc.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


class Cube(tpc.autograd.Function):
    """x ** 3 with every rule there is, split style."""

    generate_vmap_rule = True
    seen: dict = {}

    @staticmethod
    def forward(x):
        Cube.seen["forward"] = tpc.is_grad_enabled()
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        Cube.seen["setup"] = tpc.is_grad_enabled()
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        Cube.seen["backward"] = tpc.is_grad_enabled()
        (x,) = ctx.saved_tensors
        return g * 3 * x * x

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * 3 * x * x


def total(x):
    return Cube.apply(x).sum()


X = (1.0, 2.0)
ONCE = [3.0, 12.0]
TWICE = [6.0, 12.0]


def diagonal(*values: float) -> list:
    return [[v if i == j else 0.0 for j in range(len(values))] for i, v in enumerate(values)]


# --- ctx style ----------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["split", "ctx"])
def test_190_both_styles_are_differentiated(mode: Mode, style: str):
    """Difference: ctx-style Functions work under `func` too; PyTorch refuses them ("must override the setup_context")."""
    function = {"split": Cube, "ctx": Square}[style].apply
    first = {"split": ONCE, "ctx": [2.0, 4.0]}[style]
    assert mode.call(grad(lambda x: function(x).sum()), plain(*X)).tolist() == first
    assert mode.call(lambda x, v: vjp(function, x)[1](v)[0], plain(*X), tpc.ones(2)).tolist() == first


def test_190_ctx_style_to_second_order(mode: Mode):
    """Difference: ctx-style Functions work under `func` too; PyTorch refuses them."""
    assert mode.call(grad(lambda x: grad(lambda x: Square.apply(x).sum())(x).sum()), plain(*X)).tolist() == [2.0, 2.0]


def test_190_ctx_style_in_forward_mode(mode: Mode):
    """Difference: ctx-style Functions work under `func` too; PyTorch refuses them."""
    Triple = custom(forward=lambda ctx, x: x * 3, jvp=lambda ctx, t: t * 3)
    assert mode.call(lambda x, t: jvp(Triple.apply, (x,), (t,))[1], plain(*X), plain(1.0, 10.0)).tolist() == [3.0, 30.0]


# --- each transform -----------------------------------------------------------------------------


def test_190_grad_and_value(mode: Mode):
    def run(x, y):
        return grad_and_value(lambda x, y: (Cube.apply(x) * y).sum(), argnums=(0, 1))(x, y)

    (gx, gy), value = mode.call(run, plain(*X), plain(1.0, 1.0))
    assert (gx.tolist(), gy.tolist(), value.item()) == (ONCE, [1.0, 8.0], 9.0)


def test_190_auxiliary_results(mode: Mode):
    g, aux = mode.call(grad(lambda x: (total(x), x * 2), has_aux=True), plain(*X))
    assert (g.tolist(), aux.tolist()) == (ONCE, [2.0, 4.0])


def test_190_vjp_and_jvp(mode: Mode):
    def run(x, v):
        out, pull = vjp(Cube.apply, x)
        pushed = jvp(Cube.apply, (x,), (v,))
        return out, *pull(v), *pushed

    out, pulled, again, pushed = mode.call(run, plain(*X), plain(1.0, 10.0))
    assert (out.tolist(), again.tolist()) == ([1.0, 8.0], [1.0, 8.0])
    assert pulled.tolist() == pushed.tolist() == [3.0, 120.0]


def test_190_linearize(mode: Mode):
    def run(x, t):
        out, along = linearize(Cube.apply, x)
        return out, along(t), along(t * 2)

    out, once, twice = mode.call(run, plain(*X), plain(1.0, 10.0))
    assert (out.tolist(), once.tolist(), twice.tolist()) == ([1.0, 8.0], [3.0, 120.0], [6.0, 240.0])


def test_190_arguments_that_are_containers(mode: Mode):
    def loss(parameters):
        return (Cube.apply(parameters["w"]) + parameters["b"][0]).sum()

    got = mode.call(grad(loss), {"w": plain(*X), "b": [plain(1.0)]})
    assert got["w"].tolist() == ONCE
    assert got["b"][0].tolist() == [2.0]


# --- Jacobians ----------------------------------------------------------------------------------


def test_191_jacrev_and_jacfwd(mode: Mode):
    assert mode.call(jacrev(Cube.apply), plain(*X)).tolist() == diagonal(*ONCE)
    assert mode.call(jacfwd(Cube.apply), plain(*X)).tolist() == diagonal(*ONCE)


def test_191_hessian(mode: Mode):
    assert mode.call(hessian(total), plain(*X)).tolist() == diagonal(*TWICE)
    assert mode.call(jacrev(jacrev(total)), plain(*X)).tolist() == diagonal(*TWICE)


def test_191_forward_over_forward(mode: Mode):
    """Difference: right in tpc, where levels nest; PyTorch silently gives zeros for a custom jvp that reads saved tensors."""
    assert mode.call(jacfwd(jacfwd(total)), plain(*X)).tolist() == diagonal(*TWICE)


def test_191_jacrev_needs_only_backward(mode: Mode):
    Halved = custom(forward=lambda x: x * 2, setup_context=lambda ctx, inputs, output: None, backward=lambda ctx, g: g * 2)
    assert mode.call(jacrev(Halved.apply), plain(*X)).tolist() == diagonal(2.0, 2.0)
    with pytest.raises((RuntimeError, NotImplementedError), match=r"vmap support|must implement the jvp"):
        mode.call(jacfwd(Halved.apply), plain(*X))


def test_191_several_arguments_and_outputs(mode: Mode):
    def run(x, y):
        return jacrev(lambda x, y: (Cube.apply(x), y * x), argnums=(0, 1))(x, y)

    (xx, xy), (yx, yy) = mode.call(run, plain(*X), plain(5.0, 7.0))
    assert (xx.tolist(), xy.tolist()) == (diagonal(*ONCE), diagonal(0.0, 0.0))
    assert (yx.tolist(), yy.tolist()) == (diagonal(5.0, 7.0), diagonal(*X))


def test_191_jacrev_in_chunks(mode: Mode):
    assert mode.call(jacrev(Cube.apply, chunk_size=1), plain(*X)).tolist() == diagonal(*ONCE)
    jacobian, aux = mode.call(jacrev(lambda x: (Cube.apply(x), x), has_aux=True), plain(*X))
    assert (jacobian.tolist(), aux.tolist()) == (diagonal(*ONCE), list(X))


def test_191_per_sample_jacobians(mode: Mode):
    got = mode.call(vmap(jacrev(Cube.apply)), tpc.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert got.tolist() == [diagonal(3.0, 12.0), diagonal(27.0, 48.0)]


# --- inside the methods -------------------------------------------------------------------------


def test_192_recording_is_on_in_backward_and_off_elsewhere(mode: Mode):
    Cube.seen.clear()
    mode.call(grad(total), plain(*X))
    assert Cube.seen == {"forward": False, "setup": False, "backward": True}


def test_192_grad_of_grad_of_grad(mode: Mode):
    third = grad(lambda x: grad(lambda x: grad(total)(x).sum())(x).sum())
    assert mode.call(third, plain(*X)).tolist() == [6.0, 6.0]


def test_192_node_class_under_func():
    """Difference: the node is the Function's own, "CubeBackward"; PyTorch generates "CubeGeneratedBackward"."""
    seen = []

    def watched(x):
        y = Cube.apply(x)
        seen.append(y.grad_fn.name())
        return y.sum()

    grad(watched)(plain(*X))
    assert seen == ["CubeBackward"]


def test_192_outer_gradients_reach_through(mode: Mode):
    """What `func.grad` gives is differentiable with respect to tensors from outside that require grad."""
    x, w = plain(*X), leaf(10.0, 100.0)
    mode.backward(lambda x, w: grad(lambda x: (Cube.apply(x) * w).sum())(x), x, w)
    assert w.grad.tolist() == ONCE


def test_193_mark_dirty_under_grad(mode: Mode):
    def forward(x):
        x.mul_(3)
        return x

    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(output)

    Tripled = custom(forward=forward, setup_context=setup_context, backward=lambda ctx, g: g * 3)
    assert mode.call(grad(lambda x: Tripled.apply(x * 1).sum()), plain(*X)).tolist() == [3.0, 3.0]


def test_193_default_and_keyword_arguments(mode: Mode):
    def forward(x, factor=5.0, bias=None):
        return x * factor

    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    Times = custom(forward=forward, setup_context=setup_context, backward=lambda ctx, g: (g * ctx.factor, None, None))
    assert mode.call(grad(lambda x: Times.apply(x).sum()), plain(*X)).tolist() == [5.0, 5.0]
    assert mode.call(grad(lambda x: Times.apply(x, bias=None, factor=7.0).sum()), plain(*X)).tolist() == [7.0, 7.0]


def test_193_dictionaries_as_arguments(mode: Mode):
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]["factor"]

    Times = custom(
        forward=lambda x, options: x * options["factor"],
        setup_context=setup_context,
        backward=lambda ctx, g: (g * ctx.factor, None),
    )
    assert mode.call(grad(lambda x: Times.apply(x, {"factor": 4.0}).sum()), plain(*X)).tolist() == [4.0, 4.0]


def test_193_needs_input_grad_under_grad(mode: Mode):
    seen = []

    def setup_context(ctx, inputs, output):
        seen.append(ctx.needs_input_grad)

    Sum = custom(forward=lambda a, b: a + b, setup_context=setup_context, backward=lambda ctx, g: (g, g))
    mode.call(lambda a, b: grad(lambda a: Sum.apply(a, b).sum())(a), plain(*X), plain(*X))
    assert (True, False) in seen


# --- autograd.functional ------------------------------------------------------------------------


def square(x):
    return Square.apply(x)


def square_sum(x):
    return Square.apply(x).sum()


def test_194_jacobian_with_ctx_style(mode: Mode):
    assert mode.call(lambda x: functional.jacobian(square, x), plain(*X)).tolist() == diagonal(2.0, 4.0)


def test_194_hessian_with_ctx_style(mode: Mode):
    assert mode.call(lambda x: functional.hessian(square_sum, x), plain(*X)).tolist() == diagonal(2.0, 2.0)


def test_194_products(mode: Mode):
    def run(x, v):
        return (
            functional.vjp(square, x, v)[1],
            functional.jvp(square, x, v)[1],
            functional.vhp(square_sum, x, v)[1],
            functional.hvp(square_sum, x, v)[1],
        )

    got = mode.call(run, plain(*X), plain(1.0, 10.0))
    assert [g.tolist() for g in got] == [[2.0, 40.0], [2.0, 40.0], [2.0, 20.0], [2.0, 20.0]]


def test_194_the_result_can_be_recorded(mode: Mode):
    x = leaf(*X)
    mode.backward(lambda x: functional.jacobian(square, x, create_graph=True), x)
    assert x.grad.tolist() == [2.0, 2.0]


def test_194_strict_mode():
    with pytest.raises(RuntimeError, match=r"independent of|does not require gradients"):
        functional.jacobian(lambda x: tpc.ones(2), plain(*X), strict=True)


def test_194_vectorized_and_forward(mode: Mode):
    assert mode.call(lambda x: functional.jacobian(Cube.apply, x, vectorize=True), plain(*X)).tolist() == diagonal(*ONCE)
    forward = lambda x: functional.jacobian(Cube.apply, x, vectorize=True, strategy="forward-mode")
    assert mode.call(forward, plain(*X)).tolist() == diagonal(*ONCE)
    assert mode.call(lambda x: functional.hessian(total, x, vectorize=True), plain(*X)).tolist() == diagonal(*TWICE)
    outer = lambda x: functional.hessian(total, x, vectorize=True, outer_jacobian_strategy="forward-mode")
    assert mode.call(outer, plain(*X)).tolist() == diagonal(*TWICE)


# --- compiled functions under transforms --------------------------------------------------------


def test_192_transforms_of_a_compiled_function(mode: Mode):
    """A transform of a compiled function records what the function does, as a compiled function inside another does."""
    call = mode.compiled(total)
    assert call(plain(*X)).item() == 9.0
    assert grad(call)(plain(*X)).tolist() == ONCE
    assert vmap(call)(tpc.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [9.0, 91.0]
    assert jvp(call, (plain(*X),), (tpc.ones(2),))[1].item() == 15.0
    assert jacrev(call)(plain(*X)).tolist() == ONCE
    assert hessian(call)(plain(*X)).tolist() == diagonal(*TWICE)
    assert call(plain(*X)).item() == 9.0


def test_192_a_batch_of_gradients_for_a_compiled_call(mode: Mode):
    x = leaf(*X)
    y = mode.call(Cube.apply, x)
    (rows,) = tpc.autograd.grad(y, x, tpc.eye(2), is_grads_batched=True, retain_graph=True, create_graph=True)
    assert rows.tolist() == diagonal(*ONCE)
    (second,) = tpc.autograd.grad(rows.sum(), x)
    assert second.tolist() == TWICE


def test_192_tangents_of_gradients_for_a_compiled_call(mode: Mode):
    fwad = tpc.autograd.forward_ad
    x = leaf(*X)
    y = mode.call(Cube.apply, x)
    with fwad.dual_level():
        (gx,) = tpc.autograd.grad(y, x, fwad.make_dual(tpc.ones(2), plain(1.0, 10.0)))
        pair = fwad.unpack_dual(gx)
        assert (pair.primal.tolist(), pair.tangent.tolist()) == (ONCE, [3.0, 120.0])
