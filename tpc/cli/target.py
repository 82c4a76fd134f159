"""Finding what to trace, and what to trace it on."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from tpc.autograd.function import Function
from tpc.cli.stop import INTERNAL, RAISED, Stop, usage
from tpc.cli.tracebacks import internal_report, is_internal, user_traceback
from tpc.ir.atoms import Misread
from tpc.ir.signature import counted
from tpc.trace import spec


@contextlib.contextmanager
def users_code() -> Iterator[None]:
    """Around code of the user: what it prints goes to stderr, and what it raises ends the command with its own traceback."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (Stop, KeyboardInterrupt):
        raise
    except SystemExit as end:
        raise Stop(RAISED, f"the program left with exit code {end.code} while it was traced") from None
    except BaseException as error:
        if is_internal(error):
            raise Stop(INTERNAL, internal_report(error, sys.argv[1:])) from None
        raise Stop(RAISED, user_traceback(error)) from None


def find(command: str, target: str) -> Any:
    """What ``path.py:name`` or ``dotted.module:name`` names; the name may have dots."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise usage(command, f"{target!r} is no target: write path.py:name or dotted.module:name")
    found: Any = module_of(command, place)
    for part in name.split("."):
        with users_code():
            names = [n for n in dir(found) if not n.startswith("__")]
            exists = hasattr(found, part)
        if not exists:
            close = get_close_matches(part, names, 3)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise usage(command, f"{place} has no {name!r}{hint}")
        found = getattr(found, part)
    return found


def module_of(command: str, place: str) -> ModuleType:
    """The module that ``path.py`` or ``dotted.module`` is."""
    return _from_file(command, place) if place.endswith(".py") or "/" in place else _import(command, place)


def _from_file(command: str, path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise usage(command, f"there is no file {path}")
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(file.resolve()):
        return known
    # A file may be called random.py; it must not stand in for the module of that name.
    taken = known is not None or file.stem in sys.stdlib_module_names
    found = importlib.util.spec_from_file_location(f"_traced_{file.stem}" if taken else file.stem, file.resolve())
    if found is None or found.loader is None:
        raise usage(command, f"{path} is no Python file")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[found.name] = module
    with users_code():
        found.loader.exec_module(module)
    return module


def _import(command: str, name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    with users_code():
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
                raise usage(command, f"there is no module {name!r}") from None
            raise
        except ValueError:
            raise usage(command, f"{name!r} is no module name") from None


def function_of(command: str, target: str) -> Callable[..., Any]:
    """The function, Function class or callable object that a target names."""
    found = find(command, target)
    if isinstance(found, type) and not issubclass(found, Function):
        raise usage(command, f"{target} is a class; give a Function class, a function, or an object that can be called")
    if not callable(found):
        raise usage(command, f"{target} cannot be called: it is {type(found).__name__}")
    return found  # type: ignore[no-any-return]


# --- arguments ----------------------------------------------------------------------------------

_looks_like_type = re.compile(r"\s*[A-Za-z]\w*\s*\[").match
_is_type = re.compile(r"\s*[A-Za-z]\w*\s*\[[\s\d,]*\](\s+grad)?\s*").fullmatch


def inputs(command: str, texts: Sequence[str]) -> tuple[Any, ...]:
    """Arguments from ``--input``: types such as ``f32[64,784]``, or Python literals."""
    return tuple([_input(command, text) for text in texts])


def _input(command: str, text: str) -> Any:
    if not _looks_like_type(text):
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    try:
        if _is_type(text):
            return spec(text)
    except (Misread, ValueError) as error:
        raise usage(command, f"--input {text!r}: {error}".replace(f"{text!r}: {text!r}", repr(text))) from None
    raise usage(command, f"--input {text!r} is neither a type such as f32[64,784] or 'f32[64,784] grad' nor a Python literal")


def arguments_from(command: str, target: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the function that ``--args`` names returns: a tuple of arguments, a dict of named ones, or the only argument."""
    function = find(command, target)
    if not callable(function):
        raise usage(command, f"--args {target} cannot be called: it is {type(function).__name__}")
    check_arguments(command, f"--args {target}", function, (), {})
    with users_code():
        made = function()
    if isinstance(made, tuple):
        return made, {}
    if isinstance(made, dict) and all(isinstance(name, str) for name in made):
        return (), made
    return (made,), {}


def check_arguments(command: str, target: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Ends the command where the arguments do not fit the function, before anything runs."""
    try:
        signature = _signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        count = len(args) + len(kwargs)
        given = f"{counted(count, 'argument')} {'was' if count == 1 else 'were'} given"
        raise usage(command, f"{target} takes {signature}, but {given}: {error}") from None


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters that arguments have to fit, without annotations: for a Function class those of forward, without its `ctx`."""
    is_class = isinstance(function, type) and issubclass(function, Function)
    signature = inspect.signature(function.forward if is_class else function)  # type: ignore[attr-defined]
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    has_ctx = is_class and function.setup_context is Function.setup_context  # type: ignore[attr-defined]
    if has_ctx and parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        del parameters[0]
    return inspect.Signature(parameters)
