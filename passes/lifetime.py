"""Memory for every value of a program."""

from __future__ import annotations

from collections.abc import Collection

from tpc.ir.plan import Plan, plan_memory
from tpc.ir.program import Program


def lifetime(program: Program, donated: Collection[int] = ()) -> Plan:
    """Places the values of a program in memory; inputs in `donated` may be overwritten by their new content.

    Before: ``%0 = exp %x``, ``%1 = mul %0, %y``, ``%2 = sum %1``. After: %0 at arena 0, %1 over %0, %2 in output 0. A value
    is in use from the op that makes it to the last one that reads it or a view of it; see `ir.storage` for what may
    overwrite what, and `ir.packing` for where the rest goes.
    """
    return plan_memory(program, donated)
