"""The command line: ``tpc`` and ``python -m tpc``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tpc.cli.arguments import parser
from tpc.cli.stop import INTERNAL, INTERRUPTED, OK, Stop
from tpc.cli.tracebacks import internal_report


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; raises nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    code: int | None = None
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever reads has seen enough. Python flushes once more when it ends, so give it something that takes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK if code is None else code


def _run(words: list[str]) -> int:
    try:
        arguments = parser().parse_args(words)
        return int(arguments.run(arguments))
    except Stop as stop:
        print(stop.message, file=sys.stderr)
        return stop.code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as end:  # argparse: help, version and usage errors
        return end.code if isinstance(end.code, int) else OK
    except BrokenPipeError:
        raise
    except Exception as error:
        print(internal_report(error, words), file=sys.stderr)
        return INTERNAL
