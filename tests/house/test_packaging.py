"""What is installed: the wheel holds the packages and nothing else, and importing it costs little."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    # Built from a copy: what earlier builds left behind would be packed too.
    for name in ("tpc", "ir", "passes", "runtime"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_module_and_no_test(wheel):
    packed = {n for n in wheel.namelist() if ".dist-info/" not in n}
    rooms = {f"tpc/{room}/{p.relative_to(ROOT / room)}" for room in ("ir", "passes", "runtime") for p in (ROOT / room).rglob("*.py")}
    tops = {str(p.relative_to(ROOT)) for p in (ROOT / "tpc").rglob("*.py")}
    assert packed == rooms | tops | {"tpc/py.typed"}


def test_the_wheel_says_licence_and_entry_point(wheel):
    names = {Path(n).name: n for n in wheel.namelist() if ".dist-info/" in n}
    metadata = wheel.read(names["METADATA"]).decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert "tpc = tpc.cli:main" in wheel.read(names["entry_points.txt"]).decode()
    assert "LICENSE" in names


def test_importing_tpc_pays_for_numpy_only():
    heavy = "('lark', 'networkx', 'graphviz', 'graphviz_pure', 'rich', 'scipy', 'sklearn', 'hypothesis', 'llvmlite', 'torch')"
    code = f"import sys, tpc; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip() == "[]"


def test_the_version_is_the_same_everywhere():
    import tpc

    assert f'version = "{tpc.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("path", sorted(p for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]), ids=lambda p: p.name)
def test_pages_name_no_machine(path):
    text = path.read_text()
    assert not any(root in text for root in ("/home/", "/root/", "/tmp/", "/Users/"))
