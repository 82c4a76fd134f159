"""Every operator has its entry in every layer; the message names the file to edit."""

from __future__ import annotations

import sys

import pytest

import tpc.ir.ops
from tpc.autograd import derivatives as _derivatives  # fills the table
from tpc.autograd.rules import NOT_DIFFERENTIABLE, RULES
from tpc.batching.rules import has_rule
from tpc.ir.opdef import OpDef, all_ops
from tpc.ir.types import is_differentiable
from tpc.runtime.kernels.registry import has_kernel

FAMILY = {
    defn: name.rsplit(".", 1)[1]
    for name, module in list(sys.modules.items())
    if name.startswith("tpc.ir.ops.")
    for defn in vars(module).values()
    if isinstance(defn, OpDef)
}
OPS = [d for d in all_ops() if d.name != "fusion"]
"""A fusion is made of other ops, which have the entries."""
TABLED = [d for d in OPS if not d.bodies]
"""What an op with bodies does under a transform follows from the functions that its bodies are recorded from, not from a table."""


@pytest.mark.parametrize("defn", OPS, ids=lambda d: d.name)
def test_every_operator_has_a_kernel(defn):
    assert has_kernel(defn.name), f"{defn.name}: no kernel; add it to runtime/kernels/{FAMILY[defn]}.py"


@pytest.mark.parametrize("defn", [d for d in TABLED if d.operands], ids=lambda d: d.name)
def test_every_operator_says_how_it_is_differentiated(defn):
    known = defn in RULES or defn in NOT_DIFFERENTIABLE or not _has_gradient(defn)
    assert known, f"{defn.name}: no gradient; add it to tpc/autograd/{FAMILY[defn]}.py or declare not_differentiable({defn.name})"


def _has_gradient(defn):
    """Whether some result of a sample is floating, so that a gradient could arrive."""
    from tests.ops.sample import SAMPLES

    return any(is_differentiable(t.dtype) for sample in SAMPLES[defn.name] for t in sample.op().types)


@pytest.mark.parametrize("defn", TABLED, ids=lambda d: d.name)
def test_every_operator_can_be_batched(defn):
    assert has_rule(defn), f"{defn.name}: no batching rule; add it to tpc/batching/rules.py"


def test_every_operator_is_at_home_in_one_family():
    assert {d.name for d in all_ops()} == {d.name for d in FAMILY}
    assert tpc.ir.ops.__all__ == sorted(tpc.ir.ops.__all__)
    assert _derivatives.__doc__
