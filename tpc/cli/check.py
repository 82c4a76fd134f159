"""``tpc check``: what is wrong or costly about the custom Functions of a file."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from tpc.autograd.function import Function
from tpc.cli.check_arguments import candidates, described, functions_of, line_of
from tpc.cli.check_findings import Failed, Finding, check
from tpc.cli.stop import NO, OK, RAISED, Stop, usage
from tpc.cli.streams import emit, paint_for
from tpc.cli.target import arguments_from, inputs, module_of, users_code
from tpc.ir.names import plain
from tpc.ir.signature import counted

COMMAND = "check"
_COLOURS = {"wrong": "31", "cost": "33", "open": "33", "ok": "32"}


def check_command(arguments: Namespace) -> int:
    """Checks the Functions of a file, or the one that is named; 1 where something is wrong."""
    if arguments.inputs and arguments.args:
        raise usage(COMMAND, "give --input or --args, not both")
    given: tuple[Any, ...] | None = inputs(COMMAND, arguments.inputs) if arguments.inputs else None
    file, colon, name = arguments.target.partition(":")
    found = functions_of(module_of(COMMAND, file))
    names = ", ".join([f.__name__ for f in found]) or "none"
    if colon:
        chosen = [f for f in found if f.__name__ == name]
        if not chosen:
            raise usage(COMMAND, f"{file} defines no Function {name!r}; it defines {names}")
        found = chosen
    if not found:
        raise usage(COMMAND, f"{file} defines no Functions")
    if arguments.args:
        given, named = arguments_from(COMMAND, arguments.args)
        if named:
            raise usage(COMMAND, f"--args {arguments.args} must return a tuple: Functions take their arguments by position")
    if given is not None and len(found) > 1:
        raise usage(COMMAND, f"--input and --args are for one Function; name one of {names}")
    results = [_checked(function, given) for function in found]
    if arguments.json:
        emit(COMMAND, json.dumps({"functions": results}, indent=2), None)
    else:
        emit(COMMAND, "\n".join([_text(file, r, paint_for(arguments.color) is not plain) for r in results]), None)
    is_wrong = any(f["level"] == "wrong" for r in results for f in r["findings"])
    return NO if is_wrong or any(r["arguments"] is None for r in results) else OK


def _checked(function: type[Function], given: tuple[Any, ...] | None) -> dict[str, Any]:
    """The findings of one Function as plain data; `arguments` is None where forward took none of those tried."""
    why = "it takes no arguments that could be guessed"
    for args in [given] if given is not None else candidates(function):
        try:
            with users_code():
                found = _findings(function, args)
        except Failed as error:
            if given is not None:
                raise Stop(RAISED, f"tpc {COMMAND}: error: {function.__name__}.forward raised {error.message}") from None
            why = error.message
            continue
        return _result(function, described(args), found)
    hint = f"forward took none of the arguments that were tried ({why}); give --input or --args"
    return _result(function, None, [Finding("open", "not-checked", hint)])


def _findings(function: type[Function], args: tuple[Any, ...]) -> list[Finding]:
    return list(dict.fromkeys(check(function, args)))


def _result(function: type[Function], args: str | None, found: list[Finding]) -> dict[str, Any]:
    listed = [f._asdict() for f in found]
    return {"name": function.__name__, "line": line_of(function), "arguments": args, "findings": listed}


def _text(file: str, result: dict[str, Any], colour: bool) -> str:
    def painted(level: str) -> str:
        return f"\033[{_COLOURS[level]}m{level:5}\033[0m" if colour else f"{level:5}"

    on = f" on {result['arguments']}" if result["arguments"] else ""
    lines = [f"{file}:{result['line']} {result['name']}{on}"]
    lines += [f"  {painted(f['level'])}  {f['kind']}: {f['message']}" for f in result["findings"]]
    if not result["findings"]:
        lines.append(f"  {painted('ok')}  nothing found")
    else:
        count = sum(f["level"] == "wrong" for f in result["findings"])
        lines.append(f"  {counted(len(result['findings']), 'finding')}, {count} of them wrong")
    return "\n".join(lines)
