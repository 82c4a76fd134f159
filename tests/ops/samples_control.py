"""Samples of control flow."""

from __future__ import annotations

import numpy as np

from tests.ops.sample import boolean, f32, f64, sample

DOUBLE = "program @double (%x: f32[3], %y: f32[3]) -> (f32[3]) { %0 = add %x, %x : f32[3] return %0 }"
SECOND = "program @second (%x: f32[3], %y: f32[3]) -> (f32[3]) { return %y }"
BOTH = "program @both (%x: f64[2]) -> (f64[2], f64[2]) { %0 = exp %x : f64[2] return %0, %x }"
SWAPPED = "program @swapped (%x: f64[2]) -> (f64[2], f64[2]) { %0 = exp %x : f64[2] return %x, %0 }"

sample("cond", boolean(), f32(3), f32(3), bodies=(DOUBLE, SECOND))
sample("cond", np.array(True), f32(3), f32(3), bodies=(DOUBLE, SECOND))
sample("cond", np.array(False), f32(3), f32(3), bodies=(DOUBLE, SECOND))
sample("cond", np.array(True), f64(2), bodies=(BOTH, SWAPPED))

BELOW = """program @below (%i: i64[], %x: f32[2], %n: i64[], %k: f32[2]) -> (bool[]) {
  %0 = lt %i, %n : bool[]
  return %0
}"""
GROW = """program @grow (%i: i64[], %x: f32[2], %n: i64[], %k: f32[2]) -> (i64[], f32[2]) {
  %0 = constant {value=1, dtype="i64"} : i64[]
  %1 = add %i, %0 : i64[]
  %2 = mul %x, %k : f32[2]
  return %1, %2
}"""
for count in (0, 1, 5):
    sample("while_loop", np.array(0), f32(2), np.array(count), f32(2), bodies=(BELOW, GROW), carried=2)

SWAP_BELOW = "program @below (%i: i64[], %a: f32[], %b: f32[]) -> (bool[]) { %0 = lt %a, %b : bool[] return %0 }"
SWAP = "program @swap (%i: i64[], %a: f32[], %b: f32[]) -> (i64[], f32[], f32[]) { return %i, %b, %a }"
sample("while_loop", np.array(0), np.array(1.0, np.float32), np.array(2.0, np.float32), bodies=(SWAP_BELOW, SWAP), carried=3)

ADD_ON = """program @step (%c: f32[2], %x: f32[2], %k: f32[2]) -> (f32[2], f32[2], f32[2]) {
  %0 = mul %c, %k : f32[2]
  %1 = add %0, %x : f32[2]
  return %1, %c, %x
}"""
KEEP = "program @keep (%c: f32[2]) -> (f32[2], f32[2]) { return %c, %c }"
for reverse in (False, True):
    for length in (0, 1, 4):
        sample("scan", f32(2), f32(length, 2), f32(2), bodies=(ADD_ON,), carried=1, scanned=1, length=length, reverse=reverse)
sample("scan", f32(2), bodies=(KEEP,), carried=1, scanned=0, length=3, reverse=False)
