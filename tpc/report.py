"""What the passes decided for a traced function, as a table for people and JSON for tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tpc import config
from tpc.ir.names import plain
from tpc.ir.program import Loc, Program
from tpc.passes.report import Fused, Memory, Reader, Saved, fusions, memory, saved_tensors
from tpc.pipeline import EARLY, optimized

if TYPE_CHECKING:
    from tpc.ir.names import Paint
    from tpc.trace import Traced

DECISIONS = {"kept": "kept", "recomputed": "computed again", "input": "read from an input", "output": "read from an output"}
"""What each decision is called, in the order of the totals."""


@dataclass(frozen=True, slots=True)
class Report:
    """How the values that backward needs reach it, what was fused, and the planned memory.

    `saved` holds one entry per value, in the order backward asks for them; `memory` the planned bytes of each program that runs, before and
    after the passes; `fused` the fused groups. Prints as a table.
    """

    name: str
    memory_budget: float
    saved: tuple[Saved, ...]
    memory: dict[str, Memory]
    fused: tuple[Fused, ...]

    @property
    def held_bytes(self) -> int:
        """Bytes that live from forward to backward and would not otherwise."""
        return sum(s.held_bytes for s in self.saved)

    def totals(self) -> dict[str, tuple[int, int]]:
        """For each decision that was taken: how many values, and their bytes."""
        found: dict[str, tuple[int, int]] = {}
        for decision in DECISIONS:
            chosen = [s for s in self.saved if s.decision == decision]
            if chosen:
                found[decision] = (len(chosen), sum(s.nbytes for s in chosen))
        return found

    def to_json(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers."""
        return {
            "function": self.name,
            "memory_budget": self.memory_budget,
            "saved": [_saved_json(s) for s in self.saved],
            "totals": {decision: {"count": count, "bytes": size} for decision, (count, size) in self.totals().items()},
            "held_bytes": self.held_bytes,
            "memory": {name: {"before": m.before, "after": m.after} for name, m in self.memory.items()},
            "fused": [{"ops": list(f.ops), "scopes": list(f.scopes), "inner_bytes": f.inner_bytes} for f in self.fused],
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, paint: Paint = plain) -> str:
        """The table; `paint` colours it for a terminal."""
        direct = [s for s in self.saved if s.readers and not _is_number(s)]
        again = [s for s in self.saved if not s.readers and not _is_number(s)]
        lines = [paint("op", f"@{self.name}") + f": what backward needs of forward, memory budget {self.memory_budget:g}", ""]
        if direct:
            lines += _table(("value", "bytes", "decision", "made by", "read by"), [r for s in direct for r in _rows(s)], paint)
        else:
            lines.append("  nothing: there is no backward, or it needs no value of forward")
        if again:
            lines += ["", "  and to compute some of these again:", ""]
            lines += _table(("value", "bytes", "decision", "made by"), [r[:4] for s in again for r in _rows(s)], paint)
        lines += ["", *self._reasons(), *self._totals(), *self._memory(), *self._fused()]
        return "\n".join(lines)

    def _reasons(self) -> list[str]:
        """Each reason once."""
        found = dict.fromkeys([(s.decision, _reason(s)) for s in self.saved if s.decision in ("kept", "recomputed") and not _is_number(s)])
        label = "why:    "
        lines = []
        for decision, reason in found:
            lines.append(f"{label}{decision}: {reason}")
            label = " " * len(label)
        return lines

    def _totals(self) -> list[str]:
        parts = [f"{count} {DECISIONS[decision]} ({size_text(size)})" for decision, (count, size) in self.totals().items()]
        return [f"saved:  {', '.join(parts)}"] if parts else []

    def _memory(self) -> list[str]:
        label = "memory: "
        lines = []
        for name, planned in self.memory.items():
            change = 100 * (planned.after - planned.before) / planned.before if planned.before else 0.0
            after = f"{size_text(planned.after)} after ({change:+.0f} %)" if abs(change) >= 0.5 else "the same after"
            lines.append(f"{label}@{name}: planned peak {size_text(planned.before)} before the passes, {after}")
            label = " " * len(label)
        return lines

    def _fused(self) -> list[str]:
        if not self.fused:
            return ["fused:  nothing"]
        ops, inner = sum(len(f.ops) for f in self.fused), size_text(sum(f.inner_bytes for f in self.fused))
        return [f"fused:  {_counted(len(self.fused), 'group')} of {_counted(ops, 'op')}; {inner} of values are never whole arrays"]


def report_of(traced: Traced) -> Report:
    """The report of a traced function."""
    programs = traced.optimized.programs
    fused = tuple(group for program in programs.values() for group in fusions(program))
    donated = traced.body.donated()
    if traced.is_split:
        saved = tuple(traced.body.halves.saved)
    else:
        saved = saved_tensors(_early(traced.recorded), traced.memory_budget)
    before = traced.module.programs
    return Report(
        name=traced.name,
        memory_budget=traced.memory_budget,
        saved=saved,
        memory={name: memory(before[name], programs[name], donated if i == 0 else ()) for i, name in enumerate(programs)},
        fused=fused,
    )


def _early(program: Program) -> Program:
    """The program as `partition` meets it."""
    with config.using(dump=None):
        return optimized(program, only=EARLY)


# --- rows ---------------------------------------------------------------------------------------


def _is_number(saved: Saved) -> bool:
    """A single number that is written into the programs: no memory to speak of."""
    return saved.decision == "recomputed" and not saved.type.shape and saved.made_by == "constant"


def _rows(saved: Saved) -> list[tuple[str, ...]]:
    """One line, and a second one where the last reader is another one than the first."""
    made = f"input {saved.made_by}" if saved.decision == "input" else saved.made_by
    by = " ".join([part for part in (made, _inside(saved.scopes), place_text(saved.loc)) if part])
    texts = list(dict.fromkeys([_reader(r) for r in saved.readers]))
    rows: list[tuple[str, ...]] = [(str(saved.type), f"{saved.nbytes:,}", saved.decision, by, texts[0] if texts else "")]
    return [*rows, ("", "", "", "", f"to {texts[-1]}")] if len(texts) > 1 else rows


def _reader(reader: Reader) -> str:
    return " ".join([part for part in (_inside(reader.scopes) or reader.op, place_text(reader.loc)) if part])


def _inside(scopes: Sequence[str]) -> str:
    """The innermost name of the last scope: who in the end reads, or makes, the value."""
    return scopes[-1].rpartition("/")[2] if scopes else ""


def place_text(loc: Loc | None) -> str:
    """``swish.py:12``"""
    return "" if loc is None else f"{loc.file.replace(chr(92), '/').rpartition('/')[2]}:{loc.line}"


def _reason(saved: Saved) -> str:
    """The reason without the size, which is in the table."""
    return saved.reason.replace(f" {saved.nbytes} bytes", " it")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], paint: Paint) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        cells[1] = row[1].rjust(widths[1])
        if row is head:
            cells = [paint("keyword", cell) for cell in cells]
        else:
            cells[0], cells[2] = paint("type", cells[0]), paint(_COLOURS.get(row[2], "attr"), cells[2])
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


_COLOURS = {"kept": "value", "recomputed": "scope", "input": "attr", "output": "attr"}
"""The `Paint` kind of each decision."""


def _saved_json(saved: Saved) -> dict[str, Any]:
    return {
        "type": str(saved.type),
        "bytes": saved.nbytes,
        "held_bytes": saved.held_bytes,
        "decision": saved.decision,
        "reason": saved.reason,
        "made_by": {"op": saved.made_by, "scopes": list(saved.scopes), "loc": _loc_json(saved.loc)},
        "readers": [{"op": r.op, "scopes": list(r.scopes), "loc": _loc_json(r.loc)} for r in saved.readers],
    }


def _loc_json(loc: Loc | None) -> list[str | int] | None:
    return None if loc is None else [loc.file, loc.line, loc.function]


def size_text(size: int) -> str:
    """``96 B``, ``12.5 KiB``, ``3 MiB``"""
    if size < 1024:
        return f"{size} B"
    number = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        number /= 1024
        if number < 1024 or unit == "TiB":
            break
    return f"{number:.3g} {unit}" if number < 999.5 else f"{number:.0f} {unit}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
