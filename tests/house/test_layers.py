"""Who may import whom: passes and runtime see ir, tpc sees all, nobody sees tpc, and nobody says `import ir`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {"ir": ROOT / "ir", "passes": ROOT / "passes", "runtime": ROOT / "runtime", "tpc": ROOT / "tpc"}
MAY_IMPORT = {"ir": {"ir"}, "passes": {"passes", "ir"}, "runtime": {"runtime", "ir"}, "tpc": {"tpc", "ir", "passes", "runtime"}}
BANNED = {"core", "utils", "helpers", "common", "misc", "base"}
MAX_LINES = 400


def files(room: str) -> list[Path]:
    found = sorted(ROOMS[room].rglob("*.py"))
    linked = [ROOMS["tpc"] / name for name in ("ir", "passes", "runtime")]
    return [f for f in found if room != "tpc" or not any(f.is_relative_to(link) for link in linked)]


ALL = [(room, f) for room in ROOMS for f in files(room)]
IDS = [str(f.relative_to(ROOT)) for _, f in ALL]


def imported(path: Path) -> list[tuple[str, int, int]]:
    """(module, line, dots) of every import in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node.lineno, node.level))
    return found


def room_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "tpc":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else "tpc"


@pytest.mark.parametrize(("room", "path"), ALL, ids=IDS)
def test_a_room_imports_only_what_it_may(room, path):
    for module, line, dots in imported(path):
        assert dots == 0, f"{path}:{line}: import by the full name, not relatively"
        assert module.split(".")[0] not in ("ir", "passes", "runtime"), f"{path}:{line}: say tpc.{module}"
        target = room_of(module)
        assert target is None or target in MAY_IMPORT[room], f"{path}:{line}: {room} must not import {module}"


@pytest.mark.parametrize(("room", "path"), ALL, ids=IDS)
def test_files_are_small_named_and_described(room, path):
    lines = path.read_text().splitlines()
    assert len(lines) <= MAX_LINES, f"{path} has {len(lines)} lines: is there a seam to split at?"
    assert path.stem not in BANNED, f"{path}: the name says nothing"
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} does not say what it is"


def test_a_name_is_imported_from_the_module_that_defines_it():
    """Within ir, passes and runtime: `from tpc.ir.program import Op`, never through a module that only passes it on."""
    wrong = []
    for room in ("ir", "passes", "runtime"):
        for path in files(room):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module and room_of(node.module) in ("ir", "passes", "runtime"):
                    wrong += [f"{path}:{node.lineno}: {a.name}" for a in node.names if not defines(node.module, a.name)]
    assert not wrong, "\n".join(wrong)


def defines(module: str, name: str) -> bool:
    path = ROOT.joinpath(*module.split(".")[1:])
    if path.is_dir():
        return (path / f"{name}.py").exists() or (path / name).is_dir()
    bound = set()
    for node in ast.walk(ast.parse(path.with_suffix(".py").read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return name in bound


def test_no_module_needs_itself_to_be_imported():
    """Imports at the top of ir, passes and runtime have no cycles (type checking aside)."""
    graph: dict[str, set[str]] = {}
    for room in ("ir", "passes", "runtime"):
        for path in files(room):
            name = "tpc." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
            graph[name.removesuffix(".__init__")] = {m for m in top_imports(path) if m.startswith("tpc.")}
    for start in graph:
        assert not leads_to(graph, start), f"{start} imports itself through others"


def top_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            folder = ROOT.joinpath(*node.module.split(".")[1:])
            found.update(f"{node.module}.{a.name}" if folder.is_dir() else node.module for a in node.names)
        elif isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
    return found


def leads_to(graph: dict[str, set[str]], start: str) -> bool:
    seen, stack = set(), list(graph[start])
    while stack:
        module = stack.pop()
        if module == start:
            return True
        if module not in seen:
            seen.add(module)
            stack.extend(graph.get(module, ()))
    return False
