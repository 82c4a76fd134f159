"""The command line as a process: help, pipes, interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import tpc.cli.streams as streams
from tests.cli.conftest import TEXT
from tpc.ir.names import ansi, plain

COMMANDS = ("trace", "opt", "run", "diff", "verify", "draw")
TPC = [sys.executable, "-m", "tpc"]


def process(*words, **options):
    return subprocess.run([*TPC, *words], capture_output=True, text=True, timeout=60, check=False, **options)


def test_version_and_module_entry():
    done = process("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("tpc ")
    assert "NumPy" in done.stdout


def test_help_has_examples_and_exit_codes(tpc):
    done = tpc("--help")
    assert done.code == 0
    assert "examples:" in done.out
    assert "exit codes:" in done.out
    assert all(command in done.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(tpc, command):
    done = tpc(command, "--help")
    assert done.code == 0
    assert f"  tpc {command} " in done.out
    assert max(map(len, done.out.splitlines())) <= 120


def test_wrong_commands(tpc):
    for words in ((), ("frobnicate",), ("opt",), ("opt", "a", "--no-such-option")):
        done = tpc(*words)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1


def test_pipes():
    opt = process("opt", "-", "--passes", "cse", input=TEXT)
    assert opt.returncode == 0
    assert process("verify", "-", input=opt.stdout).stdout == "<stdin>: valid: @f (2 inputs, 3 ops, 1 output)\n"
    assert process("opt", "-", "-o", "-", input=TEXT).stdout.startswith("tpc 1")


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    lines = "\n".join([f"  %{n + 1} = exp %{n} : f32[3]" for n in range(20_000)])
    long = f"tpc 1\nprogram @f (%x: f32[3]) -> (f32[3]) {{\n  %0 = exp %x : f32[3]\n{lines}\n  return %20000\n}}\n"
    (tmp_path / "long.tir").write_text(long)
    with subprocess.Popen(
        [*TPC, "opt", str(tmp_path / "long.tir"), "--passes", "none"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_interrupt_is_130(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen([*TPC, "trace", f"{tmp_path}/slow.py:f"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "here\n"
        time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert running.stderr.read() == "interrupted\n"


def test_colour_follows_terminal_and_no_color(monkeypatch):
    monkeypatch.setattr(streams.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert streams.paint_for("auto") is ansi
    assert streams.paint_for("auto", to_file=True) is plain
    assert streams.paint_for("never") is plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert streams.paint_for("auto") is plain
    assert streams.paint_for("always") is ansi


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_said_in_one_line(tmp_path):
    (tmp_path / "p.tir").write_text(TEXT)
    with open("/dev/full", "w") as full:
        done = subprocess.run([*TPC, "opt", tmp_path / "p.tir"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "tpc opt: error: cannot write to stdout: No space left on device\n"
