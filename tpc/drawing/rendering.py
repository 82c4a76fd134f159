"""DOT text to SVG, PNG and the like, by whichever Graphviz there is, within a time limit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tpc.ir.errors import TpcError

TIMEOUT = 60.0
"""Seconds that layout may take."""
FORMATS = ("svg", "png", "pdf", "jpg", "gif", "ps", "eps")
"""Formats that some Graphviz renders."""
HOW_TO_GET = "install graphviz-pure (pip install graphviz-pure) or Graphviz (https://graphviz.org/download)"


class RenderError(TpcError, RuntimeError):
    """A picture could not be rendered; its DOT text is fine."""


def render(dot: str, format: str, timeout: float = TIMEOUT) -> bytes:
    """The picture in that format. `RenderError` says why there is none: no renderer, none for the format, or no time."""
    why = f"no Graphviz was found: {HOW_TO_GET}"
    for program in _programs():
        try:
            done = subprocess.run([program, f"-T{format}"], input=dot.encode(), capture_output=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise RenderError(
                f"layout took longer than {timeout:g} seconds; collapse more (collapse=1 or collapse=0) or allow more time (timeout=)"
            ) from None
        except OSError as error:
            why = f"{program} does not run: {error}"
            continue
        if done.returncode == 0 and done.stdout:
            return done.stdout
        message = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        name = Path(program).stem
        why = f"{name} cannot write {format}" if "not recognized" in message else f"{name} failed: {message[:200]}"
        if "not recognized" in message and name != "dot":
            why += "; svg and png work, for other formats install Graphviz (https://graphviz.org/download)"
    raise RenderError(why)


def _programs() -> Iterator[str]:
    """The installed renderers, the system's first."""
    if found := shutil.which("dot"):
        yield found
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent), sysconfig.get_path("scripts", f"{_user_scheme()}")]
    for folder in (*dict.fromkeys(folders), None):
        if found := shutil.which("graphviz-pure", path=folder):
            yield found
            return


def _user_scheme() -> str:
    return sysconfig.get_preferred_scheme("user")
