"""Plans as text."""

from __future__ import annotations

from tpc.ir.parser import parse_program
from tpc.ir.plan import plan_memory
from tpc.ir.plan_printer import print_plan


def test_plan_text():
    program = parse_program("""
    program @f (%x: f32[2,3]) -> (f32[3,2]) {
      %0 = exp %x : f32[2,3]
      %1 = permute %0 {dims=[1,0]} : f32[3,2]
      %2 = matmul %x, %1 : f32[2,2]
      %3 = matmul %1, %2 : f32[3,2]
      return %3
    }""")
    lines = print_plan(plan_memory(program)).splitlines()
    assert lines[0].startswith("plan @f: arena ")
    assert lines[0].endswith(" bytes")
    assert lines[1].split() == ["%x:", "f32[2,3]", "input", "0", "24", "bytes"]
    assert "arena" in lines[2]
    assert lines[3].endswith("// view of %0; last use of %0") and "bytes" not in lines[3]
    assert lines[4].endswith("16 bytes  // last use of %x")
    assert "output 0" in lines[5] and lines[5].endswith("24 bytes  // last use of %1, %2")
    assert lines[6] == "  return %3"
