"""`backward` and `grad`: the two ways to ask for gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tpc.autograd.engine import Pass, root_edge, seed
from tpc.autograd.graph import GradientEdge, retain_grad
from tpc.autograd.node import AccumulateGrad, Edge
from tpc.tensor import Tensor


def _tuple(x: Any) -> tuple[Any, ...]:
    if x is None:
        return ()
    return tuple(x) if isinstance(x, (tuple, list)) and not isinstance(x, GradientEdge) else (x,)


def _roots(tensors: Sequence[Any], grads: Sequence[Any]) -> list[tuple[Edge, Tensor | None]]:
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots: list[tuple[Edge, Tensor | None]] = []
    for i, (t, g) in enumerate(zip(tensors, grads, strict=True)):
        if isinstance(t, GradientEdge):
            roots.append(((t.node, t.output_nr), _seed_edge(t, g, i)))
        else:
            edge = root_edge(t, i)
            roots.append((edge, seed(t, g, i)))
    return roots


def _seed_edge(edge: GradientEdge, grad: Tensor | None, i: int) -> Tensor:
    from tpc.functions.factories import zeros_of

    return seed(zeros_of(edge.node._metas[edge.output_nr]), grad, i)


def _input_edge(t: Any) -> Edge:
    if isinstance(t, GradientEdge):
        return t.node, t.output_nr
    if not isinstance(t, Tensor):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    edge = t._edge()
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _batched(pulled: Callable[..., list[Tensor | None]], outputs: Sequence[Any], given: Sequence[Any]) -> list[Tensor | None]:
    """One pass for a whole batch of gradients, each of which has the batch as its first dimension."""
    from tpc.func.vmap import vmap

    for i, (output, grad) in enumerate(zip(outputs, given, strict=False)):
        if not isinstance(grad, Tensor):
            continue
        wanted = output.node._metas[output.output_nr].shape if isinstance(output, GradientEdge) else output._type.shape
        if grad._type.rank == 0 or grad._type.shape[1:] != wanted:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                "remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {list(grad._type.shape)} and output[{i}] has a shape of {list(wanted)}."
            )
    there: list[bool] = []

    def one(*gradients: Any) -> tuple[Tensor, ...]:
        got = pulled(*gradients)
        there[:] = [g is not None for g in got]
        return tuple(g for g in got if g is not None)

    found = iter(vmap(one, tuple(0 if isinstance(g, Tensor) else None for g in given))(*given))
    return [next(found) if is_there else None for is_there in there]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` to the `.grad` of every leaf behind them (or of `inputs` alone).

    Raises `RuntimeError` for a root without history, for a non-scalar root without gradient, for shapes that do not match,
    and where a saved tensor was freed or written.
    """
    tensors = _tuple(tensors)
    grads = _tuple(grad_tensors if grad_tensors is not None else grad_variables) or (None,) * len(tensors)
    if inputs is not None and len(_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _roots(tensors, grads)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
            "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this.",
            UserWarning,
            stacklevel=3,
        )
    run = Pass(create_graph if retain_graph is None else retain_graph, create_graph)
    if inputs is None:
        run.run(roots, None)
        return
    wanted = _tuple(inputs)
    edges = [_input_edge(t) for t in wanted]
    for t, (node, _) in zip(wanted, edges, strict=True):
        if isinstance(t, Tensor) and not isinstance(node, AccumulateGrad):
            retain_grad(t)
    run.run(roots, (), [node for node, _ in edges])


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Gradients of `outputs` with respect to `inputs`, as a tuple; no `.grad` changes.

    An input that the outputs do not depend on is a `RuntimeError`, None with `allow_unused`, zeros with `materialize_grads`. With
    `is_grads_batched`, `grad_outputs` and the result have a batch as their first dimension, and backward sees one sample of it.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, wanted = _tuple(outputs), _tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = _tuple(grad_outputs) or (None,) * len(outputs)
    edges = [_input_edge(t) for t in wanted]

    def pulled(*gradients: Any) -> list[Tensor | None]:
        run = Pass(create_graph if retain_graph is None else retain_graph, create_graph)
        run.run(_roots(outputs, gradients), edges)
        return run.captured

    got = _batched(pulled, outputs, given) if is_grads_batched else pulled(*given)
    for i, g in enumerate(got):
        if g is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the "
                "desired behavior."
            )
    if materialize_grads:
        from tpc.functions.factories import zeros_of

        if any(g is None and isinstance(t, GradientEdge) for g, t in zip(got, wanted, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        got = [zeros_of(t._type) if g is None else g for g, t in zip(got, wanted, strict=True)]
    return tuple(got)
