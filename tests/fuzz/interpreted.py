"""The programs of a traced function on the reference interpreter, against the first call in deferred mode."""

from __future__ import annotations

from typing import Any

import numpy as np

import tpc
from tests.fuzz.modes import is_about_values, quiet
from tests.fuzz.observe import Failed, Moment, array_difference
from tests.fuzz.program import Program
from tpc.deferred import flush
from tpc.ir.compare import same_module
from tpc.ir.json_form import dumps, loads
from tpc.ir.parser import parse
from tpc.ir.printer import print_module
from tpc.ir.program import Module
from tpc.ir.verify import verify
from tpc.outcome import Made, Source, storage_of
from tpc.runtime.interpreter import interpret
from tpc.runtime.kernels.registry import bind_view
from tpc.trace import Traced
from tpc.tracing import Untraceable


def check_programs(program: Program, expected: Moment | Failed) -> str | None:
    """Says where a program of the trace differs first: from its text or JSON form, or in its values."""
    tpc.manual_seed(0)
    tensors: dict[str, Any] = {}
    for leaf in program.leaves:
        tensors[leaf.name] = leaf.make(tpc, leaf.array(), tensors)
    body, _ = program.build(tpc, tensors)
    arguments = [tensors[leaf.name] for leaf in program.arguments]
    try:
        with quiet():
            traced = tpc.trace(body, *arguments, memory_budget=program.budget)
    except Untraceable:
        return None
    except Exception as error:
        if isinstance(expected, Failed) and expected.kind == type(error).__name__:
            return None
        return f"trace raised {type(error).__name__}: {error}"
    flush()
    outcome = traced.body.outcome
    arrays = [np.array(storage_of(source, arguments).array(), order="C") for source in outcome.sources]
    arrays = arrays[: len(traced.recorded.inputs)]
    try:
        outs = interpret(traced.recorded, [a.copy() for a in arrays])
    except Exception as error:
        if isinstance(expected, Failed) and expected.kind == type(error).__name__:
            return None
        return f"the interpreter raised {type(error).__name__}: {error}"
    if isinstance(expected, Failed):
        return None if is_about_values(expected) else f"{expected.kind} against no error"
    return _forms(traced, arrays, outs) or _values(traced, outs, expected, tensors, arguments) or _halves(traced, arrays, outs)


def _forms(traced: Traced, arrays: list[np.ndarray], outs: list[np.ndarray]) -> str | None:
    """Text and JSON of every stage give the same program again; that of the recorded one gives its values."""
    modules = {"recorded": Module([traced.recorded]), "joint": Module([traced.body.program]), "optimized": traced.optimized}
    for stage, module in modules.items():
        for program in module.programs.values():
            verify(program)
        for form, again in (("text", parse(print_module(module))), ("json", loads(dumps(module)))):
            if found := same_module(module, again, origin=True):
                return f"{stage} differs from its {form}: {found}"
            if stage == "recorded":
                (program,) = again.programs.values()
                if found := _first(interpret(program, [a.copy() for a in arrays]), outs):
                    return f"{stage} differs in value from its {form}: {found}"
    return None


def _values(traced: Traced, outs: list[np.ndarray], expected: Moment, tensors: dict[str, Any], arguments: list[Any]) -> str | None:
    """Results, written memory and gradients, against what was seen after the call."""
    outcome = traced.body.outcome
    written = {id(storage_of(outcome.sources[number], arguments)): outs[output] for output, number, _ in outcome.writes}
    found = {f"result {i}": x for i, x in enumerate(outcome.results)}
    for i, first in outcome.repeated:
        found[f"result {i}"] = outcome.results[first]
    names = {id(t): name for name, t in tensors.items()}
    for name, t in tensors.items():
        found[name] = t
    for name, x in found.items():
        wanted = expected[name]
        if isinstance(x, Source) and x.kind in ("arg", "outside"):
            x = arguments[x.ref] if x.kind == "arg" else x.ref
        if isinstance(x, Made) and x.storage is None:
            array = _viewed(outs[x.output], x.views)
        elif isinstance(x, tpc.Tensor):
            array = _viewed(written.get(id(x._storage), x._storage.array()), x._views)
        else:
            continue
        if wanted is not None and (difference := array_difference(wanted.array, np.asarray(array))):
            return f"recorded, {name}: {difference}"
    for source, made in outcome.grads:
        owner = arguments[source.ref] if source.kind == "arg" else source.ref
        wanted = expected.get(names.get(id(owner), ""))
        if not isinstance(made, Made) or made.storage is not None or wanted is None or wanted.grad is None:
            continue
        if difference := array_difference(wanted.grad.array, np.asarray(_viewed(outs[made.output], made.views))):
            return f"recorded, gradient: {difference}"
    return None


def _viewed(array: np.ndarray, views: Any) -> np.ndarray:
    for view in views:
        array = bind_view(view.defn, view.attrs, view.type)(array)
    return array


def _halves(traced: Traced, arrays: list[np.ndarray], outs: list[np.ndarray]) -> str | None:
    """The optimized programs, and, where backward is a program of its own, both halves against the joint one: the same bits,
    but for products of saved values, which lie in another order then and are added up in another order."""
    body = traced.body
    if not traced.is_split:
        return _first(interpret(body.optimized, [a.copy() for a in arrays]), outs, "optimized")
    rng = np.random.default_rng(0)
    inputs = body.program.inputs
    cotangents = [np.asarray(rng.standard_normal(v.type.shape)).astype(v.type.numpy_dtype) for v in inputs[len(arrays) :]]
    with np.errstate(all="ignore"):
        joint = interpret(body.program, [a.copy() for a in [*arrays, *cotangents]])
        given = [*arrays, *cotangents]
        forward = interpret(body.forward_program, [given[i].copy() for i in body.halves.forward_inputs])
        reverse = interpret(
            body.reverse_program, [(forward if kind == "forward" else given)[n].copy() for kind, n in body.halves.reverse_inputs]
        )
    found = _first(joint[: len(outs)], outs, "joint") or _first(forward[: len(outs)], outs, "forward")
    products = any(op.name == "matmul" for op in body.program.ops)
    return found or _first(reverse, joint[len(outs) :], "reverse", 64.0 if products else 0.0)


def _first(got: list[np.ndarray], wanted: list[np.ndarray], what: str = "", tolerance: float = 0.0) -> str | None:
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if found := array_difference(a, b, tolerance):
            return f"{what} output {i}: {found}"
    return None
