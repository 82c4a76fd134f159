"""Commands on IR files: ``tpc opt``, ``tpc diff``, ``tpc verify``, ``tpc draw``."""

from __future__ import annotations

import json
from argparse import Namespace

from tpc import config
from tpc.cli.printing import Watch, emit_module, emit_picture, format_for
from tpc.cli.stop import NO, OK, USAGE, Stop, usage
from tpc.cli.streams import check_writable, emit, program_of, read_module
from tpc.drawing import dot_of
from tpc.ir.compare import same_program
from tpc.ir.errors import VerifyError
from tpc.ir.names import at_name
from tpc.ir.program import Module, Program
from tpc.ir.signature import counted
from tpc.ir.verify import verify
from tpc.passes.pipeline import PASSES, Pass, pass_name, run, standard
from tpc.pipeline import evaluate


def opt_command(arguments: Namespace) -> int:
    """Runs passes over every program of a file."""
    format = format_for("opt", arguments.format, arguments.output, ("text", "json"))
    passes = chosen_passes(arguments.passes, arguments.memory_budget)
    names = [pass_name(p) for p in passes]
    if arguments.print_after not in (None, "all", *names):
        raise usage("opt", f"--print-after: {arguments.print_after!r} is not among the passes that run: {', '.join(names) or 'none'}")
    check_writable("opt", arguments.output)
    module = read_module("opt", arguments.file, NO)
    _check("opt", module, arguments.file)
    watch = Watch(arguments.print_after) if arguments.print_after else None
    done = [run(program, passes, watch, verify if config.verify else None) for program in module.programs.values()]
    emit_module("opt", Module(done), format, arguments.output, arguments.color)
    return OK


def chosen_passes(text: str, memory_budget: float) -> tuple[Pass, ...]:
    """Passes by their names, in the order given; ``all`` are the standard ones, ``none`` none."""
    known = {pass_name(p): p for p in standard(evaluate, memory_budget)}
    if text == "all":
        return tuple(p for name, p in known.items() if name not in config.skip)
    names = [name.strip() for name in text.split(",") if name.strip()] if text != "none" else []
    for name in names:
        if name not in known:
            raise usage("opt", f"no pass is called {name!r}; there are {', '.join(p.__name__ for p in PASSES)}")
    return tuple(known[name] for name in names if name not in config.skip)


def verify_command(arguments: Namespace) -> int:
    """Says what a file holds, if it is valid."""
    for path in arguments.files:
        module = read_module("verify", path, NO)
        _check("verify", module, path)
        found = ", ".join([_described(program) for program in module.programs.values()]) or "no programs"
        emit("verify", f"{'<stdin>' if path == '-' else path}: valid: {found}", None)
    return OK


def _described(program: Program) -> str:
    counts = ((len(program.inputs), "input"), (len(program.ops), "op"), (len(program.outputs), "output"))
    return f"{at_name(program.name)} ({', '.join([counted(number, noun) for number, noun in counts])})"


def _check(command: str, module: Module, path: str) -> None:
    try:
        verify(module)
    except VerifyError as error:
        raise Stop(NO, f"{path}: error: {error}") from None


def diff_command(arguments: Namespace) -> int:
    """Compares the programs of two files, whatever their values are called; 1 where they differ."""
    if arguments.first == arguments.second == "-":
        raise usage("diff", "only one of the files can be -")
    first, second = (read_module("diff", path, USAGE) for path in (arguments.first, arguments.second))
    differences: dict[str, str] = {}
    if arguments.program is not None:
        name = arguments.program.removeprefix("@")
        a, b = program_of("diff", first, name, arguments.first), program_of("diff", second, name, arguments.second)
        if (why := same_program(a, b, arguments.origin)) is not None:
            differences[name] = why
    elif len(first.programs) == len(second.programs) == 1:
        (a,), (b,) = first.programs.values(), second.programs.values()
        if (why := same_program(a, b, arguments.origin)) is not None:
            differences[a.name] = why
    else:
        differences = _differences(first, second, arguments)
    if arguments.json:
        emit("diff", json.dumps({"same": not differences, "differences": differences}, indent=2), None)
    elif not arguments.quiet:
        emit("diff", "\n".join([f"@{name}: {why}" for name, why in differences.items()]) or "the same", None)
    return NO if differences else OK


def _differences(first: Module, second: Module, arguments: Namespace) -> dict[str, str]:
    """The first difference of each program that is not the same in both."""
    found = {}
    for name in dict.fromkeys([*first.programs, *second.programs]):
        if name not in second.programs or name not in first.programs:
            found[name] = f"only in {arguments.first if name in first.programs else arguments.second}"
        elif (why := same_program(first[name], second[name], arguments.origin)) is not None:
            found[name] = why
    return found


def draw_command(arguments: Namespace) -> int:
    """Draws the programs of a file."""
    format = format_for("draw", arguments.format, arguments.output, ("dot", "svg", "png", "pdf"))
    check_writable("draw", arguments.output)
    module = read_module("draw", arguments.file, NO)
    if arguments.program is not None:
        module = Module([program_of("draw", module, arguments.program, arguments.file)])
    if not module.programs:
        raise usage("draw", f"{arguments.file} has no program")
    emit_picture("draw", dot_of(module, collapse=arguments.collapse), format, arguments.output, arguments.timeout)
    return OK
