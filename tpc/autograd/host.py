"""Host code has no derivative of its own: whoever writes it says what the gradient is."""

from __future__ import annotations

from typing import Any, NoReturn

from tpc.autograd.rules import derivative
from tpc.ir.ops import host as ops
from tpc.recording import resolve_loc
from tpc.state import STATE


def _refuse(g: Any, function: str) -> NoReturn:
    where = resolve_loc(STATE.loc)
    raise RuntimeError(
        f"derivative for host_call is not known: the host function {function}{f' called at {where}' if where else ''} takes a tensor that "
        "requires grad. Give host_call a `backward=`, call it in forward of an autograd.Function, or pass x.detach()"
    )


derivative(ops.host_call, inputs=_refuse)
