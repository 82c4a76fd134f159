"""Section O: what can be asked of the node of an application, which is its ctx."""

from __future__ import annotations

import gc
import weakref

import pytest

import tpc
from tests.contract.modes import Double, Mode, Product, Square, custom, leaf, plain


class Pair(tpc.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.label = "pair"
        ctx.save_for_backward(x)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, a, b):
        return a * 2, b * 3


def test_167_nodes_are_named_after_their_function(mode: Mode):
    class Triple(Square):
        pass

    def run(x):
        for function, name in ((Square, "SquareBackward"), (Triple, "TripleBackward")):
            y = function.apply(x)
            assert type(y.grad_fn).__name__ == name
            assert y.grad_fn.name() == name
        return y

    mode.call(run, leaf(3.0))


def test_167_the_text_of_a_tensor_names_its_node():
    assert "grad_fn=<SquareBackward>" in repr(Square.apply(leaf(3.0)))


def test_167_outputs_share_the_node_and_know_their_slot(mode: Mode):
    def run(x):
        a, b = Pair.apply(x, x)
        assert a.grad_fn is b.grad_fn
        assert (a.output_nr, b.output_nr) == (0, 1)
        return a, b

    mode.call(run, leaf(3.0))


def test_167_a_compiled_call_is_one_node():
    """Difference: outside of a compiled function its whole call is one node, named after it; inside, every Function has its own."""

    def step(x):
        return Square.apply(x)

    y = tpc.compile(step)(leaf(3.0))
    assert y.grad_fn.name() == "Compiled[step]Backward"
    assert "SquareBackward#0" in str(tpc.trace(step, tpc.spec("f32[1] grad")))


def test_168_ctx_is_the_node(mode: Mode):
    seen = []

    def forward(ctx, x):
        seen.append(ctx)
        ctx.note = "mine"
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        seen.append(ctx)
        return g * 2

    Watched = custom("Watched", forward=forward, backward=backward)

    def run(x):
        y = Watched.apply(x)
        node = y.grad_fn
        assert node is seen[0]
        assert (node.note, node.needs_input_grad) == ("mine", (True,))
        assert node.saved_tensors[0] is x
        (gx,) = tpc.autograd.grad(y, x, tpc.ones_like(y))
        assert seen[1] is node
        return gx

    assert mode.call(run, leaf(3.0)).tolist() == [2.0]


def test_169_next_functions_has_one_entry_per_tensor(mode: Mode):
    Mixed = custom(forward=lambda ctx, a, n, b, c: a * n + b + c, backward=lambda ctx, g: (g * 2, None, g, None))

    def run(x, untracked):
        a, _ = Pair.apply(x, x)
        y = Mixed.apply(a, 2, x, untracked)
        entries = y.grad_fn.next_functions
        assert [e[1] for e in entries] == [0, 0, 0]
        assert entries[0] == (a.grad_fn, 0)
        assert entries[1][0].name().endswith("AccumulateGrad")
        assert entries[1][0].variable is x
        assert entries[2] == (None, 0)
        return y

    mode.call(run, leaf(3.0), plain(1.0))


def test_169_the_output_index_is_the_slot(mode: Mode):
    def run(x):
        _, b = Pair.apply(x, x)
        assert Double.apply(b).grad_fn.next_functions == ((b.grad_fn, 1),)
        return b

    mode.call(run, leaf(3.0))


def test_170_metadata_stays_with_the_node(mode: Mode):
    seen = []

    def forward(ctx, x):
        ctx.metadata["step"] = 7
        return x * 2

    def backward(ctx, g):
        seen.append(dict(ctx.metadata))
        ctx.metadata["again"] = True
        return g * 2

    Noted = custom(forward=forward, backward=backward)

    def run(x):
        y = Noted.apply(x)
        assert y.grad_fn.metadata == {"step": 7}
        (gx,) = tpc.autograd.grad(y, x, tpc.ones_like(y))
        assert y.grad_fn.metadata == {"step": 7, "again": True}
        return gx

    mode.call(run, leaf(3.0))
    assert seen[0] == {"step": 7}


def test_171_nodes_are_graph_nodes(mode: Mode):
    def run(x):
        y = Square.apply(x)
        assert isinstance(y.grad_fn, tpc.autograd.graph.Node)
        assert isinstance((x * 2).grad_fn, tpc.autograd.graph.Node)
        assert isinstance(y.grad_fn, Square._backward_cls)
        return y

    mode.call(run, leaf(3.0))


def test_171_gradient_edges(mode: Mode):
    def run(x):
        _, b = Pair.apply(x, x)
        edge = tpc.autograd.graph.get_gradient_edge(b)
        assert (edge.node, edge.output_nr) == (b.grad_fn, 1)
        to_leaf = tpc.autograd.graph.get_gradient_edge(x)
        assert to_leaf.node.variable is x
        (gb,) = tpc.autograd.grad(Square.apply(b), edge, tpc.ones(1), retain_graph=True)
        (gx,) = tpc.autograd.grad(edge, to_leaf, tpc.ones(1))
        return gb, gx

    gb, gx = mode.call(run, leaf(3.0))
    assert (gb.tolist(), gx.tolist()) == ([18.0], [3.0])


def test_171_backward_from_and_to_an_edge(mode: Mode):
    def run(x, y):
        out = Product.apply(x, y)
        edge = tpc.autograd.graph.get_gradient_edge(out)
        tpc.autograd.backward(edge, tpc.ones(1), inputs=[tpc.autograd.graph.get_gradient_edge(x)])

    x, y = leaf(3.0), leaf(5.0)
    mode.call(run, x, y)
    assert (x.grad.tolist(), y.grad) == ([5.0], None)


def test_171_an_edge_outlives_its_tensor(mode: Mode):
    x = leaf(3.0)
    y = mode.call(Square.apply, x)
    edge = tpc.autograd.graph.get_gradient_edge(y)
    del y
    gc.collect()
    (gx,) = tpc.autograd.grad(edge, x, tpc.ones(1))
    assert gx.tolist() == [6.0]


def test_171_an_untracked_tensor_has_no_edge():
    with pytest.raises(RuntimeError, match="Tensor that does not require gradients"):
        tpc.autograd.graph.get_gradient_edge(plain(1.0))


def test_171_materialized_gradients_have_no_type_of_an_edge():
    x, other = leaf(3.0), leaf(1.0)
    edge = tpc.autograd.graph.get_gradient_edge(other)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        tpc.autograd.grad(Square.apply(x), [x, edge], materialize_grads=True)


def test_171_the_types_of_the_outputs():
    a, _ = Pair.apply(leaf(1.0, 2.0), tpc.ones(3, dtype=tpc.float64))
    metadata = a.grad_fn._input_metadata
    assert [tuple(m.shape) for m in metadata] == [(2,), (3,)]
    assert [m.dtype for m in metadata] == [tpc.float32, tpc.float64]


def test_172_apply_of_a_node_calls_the_users_backward(mode: Mode):
    def run(x):
        y = Square.apply(x)
        return y, y.grad_fn.apply(tpc.ones(1) * 10).detach()

    _, got = mode.call(run, leaf(3.0))
    assert got.tolist() == [60.0]


def test_172_a_node_of_a_function_is_not_called_itself():
    with pytest.raises(TypeError, match="not callable"):
        Square.apply(leaf(3.0)).grad_fn(tpc.ones(1))


def test_172_grad_fn_is_one_object_and_keeps_the_graph():
    x = leaf(3.0)
    y = Square.apply(x)
    node = y.grad_fn
    assert y.grad_fn is node
    watched = weakref.ref(y)
    del y
    assert watched() is None
    assert node.saved_tensors[0] is x


def test_173_what_apply_has_used_is_none():
    def forward(ctx, x, y):
        x.add_(1)
        out = y * 2
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(out)
        ctx.save_for_backward(y)
        return x, out

    Everything = custom(forward=forward, backward=lambda ctx, a, b: (a, None))
    y, _ = Everything.apply(leaf(1.0) * 1, leaf(2.0))
    node = y.grad_fn
    assert (node.dirty_tensors, node.to_save, node.non_differentiable) == (None, None, None)


def test_173_a_node_always_requires_grad(mode: Mode):
    def run(x):
        y = Square.apply(x)
        assert y.grad_fn.requires_grad is True
        return y

    mode.call(run, leaf(3.0))
