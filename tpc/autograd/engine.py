"""The engine: walks the backward graph, newest node first, calling each node once with the sum of what arrived."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tpc.autograd import anomaly_mode
from tpc.autograd.node import AccumulateGrad, Edge, Grads, Node, accumulate
from tpc.ir.types import TensorType, is_complex, is_differentiable
from tpc.recording import Scope
from tpc.state import STATE
from tpc.tensor import Tensor


class Pass:
    """One run of the engine from `roots` (edge, gradient) pairs.

    With `captures` (edges), only nodes on a path to one of them run, and `captured` holds what arrived there; with
    `leaves` as well, those accumulation nodes run too. A pass that `goes_on` elsewhere from what it captures runs every node,
    and leaves the hooks of captured tensors to what comes after it.
    """

    def __init__(self, retain_graph: bool, create_graph: bool, goes_on: bool = False) -> None:
        self.goes_on = goes_on
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.buffers: dict[Node, Grads] = {}
        self.waiting: dict[Node, int] = {}
        self.needed: set[Node] | None = None
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured: list[Tensor | None] = []
        self.ready: list[tuple[int, int, Node]] = []
        self.scope = STATE.scope
        self.known: set[Node] = set()
        self.endings: list[Callable[[], Any]] = []

    def run(self, roots: Sequence[tuple[Edge, Tensor | None]], captures: Sequence[Edge] | None, leaves: Sequence[Node] = ()) -> None:
        order = self._count_readers([edge[0] for edge, _ in roots])
        self.known = set(order)
        if captures is not None:
            self.captured = [None] * len(captures)
            for i, (node, slot) in enumerate(captures):
                self.captures.setdefault(node, []).append((slot, i))
            self.needed = self.known - set(self.captures) if self.goes_on else _on_a_path(order, set(self.captures), set(leaves))
        outer = STATE.grad_enabled, STATE.scope, STATE.loc
        STATE.grad_enabled = self.create_graph
        _running.passes.append(self)
        try:
            for (node, slot), grad in roots:
                self._arrive(node, slot, grad)
            for node in {edge[0]: None for edge, _ in roots}:
                if self.waiting[node] == 0:
                    self._push(node)
            while self.ready:
                self._visit(heapq.heappop(self.ready)[2])
        finally:
            STATE.grad_enabled, STATE.scope, STATE.loc = outer
            _running.passes.pop()
            for call in self.endings:
                call()

    def reaches(self, tensors: Sequence[Tensor]) -> int:
        """How many of the tensors get a gradient in this pass, as far as the graph tells."""
        edges = [t._edge() for t in tensors]
        return sum(
            e is not None and e[0] in self.known and (self.needed is None or e[0] in self.needed or e[0] in self.captures) for e in edges
        )

    def at_end(self, call: Callable[[], Any]) -> None:
        """Has `call` run when the pass is over, however it ends."""
        self.endings.append(call)

    def _count_readers(self, roots: Sequence[Node]) -> list[Node]:
        waiting = self.waiting
        for root in roots:
            waiting.setdefault(root, 0)
        stack = list(waiting)
        while stack:
            for edge in stack.pop()._edges:
                if edge is None:
                    continue
                node = edge[0]
                if node in waiting:
                    waiting[node] += 1
                else:
                    waiting[node] = 1
                    stack.append(node)
        return list(waiting)

    def _push(self, node: Node) -> None:
        heapq.heappush(self.ready, (-node._sequence, id(node), node))

    def _arrive(self, node: Node, slot: int, grad: Tensor | None) -> None:
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node._metas)
        if grad is not None:
            old = buffer[slot]
            buffer[slot] = grad if old is None else _sum(old, grad)

    def _visit(self, node: Node) -> None:
        grads = self.buffers.pop(node, None) or [None] * len(node._metas)
        runs = self.needed is None or node in self.needed
        whole = node._whole(grads, [slot for slot, _ in self.captures.get(node, ())]) if node._has_inside else grads
        if node in self.captures:
            seen = whole if runs or self.goes_on else tensor_hooks(node, whole)
            for slot, i in self.captures[node]:
                self.captured[i] = seen[slot]
        if not runs:
            return
        sent = self._call(node, grads, whole)
        if not self.retain_graph:
            node._release()
        for edge, grad in zip(node._edges, sent, strict=True):
            if edge is None:
                continue
            upstream, slot = edge
            if self.needed is not None and upstream not in self.needed and upstream not in self.captures:
                continue
            self._arrive(upstream, slot, grad)
            self.waiting[upstream] -= 1
            if self.waiting[upstream] == 0:
                self._push(upstream)

    def _call(self, node: Node, grads: Grads, whole: Grads) -> Sequence[Tensor | None]:
        sent: Sequence[Tensor | None]
        if isinstance(node, AccumulateGrad) and (trace := STATE.trace) is not None and trace.backward is not None:
            leaf = node.variable
            if leaf._trace is not trace:
                # The hooks and the sum are for the moment when this backward runs.
                trace.backward.accumulated += [(leaf, g) for g in grads if g is not None]
                return ()
        hooked = tensor_hooks(node, whole)
        if node._retaining:
            _retain(node, hooked)
        grads = hooked if whole is grads else _outer(node, grads, whole, hooked)
        if node._pre_hooks:
            grads = _pre_hooks(node, grads)
        STATE.scope = Scope(node.name(), node._sequence, self.scope)
        STATE.loc = None if node._runs_user_code else node._loc
        sent = _watched(node, grads) if STATE.anomaly else validated(node, node._run(grads))
        STATE.scope, STATE.loc = self.scope, None
        if node._post_hooks:
            sent = _post_hooks(node, sent, grads)
        return sent


def _watched(node: Node, grads: Grads) -> list[Tensor | None]:
    """Runs a node in anomaly mode."""
    _running.nodes.append(node)
    try:
        sent = validated(node, node._run(grads))
        if STATE.anomaly_check_nan:
            anomaly_mode.check_nan(node, sent)
    except Exception:
        anomaly_mode.explain(node)
        raise
    finally:
        _running.nodes.pop()
    return sent


class _Running(threading.local):
    def __init__(self) -> None:
        self.passes: list[Pass] = []
        self.nodes: list[Node] = []
        """Those that run in anomaly mode."""


_running = _Running()


def running_pass() -> Pass:
    """The innermost pass that runs in this thread."""
    return _running.passes[-1]


def running_node() -> Node | None:
    """The innermost node that runs in this thread in anomaly mode."""
    return _running.nodes[-1] if _running.nodes else None


def _on_a_path(order: Sequence[Node], captures: set[Node], leaves: set[Node]) -> set[Node]:
    """Nodes behind which a captured edge or a wanted leaf lies (the captured ones themselves only if so)."""
    leading = captures | leaves
    needed = set(leaves)
    # A node is made after everything its edges lead to, accumulation nodes apart, which lead nowhere.
    for node in sorted(order, key=lambda n: n._sequence):
        if any(e is not None and e[0] in leading for e in node._edges):
            needed.add(node)
            leading.add(node)
    return needed


def _sum(a: Tensor, b: Tensor) -> Tensor:
    from tpc.functions.elementwise import add

    return add(a, b)


# --- hooks --------------------------------------------------------------------------------------


def tensor_hooks(node: Node, grads: Grads) -> Grads:
    """Runs the hooks of the tensors that this node made (or of the leaf), each on the whole gradient."""
    if isinstance(node, AccumulateGrad):
        hooks = node.variable.__dict__.get("_hooks")
        table = {0: hooks} if hooks else {}
    else:
        table = node._tensor_hooks or {}
    if not table:
        return grads
    grads = list(grads)
    for slot, hooks in table.items():
        for hook in tuple(hooks.values()):
            grad = grads[slot]
            if grad is None:
                break
            got = hook(grad)
            if got is not None:
                grads[slot] = _checked(hook, grad, got)
    return grads


def _outer(node: Node, grads: Grads, whole: Grads, hooked: Grads) -> Grads:
    """What arrived from outside, after hooks. Of a gradient that partly arises inside the node, hooks can be told but not change it."""
    for mine, all_of_it, given in zip(grads, whole, hooked, strict=True):
        if all_of_it is not mine and given is not all_of_it:
            raise RuntimeError(
                f"a hook on a result of {node.name()} changes its gradient, which other results of the same call depend on; put the "
                "hook on "
                "inside the compiled function"
            )
    return [g if w is not g else h for g, w, h in zip(grads, whole, hooked, strict=True)]


def _checked(hook: Any, grad: Tensor, got: Any) -> Tensor:
    name = getattr(hook, "__name__", repr(hook))
    if not isinstance(got, Tensor):
        raise TypeError(f"expected Variable, but hook '{name}' returned '{type(got).__name__}'")
    if got._type.shape != grad._type.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value: {list(grad._type.shape)} became {list(got._type.shape)}")
    if got._type.dtype != grad._type.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {grad.dtype} got {got.dtype})")
    return got


def _retain(node: Node, grads: Grads) -> None:
    for slot, reference in (node._retaining or {}).items():
        tensor, grad = reference(), grads[slot]
        if tensor is not None and grad is not None:
            accumulate(tensor, grad, in_place=False)


def _pre_hooks(node: Node, grads: Grads) -> Grads:
    for hook in tuple((node._pre_hooks or {}).values()):
        got = hook(tuple(grads))
        if got is not None:
            grads = _replacement(hook, grads, got)
    return grads


def _post_hooks(node: Node, sent: Sequence[Tensor | None], grads: Grads) -> Sequence[Tensor | None]:
    for hook in tuple((node._post_hooks or {}).values()):
        got = hook(tuple(sent), tuple(grads))
        if got is not None:
            sent = _replacement(hook, sent, got)
    return sent


def _replacement(hook: Any, old: Sequence[Tensor | None], got: Any) -> list[Tensor | None]:
    name = getattr(hook, "__name__", repr(hook))
    if not isinstance(got, tuple):
        raise TypeError(f"expected tuple, but hook '{name}' returned '{type(got).__name__}'")
    if len(got) != len(old):
        raise RuntimeError(f"hook '{name}' has returned an incorrect number of values (got {len(got)}, but expected {len(old)})")
    if any(o is None and g is not None for o, g in zip(old, got, strict=True)):
        raise RuntimeError(f"can't replace a None gradient with a non-None value, as hook '{name}' does")
    return [g if o is None or g is None else _checked(hook, o, g) for o, g in zip(old, got, strict=True)]


# --- what a node may return ---------------------------------------------------------------------


def validated(node: Node, sent: Sequence[Any]) -> list[Tensor | None]:
    """Each gradient with the shape and dtype of the input it belongs to: summed down, cast, or an error."""
    out: list[Tensor | None] = []
    for i, (edge, grad) in enumerate(zip(node._edges, sent, strict=True)):
        if grad is None:
            out.append(None)
            continue
        if not isinstance(grad, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(grad).__name__}) from {node._described()} at index {i}")
        if edge is None:
            out.append(grad)  # goes nowhere, but hooks see it
            continue
        wanted = edge[0]._metas[edge[1]]
        if edge[0]._any_dtype:
            wanted = wanted._replace(dtype=grad._type.dtype)
        out.append(grad if grad._type is wanted or grad._type == wanted else _fitted(node, i, grad, wanted))
    return out


def _fitted(node: Node, i: int, grad: Tensor, wanted: TensorType) -> Tensor:
    from tpc.functions.reduction import sum_to
    from tpc.record import cast

    if grad._type.shape != wanted.shape:
        if not expands(wanted.shape, grad._type.shape):
            raise RuntimeError(
                f"Function {node._described()} returned an invalid gradient at index {i} - got {list(grad._type.shape)} but expected "
                f"shape compatible with {list(wanted.shape)}"
            )
        grad = sum_to(grad, wanted.shape)
    if grad._type.dtype != wanted.dtype:
        if is_complex(grad._type.dtype) and not is_complex(wanted.dtype):
            if not node._takes_real_part:
                raise RuntimeError(
                    f"Function {node._described()} returned an invalid gradient at index {i} - expected dtype "
                    f"{wanted.dtype} but got {grad._type.dtype}: a complex gradient for a real input"
                )
            from tpc.functions.elementwise import real

            grad = real(grad)
        grad = cast(grad, wanted.dtype)
    return grad


def expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` can be expanded to `target`."""
    if len(shape) > len(target):
        return False
    return all(s in (1, t) for s, t in zip(reversed(shape), reversed(target), strict=False))


# --- entry points -------------------------------------------------------------------------------


def root_edge(tensor: Tensor, i: int) -> Edge:
    """The edge that a pass starts from; `RuntimeError` for a tensor without history."""
    edge = tensor._edge()
    if edge is None:
        raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    return edge


def seed(output: Tensor, grad: Tensor | None, i: int) -> Tensor:
    """The gradient a pass starts with: ones for a one-element root, else the given one, checked."""
    if grad is None:
        if output._type.numel != 1:
            raise RuntimeError(f"grad can be implicitly created only for scalar outputs (output {i} has shape {list(output._type.shape)})")
        if is_complex(output._type.dtype):
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
        from tpc.functions.factories import ones_of

        return ones_of(output._type)
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad._type.shape != output._type.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {list(grad._type.shape)} and output[{i}] has a shape of "
            f"{list(output._type.shape)}."
        )
    if is_complex(grad._type.dtype) and not is_complex(output._type.dtype):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {output.dtype}."
        )
    from tpc.record import cast

    return cast(grad, output._type.dtype) if is_differentiable(output._type.dtype) else grad
