"""``tpc trace``: the programs of a function, as text, JSON or a picture."""

from __future__ import annotations

import json
from argparse import Namespace

from tpc import config
from tpc.cli.printing import Watch, emit_module, emit_picture, format_for
from tpc.cli.stop import OK, usage
from tpc.cli.streams import check_writable, emit, paint_for
from tpc.cli.target import arguments_from, check_arguments, function_of, inputs, users_code
from tpc.drawing import dot_of
from tpc.ir.plan_printer import print_plan
from tpc.ir.program import Module, Program
from tpc.ir.verify import verify
from tpc.passes.pipeline import PASSES, run, standard
from tpc.pipeline import EARLY, LATE, evaluate
from tpc.trace import Traced, trace

COMMAND = "trace"
PICTURES = ("dot", "svg", "png", "pdf")


def trace_command(arguments: Namespace) -> int:
    """Traces the target and writes what was asked for."""
    format = format_for(COMMAND, arguments.format, arguments.output, ("text", "json", *PICTURES))
    if arguments.inputs and arguments.args:
        raise usage(COMMAND, "give --input or --args, not both")
    check_writable(COMMAND, arguments.output)
    given = inputs(COMMAND, arguments.inputs)
    if arguments.stage == "plan" and format == "json":
        raise usage(COMMAND, "a plan has no JSON form; use --format text")
    function = function_of(COMMAND, arguments.target)
    args, kwargs = arguments_from(COMMAND, arguments.args) if arguments.args else (given, {})
    check_arguments(COMMAND, arguments.target, function, args, kwargs)
    with users_code():
        traced = trace(function, *args, memory_budget=arguments.memory_budget, **kwargs)
    if arguments.print_after:
        print_after(traced, arguments.print_after)
    if arguments.report:
        _report(traced, arguments, format)
    if not arguments.report or arguments.output is not None:
        _write(traced, arguments, format)
    return OK


def _report(traced: Traced, arguments: Namespace, format: str) -> None:
    """The report is what stdout gets; the programs go to ``-o``."""
    report = traced.report()
    to_stdout = arguments.output in (None, "-")
    if to_stdout and format == "json":
        emit(COMMAND, json.dumps(report.to_json(), indent=2), None)
    else:
        emit(COMMAND, report.text(paint_for(arguments.color)), None)
    if to_stdout:
        arguments.output = None


def _write(traced: Traced, arguments: Namespace, format: str) -> None:
    try:
        stage = traced.stage(arguments.stage) if arguments.stage else traced.module
    except ValueError as error:
        raise usage(COMMAND, str(error)) from None
    if format in PICTURES:
        text = dot_of(traced, arguments.stage or "optimized", arguments.collapse)
        emit_picture(COMMAND, text, format, arguments.output, arguments.timeout)
    elif isinstance(stage, Module):
        emit_module(COMMAND, stage, format, arguments.output, arguments.color)
    else:
        emit(COMMAND, "\n\n".join([print_plan(plan) for plan in stage]), arguments.output)


# --- --print-after ------------------------------------------------------------------------------


def print_after(traced: Traced, which: str) -> None:
    """Runs the passes once more and prints, to stderr, the programs after one pass or after each that changes something."""
    names = [p.__name__ for p in PASSES]
    if which != "all" and which not in names:
        raise usage(COMMAND, f"--print-after: no pass is called {which!r}; there are {', '.join(names)}")
    watch = Watch(which)
    if not traced.is_split:
        _run(traced.recorded, names, traced.memory_budget, watch)
        return
    halves = traced.body.halves
    _run(traced.body.program, EARLY, traced.memory_budget, watch)
    if which in ("all", "partition"):
        # A program that is split has its partition decided by the split.
        watch.show("partition (split into forward and reverse)", halves.forward)
        watch.show("partition (split into forward and reverse)", halves.reverse)
    for program in (halves.forward, halves.reverse):
        _run(program, LATE, traced.memory_budget, watch)


def _run(program: Program, names: list[str] | tuple[str, ...], memory_budget: float, watch: Watch) -> None:
    left_out = {p.__name__ for p in PASSES}.difference(names)
    passes = standard(evaluate, memory_budget, (*config.skip, *left_out))
    run(program, passes, watch, verify if config.verify else None)
