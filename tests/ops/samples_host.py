"""Samples of host calls."""

from __future__ import annotations

import numpy as np

import tpc
from tests.ops.sample import f32, f64, sample

tpc.register_host_function("tests.total", lambda a, b: np.asarray(a.sum() + b, np.float64))
tpc.register_host_function("tests.parts", lambda a: (a * 2, a.argsort()))


def _call(name, *operands, dtypes, shapes, vectorized=False, mapped=0, ordered=False):
    sample("host_call", *operands, function=name, dtypes=dtypes, shapes=shapes, vectorized=vectorized, mapped=mapped, ordered=ordered)


_call("tests.total", f64(3, 4), f64(), dtypes=("f64",), shapes=((),))
_call("tests.total", f64(2, 3), f64(2), dtypes=("f64",), shapes=((2,),), mapped=1)
_call("tests.parts", f32(5), dtypes=("f32", "i64"), shapes=((5,), (5,)))
_call("tests.parts", np.array(7), f32(5), dtypes=("f32", "i64"), shapes=((5,), (5,)), ordered=True)
