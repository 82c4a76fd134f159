"""What can be written on the command line."""

from __future__ import annotations

import argparse
import math
from typing import Any, NoReturn

from tpc.cli.check import check_command
from tpc.cli.files import diff_command, draw_command, opt_command, verify_command
from tpc.cli.run import run_command
from tpc.cli.trace import trace_command
from tpc.cli.tracebacks import version
from tpc.drawing.rendering import TIMEOUT
from tpc.passes.pipeline import PASSES
from tpc.trace import STAGES

_PASS_NAMES = ", ".join(p.__name__ for p in PASSES)

_MAIN_EPILOG = """\
examples:
  tpc trace model.py:step --input 'f32[64,64]' --input 'i64[64]'     the program of a training step
  tpc trace swish.py:Swish --input 'f32[64,784]' -o swish.svg        a custom Function, drawn
  tpc opt in.tir --passes simplify,cse,fuse -o out.tir               passes over IR text
  tpc run out.tir --input x.npy                                      IR text on arrays
  tpc check swish.py                                                 what is wrong or costly about Functions
  tpc diff in.tir out.tir                                            whether two programs are the same

exit codes:
  0 fine   1 the answer is no: programs differ, IR is wrong, a run failed, a Function is wrong   2 wrong usage
  3 the traced program raised   4 internal error of tpc   130 interrupted

environment: TPC_VERIFY, TPC_DUMP, TPC_SKIP, TPC_THREADS, TPC_CACHE_DIR (see tpc.config), NO_COLOR
"""

_TRACE_EPILOG = """\
TARGET is path.py:name or dotted.module:name: a function, a custom Function class (its forward and reverse
programs), or an object that can be called. Arguments are types: f32[64,784], or 'f32[64,784] grad' where a
gradient is wanted; or Python literals: 0.5, True, None, "'sum'". Nested arguments come from --args: a function
that returns a tuple of arguments, or a dict of named ones, made with tpc.spec.

examples:
  tpc trace examples/digits.py:step --input 'f32[64,64]' --input 'i64[64]' --stage optimized
  tpc trace swish.py:Swish --input 'f32[64,784]'
  tpc trace swish.py:loss --args swish.py:example --format svg -o loss.svg
  tpc trace swish.py:loss --args swish.py:example --report --memory-budget 0.5
  tpc trace swish.py:loss --args swish.py:example --print-after all 2> passes.txt

stages:
  recorded   as the function ran                 joint      with backward, where its results can be back-propagated
  forward    the first half of the joint one     reverse    the second half
  optimized  after all passes (pictures)         plan       with memory assigned
Without --stage, the programs that run are printed as they are before the last passes: one, or forward and
reverse.
"""

_CHECK_EPILOG = """\
TARGET is path.py or dotted.module, with :name for one of its Functions. Without --input and --args, arguments are
tried until forward takes them. Floating arguments require grad and are checked in double precision. "wrong" findings
are faults, "cost" findings are memory or work that can be spared. Exits with 1 if anything is wrong or a Function
could not be checked.

examples:
  tpc check swish.py                                        every Function of the file
  tpc check swish.py:Swish --input 'f32[64,784]'            one, on arguments of these types
  tpc check losses.py:Loss --args losses.py:example --json
"""

_OPT_EPILOG = f"""\
passes: {_PASS_NAMES} (the standard order)

examples:
  tpc opt in.tir                                  all of them
  tpc opt in.tir --passes simplify,cse -o out.tir
  tpc opt in.tir --passes none --format json      only to another format
  tpc trace f.py:f --input 'f32[8]' | tpc opt - --passes fuse --print-after fuse
"""

_RUN_EPILOG = """\
Inputs are .npy files in the order of the program, NAME=FILE for an input by name, or .npz files with arrays
by name. Outputs are called 0, 1, ...; the new content of an input is called as that input.

examples:
  tpc run in.tir --input x.npy --input y.npy          prints a summary of the outputs
  tpc run in.tir --input w=w.npy --input x.npy -o out.npz
  tpc run step.tir --program step.reverse --input saved.npz --interpreter
"""

_DIFF_EPILOG = """\
Names of values do not count; with --origin, scopes and source lines do. Exits with 0 if the programs are the
same, 1 if they are not, 2 if a file cannot be read.

examples:
  tpc diff before.tir after.tir
  tpc opt in.tir | tpc diff - expected.tir --quiet
"""

_VERIFY_EPILOG = """\
examples:
  tpc verify in.tir
  tpc trace f.py:f --input 'f32[8]' | tpc verify -
"""

_DRAW_EPILOG = """\
examples:
  tpc draw in.tir -o picture.svg
  tpc draw in.tir --collapse 1 -o picture.png         nested Functions as one box
  tpc draw in.tir > picture.dot
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; what it returns has `run`, the function of the command."""
    main = _Parser(prog="tpc", description="A graph compiler for custom autograd Functions.", epilog=_MAIN_EPILOG, formatter_class=_Format)
    main.add_argument("--version", action="version", version=version())
    commands = main.add_subparsers(metavar="COMMAND", required=True, title="commands")
    _trace(commands)
    _check(commands)
    _opt(commands)
    _run(commands)
    _diff(commands)
    _verify(commands)
    _draw(commands)
    return main


class _Format(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, max_help_position=32, **settings)


def _command(commands: Any, name: str, run: Any, summary: str, epilog: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=epilog, formatter_class=_Format
    )
    made.set_defaults(run=run)
    return made


def _trace(commands: Any) -> None:
    command = _command(commands, "trace", trace_command, "record a function and print, draw or measure its programs", _TRACE_EPILOG)
    command.add_argument("target", metavar="TARGET", help="path.py:name or dotted.module:name")
    _inputs(command, "SPEC", "one argument: a type or a literal")
    command.add_argument("--args", metavar="MODULE:FUNCTION", help="a function that returns the arguments")
    command.add_argument("--stage", choices=STAGES, help="which programs (below)")
    command.add_argument("--format", choices=("text", "json", "dot", "svg", "png", "pdf"), help="default: by the suffix of -o, else text")
    command.add_argument("--report", action="store_true", help="print what is kept for backward and why; the programs go to -o only")
    command.add_argument("--print-after", metavar="PASS", help=f"print programs to stderr after a pass ({_PASS_NAMES}), or all")
    _budget(command)
    _output(command)
    _picture(command)
    _color(command)


def _check(commands: Any) -> None:
    command = _command(commands, "check", check_command, "say what is wrong or costly about custom Functions", _CHECK_EPILOG)
    command.add_argument("target", metavar="TARGET", help="path.py or dotted.module: all its Functions; with :name one of them")
    _inputs(command, "SPEC", "one argument: a type or a literal")
    command.add_argument("--args", metavar="MODULE:FUNCTION", help="a function that returns a tuple of arguments")
    command.add_argument("--json", action="store_true", help="the findings as JSON")
    _color(command)


def _opt(commands: Any) -> None:
    command = _command(commands, "opt", opt_command, "run passes over IR text", _OPT_EPILOG)
    command.add_argument("file", metavar="FILE", help="IR text or JSON, - for stdin")
    command.add_argument("--passes", metavar="NAMES", default="all", help="which, in this order, with commas; all (the default), none")
    command.add_argument("--format", choices=("text", "json"), help="default: by the suffix of -o, else text")
    command.add_argument("--print-after", metavar="PASS", help="print programs to stderr after a pass, or all")
    _budget(command)
    _output(command)
    _color(command)


def _run(commands: Any) -> None:
    command = _command(commands, "run", run_command, "run a program of IR text on arrays", _RUN_EPILOG)
    command.add_argument("file", metavar="FILE", help="IR text or JSON, - for stdin")
    _program(command)
    _inputs(command, "[NAME=]FILE", "a .npy or .npz file, - for stdin")
    command.add_argument("--interpreter", action="store_true", help="use the reference interpreter instead of the executable")
    command.add_argument("--json", action="store_true", help="the summary as JSON")
    _output(command, "a .npz file, or .npy for one output; - for stdout")


def _diff(commands: Any) -> None:
    command = _command(commands, "diff", diff_command, "say whether two files hold the same programs", _DIFF_EPILOG)
    command.add_argument("first", metavar="A", help="IR text or JSON, - for stdin")
    command.add_argument("second", metavar="B")
    _program(command)
    command.add_argument("--origin", action="store_true", help="compare scopes and source lines too")
    command.add_argument("--quiet", "-q", action="store_true", help="say it with the exit code only")
    command.add_argument("--json", action="store_true", help="the answer as JSON")


def _verify(commands: Any) -> None:
    command = _command(commands, "verify", verify_command, "check IR text against the rules of the IR", _VERIFY_EPILOG)
    command.add_argument("files", metavar="FILE", nargs="+", help="IR text or JSON, - for stdin")


def _draw(commands: Any) -> None:
    command = _command(commands, "draw", draw_command, "draw the programs of IR text, forward beside backward", _DRAW_EPILOG)
    command.add_argument("file", metavar="FILE", help="IR text or JSON, - for stdin")
    _program(command)
    command.add_argument("--format", choices=("dot", "svg", "png", "pdf"), help="default: by the suffix of -o, else dot")
    _output(command)
    _picture(command)


# --- options that commands share ----------------------------------------------------------------


def _inputs(command: argparse.ArgumentParser, what: str, help: str) -> None:
    command.add_argument("--input", "-i", dest="inputs", metavar=what, action="append", default=[], help=help)


def _program(command: argparse.ArgumentParser) -> None:
    command.add_argument("--program", metavar="NAME", help="which of several programs")


def _output(command: argparse.ArgumentParser, what: str = "where the result goes, all of it or nothing; - for stdout") -> None:
    command.add_argument("-o", "--output", metavar="FILE", help=what)


def _picture(command: argparse.ArgumentParser) -> None:
    depth = "pictures: how deeply nested Functions get boxes of their own; 0: one box for each Function"
    command.add_argument("--collapse", type=_depth, metavar="DEPTH", help=depth)
    time = f"pictures: time for layout (default {TIMEOUT:g})"
    command.add_argument("--timeout", type=_seconds, default=TIMEOUT, metavar="SECONDS", help=time)


def _budget(command: argparse.ArgumentParser) -> None:
    much = "how much may be kept for backward, from 1.0 (fastest, the default) to 0.0 (least memory)"
    command.add_argument("--memory-budget", type=_fraction, default=1.0, metavar="X", help=much)


def _color(command: argparse.ArgumentParser) -> None:
    command.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours on stdout (auto: on a terminal)")


def _fraction(text: str) -> float:
    return _number(text, "a number between 0.0 and 1.0", lambda x: 0.0 <= x <= 1.0)


def _seconds(text: str) -> float:
    return _number(text, "a number of seconds above 0", lambda x: 0.0 < x < math.inf)


def _number(text: str, what: str, allowed: Any) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not allowed(number):
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
    return number


def _depth(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a depth such as 0, 1 or 2, not {text!r}")
    return int(text)
