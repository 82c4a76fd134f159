"""Native functions against NumPy in a wider precision, and at the borders against the rules of IEEE 754."""

import math

import numpy as np
import pytest

from tpc.ir.builder import Builder
from tpc.ir.types import tensor_type
from tpc.runtime.executable import Executable
from tpc.runtime.native.jit import is_available
from tpc.runtime.native.math.functions import FUNCTIONS, has_function

pytestmark = pytest.mark.skipif(not is_available(), reason="needs llvmlite")

TINY = {"f32": 1e-45, "f64": 5e-324}
UNARY = sorted(set(FUNCTIONS) - {"pow"})
RANGE = {
    "exp": (-110, 89), "expm1": (-50, 89), "sigmoid": (-80, 110), "tanh": (-25, 25), "sinh": (-89, 89), "cosh": (-89, 89), "erf": (-7, 7),
    "log": (0, 1e6), "log1p": (-1, 1e6),
}  # fmt: skip


def run(name, *arrays):
    dtype = {np.dtype("f4"): "f32", np.dtype("f8"): "f64"}[arrays[0].dtype]
    builder = Builder("test")
    made = builder.emit(name, *[builder.input(tensor_type(dtype, x.shape)) for x in arrays])
    executable = Executable(builder.finish([made]), native=True, threads=1)
    assert "is not None: failed" in executable.source, "NumPy was asked"
    return executable.run(arrays)[0]


def erf(x):
    return np.array([math.erf(v) for v in x.astype("f8").ravel()], np.longdouble).reshape(x.shape)


EXACT = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": erf, "pow": np.power}


def exact(name, *arrays):
    with np.errstate(all="ignore"):
        return EXACT.get(name, getattr(np, name, None))(*[x.astype(np.longdouble) for x in arrays])


def ulps(got, want):
    """Distance from the exact values, in units in the last place of what they round to."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        distance = np.abs(got.astype(np.longdouble) - want) / np.spacing(np.abs(rounded))
    return np.where(same, 0, distance).astype("f8")


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_errors_stay_within_a_few_units_in_the_last_place(name, dtype):
    random = np.random.default_rng(0)
    low, high = RANGE[name]
    wide = 8 if dtype == "f64" and name in ("exp", "sinh", "cosh") else 1
    x = np.concatenate([random.uniform(low * wide, high * wide, 40_003), random.normal(0, 1, 20_000), random.normal(0, 1e-3, 20_000)])
    x = np.concatenate([x, 10.0 ** random.uniform(-37, 0, 10_000)])
    if name == "log":
        x = np.abs(x)
    x = (np.maximum(x, -0.999) if name == "log1p" else x).astype({"f32": "f4", "f64": "f8"}[dtype])
    far = ulps(run(name, x), exact(name, x))
    worst = int(np.nanargmax(far))
    # The double precision erf is the NumPy kernel's formula: 9e-16.
    assert far[worst] <= (9 if name == "erf" else 3), f"{name}({x[worst]!r}) is off by {far[worst]:.1f}"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", UNARY)
def test_borders(name, dtype):
    info = np.finfo(dtype)
    x = [0.0, np.inf, np.nan, 1.0, info.tiny, info.smallest_subnormal, info.max, 1e-30, 20.0, 2.0, info.eps, 1000.0, 50.0]
    x = np.array([*x, *(-v for v in x)], dtype)
    with np.errstate(all="ignore"):
        want = EXACT[name](x.astype(np.longdouble)).astype(dtype) if name in EXACT else getattr(np, name)(x)
    got = run(name, x)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    zero = want == 0
    assert np.array_equal(got[zero], want[zero]) and np.array_equal(np.signbit(got[zero]), np.signbit(want[zero])) | (name == "sigmoid")
    np.testing.assert_allclose(got, want, rtol=4 * info.eps, atol=4 * info.smallest_subnormal)


@pytest.mark.parametrize("name", UNARY)
def test_a_value_does_not_depend_on_where_it_stands(name):
    x = np.full(67, 0.7, "f4")
    assert len(np.unique(run(name, x))) == 1


def test_powers():
    random = np.random.default_rng(1)
    x = np.concatenate([random.uniform(0, 10, 20_000), random.uniform(-5, 5, 5_000)]).astype("f4")
    y = np.concatenate([random.uniform(-20, 20, 20_000), random.integers(-9, 9, 5_000)]).astype("f4")
    assert ulps(run("pow", x, y), exact("pow", x, y)).max() <= 1


def test_powers_at_the_borders():
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e-40, 1e30], "f4")
    x, y = (v.ravel().copy() for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = run("pow", x, y)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))


def test_double_powers_are_left_to_numpy():
    assert not has_function("pow", "f64") and not has_function("sin", "f32")
