"""``tpc run``: a program of a file on arrays."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from tpc import config
from tpc.cli.stop import NO, OK, failed, usage
from tpc.cli.streams import check_writable, emit, program_of, read_array, read_module
from tpc.ir.names import value_names
from tpc.ir.program import Program
from tpc.ir.signature import counted
from tpc.ir.types import type_of

SHOWN = 6
"""Elements that the summary of an output shows."""


def run_command(arguments: Namespace) -> int:
    """Runs one program and writes or summarises its outputs."""
    check_writable("run", arguments.output)
    if arguments.file == "-" and "-" in arguments.inputs:
        raise usage("run", "only one of the program and the inputs can be -")
    program = program_of("run", read_module("run", arguments.file, NO), arguments.program, arguments.file)
    single = arguments.output is not None and Path(arguments.output).suffix == ".npy"
    if single and len(program.outputs) != 1:
        raise usage("run", f"a .npy file holds one array, but @{program.name} has {len(program.outputs)} outputs; write a .npz file")
    arrays = _inputs(program, arguments.inputs)
    outputs = _execute(program, arrays, arguments.interpreter)
    if arguments.output is not None:
        emit("run", _packed(program, outputs, single), arguments.output)
    elif arguments.json:
        emit("run", json.dumps([_described(name, a) for name, a in zip(output_names(program), outputs, strict=True)], indent=2), None)
    else:
        emit("run", "\n".join([_summary(name, a) for name, a in zip(output_names(program), outputs, strict=True)]), None)
    return OK


def output_names(program: Program) -> list[str]:
    """Outputs are numbered, except that the new content of an input is called as that input."""
    names = value_names(program)
    return [str(n) if into is None else names[program.inputs[into]] for n, into in enumerate(program.writes)]


def _inputs(program: Program, texts: Sequence[str]) -> list[np.ndarray]:
    """Arrays for the inputs: from NAME=FILE and .npz files by name, from the others in order."""
    from tpc.runtime.interpreter import check_inputs

    names = [value_names(program)[v] for v in program.inputs]
    named: dict[str, np.ndarray] = {}
    ordered: list[np.ndarray] = []
    for text in texts:
        name, equals, path = text.partition("=")
        by_name = bool(equals) and (name.removeprefix("%") in names or not Path(text).exists())
        loaded = read_array("run", path if by_name else text)
        if isinstance(loaded, np.ndarray):
            if by_name:
                named[name.removeprefix("%")] = loaded
            else:
                ordered.append(loaded)
        else:
            named.update(loaded)
    for name in named:
        if name not in names:
            raise usage("run", f"@{program.name} has no input %{name}; it has {', '.join(f'%{n}' for n in names) or 'none'}")
    rest = iter(ordered)
    arrays = [named[name] if name in named else next(rest, None) for name in names]
    takes = f"@{program.name} takes {counted(len(names), 'input')}"
    missing = [f"%{name}: {v.type}" for name, v, array in zip(names, program.inputs, arrays, strict=True) if array is None]
    if missing:
        raise usage("run", f"{takes}; there is none for {', '.join(missing)}")
    if (left := len(list(rest))) > 0:
        raise usage("run", f"{takes}; {left} of those given {'is' if left == 1 else 'are'} left over")
    try:
        check_inputs(program, arrays)  # type: ignore[arg-type]  # none is missing
    except (TypeError, ValueError) as error:
        raise usage("run", str(error)) from None
    return arrays  # type: ignore[return-value]


def _execute(program: Program, arrays: list[np.ndarray], interpreted: bool) -> list[np.ndarray]:
    from tpc.runtime.executable import Executable
    from tpc.runtime.interpreter import interpret

    try:
        if interpreted:
            return interpret(program, arrays)
        return Executable(program, threads=config.threads).run(arrays)
    except MemoryError as error:
        raise failed("run", f"@{program.name} needs more memory than there is{f': {error}' if str(error) else ''}") from None
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        notes = "".join([f" ({note})" for note in getattr(error, "__notes__", [])])
        raise failed("run", f"@{program.name} failed: {type(error).__name__}: {error}{notes}") from None


def _packed(program: Program, outputs: Sequence[np.ndarray], single: bool) -> bytes:
    """A .npz file of the outputs by name, or a .npy file of the only one."""
    buffer = BytesIO()
    if single:
        np.save(buffer, outputs[0])
    else:
        named: dict[str, Any] = dict(zip(output_names(program), outputs, strict=True))
        np.savez(buffer, **named)
    return buffer.getvalue()


def _described(name: str, array: np.ndarray) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": name, "type": str(type_of(array)), "bytes": array.nbytes}
    if array.size and array.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            facts |= {key: _number(function(array)) for key, function in (("min", np.min), ("max", np.max), ("mean", np.mean))}
    if array.dtype.kind in "fc" and (bad := int(np.count_nonzero(~np.isfinite(array)))):
        facts["not_finite"] = bad
    return facts


def _number(value: Any) -> float | int | str:
    number = value.item()
    return number if np.isfinite(number) else str(number)


def _summary(name: str, array: np.ndarray) -> str:
    facts = _described(name, array)
    parts = [f"{key} {_short(facts[key])}" for key in ("min", "max", "mean") if key in facts]
    if "not_finite" in facts:
        parts.append(f"{facts['not_finite']} not finite")
    first = [str(x) if array.dtype.kind in "bc" else _short(x) for x in array.reshape(-1)[:SHOWN].tolist()]
    values = f"[{', '.join(first)}{', ...' if array.size > SHOWN else ''}]" if array.ndim else first[0]
    return "  ".join([f"{name}: {facts['type']}", *parts, values])


def _short(number: float | int | str) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)
