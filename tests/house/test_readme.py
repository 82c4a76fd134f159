"""The README's code runs and prints what the README says. `pytest tests/house/test_readme.py --update` rewrites the outputs."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.S)


def test_the_code_of_the_readme_runs_and_prints_what_it_says(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "swish", raising=False)
    text = README.read_text()
    parts, at, printed, space = [], 0, None, {"__name__": "readme"}
    for block in BLOCK.finditer(text):
        parts.append(text[at : block.start("body")])
        at = block.end("body")
        kind, body = block["kind"], block["body"]
        if kind == "python":
            if block["file"]:
                Path(block["file"]).write_text(body)
            printed = _run(body, space)
        elif kind == "text":
            assert printed is not None, "an output without code before it"
            body, printed = printed, None
        elif kind == "console":
            body = "".join(_shell(line[2:]) for line in body.splitlines() if line.startswith("$ "))
        parts.append(body)
    ran = "".join(parts) + text[at:]
    if request.config.getoption("--update"):
        README.write_text(ran)
        text = ran
    assert ran == text, "the README says otherwise; `pytest tests/house/test_readme.py --update` rewrites its outputs"


def _run(code: str, space: dict) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), space)
    return out.getvalue()


def _shell(command: str) -> str:
    """The command as shown and what it prints; output of `python -m tpc`, so that no installed script is needed."""
    words = shlex.split(command)
    assert words[0] == "tpc"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-m", "tpc", *words[1:]], capture_output=True, text=True, env=environment, timeout=120)
    return f"$ {command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", re.findall(r"`((?:docs|tools|tpc|ir|examples)/[\w./-]+)`", README.read_text() if README.exists() else ""))
def test_the_files_it_names_exist(path):
    assert (ROOT / path).exists()
