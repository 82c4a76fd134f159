"""Section S: legacy classes, names, the metaclass."""

from __future__ import annotations

import pytest

import tpc
from tests.contract.modes import Mode, Square, leaf
from tpc.autograd.function import Function, FunctionMeta, InplaceFunction, NestedIOFunction


def test_195_inplace_function_is_a_function(mode: Mode):
    class Doubled(InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3.0)

    def run(x):
        y = x * 1
        assert Doubled.apply(y) is y
        return y

    assert mode.backward(run, x).tolist() == [6.0]
    assert x.grad.tolist() == [2.0]


def test_195_an_instance_of_it_carries_inplace():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert InplaceFunction(inplace=True).inplace is True


def test_195_nested_io_function_is_there_for_import_only():
    """Difference: a RuntimeError says that it is legacy; PyTorch fails with an AttributeError on the way."""
    with pytest.raises(RuntimeError, match="legacy and unsupported"):
        NestedIOFunction.apply(leaf(1.0))


def test_196_instantiating_a_function_is_deprecated():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Square()
    with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
        instance(leaf(3.0))
    assert instance.apply(leaf(3.0)).tolist() == [9.0]


def test_197_the_metaclass_prepares_the_node_class_once():
    assert type(Square) is FunctionMeta
    assert Square._backward_cls.__name__ == "SquareBackward"
    assert Square._backward_cls is type(Square.apply(leaf(1.0)).grad_fn)
    assert issubclass(Square._backward_cls, tpc.autograd.graph.Node)


def test_197_functions_know_the_name_of_their_nodes():
    """Difference: PyTorch's classes have neither `name` nor `_node_name`."""

    class Cube(Function):
        pass

    assert Cube.name == Cube._node_name == "CubeBackward"
