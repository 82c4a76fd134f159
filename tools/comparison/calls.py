"""Public calls to compare, edge values included: ties, NaN and infinities, empty and 0-d tensors, signs, borders, wrong arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from both import Call, Dtype

NAN, INF = np.nan, np.inf
_rng = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return np.asarray(_rng.standard_normal(shape))


GRID, CUBE, VECTOR, SQUARE = normal(3, 4), normal(2, 3, 4), normal(5), normal(3, 3)
ROWS = np.array([[1, NAN, 3, 2], [2, 2, NAN, 1], [0, 0, -0.0, 0], [INF, -INF, INF, 1]])
SCALAR, EMPTY, NONE = np.array(2.5), np.zeros((3, 0)), np.zeros(0)
INTS, MASK = np.array([[3, -7, 2, 0], [1, 5, -2, 2]]), np.array([[True, False, True, False]] * 3)
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-4, 90, -90, NAN, INF, -INF])
IDS = np.array([2, 0, 2])
TABLE = np.array([[0, 2, 0], [1, 1, 1], [0, 1, 2]])

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac isfinite isinf isnan isneginf
    isposinf isreal log log10 log1p log2 logical_not nan_to_num neg positive rad2deg reciprocal relu round rsqrt sgn sigmoid sign signbit
    sin sinc sinh sqrt square tan tanh trunc angle""".split()
BINARY = """add sub mul div true_divide floor_divide remainder fmod pow atan2 maximum minimum fmax fmin copysign hypot eq ne lt le gt ge
    logical_and logical_or logical_xor logaddexp logaddexp2 xlogy heaviside float_power""".split()
BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()
REDUCTIONS = "sum prod mean amax amin any all var std nansum nanmean count_nonzero median nanmedian max min argmax argmin".split()
ALONG = "cumsum cumprod cummax cummin logcumsumexp softmax log_softmax sort argsort mode diff logsumexp".split()
SHAPES = (GRID, CUBE, ROWS, SCALAR, EMPTY, INTS, MASK)


def elementwise() -> Iterator[Call]:
    for name in UNARY:
        yield from (Call(name, (x,)) for x in (EDGES, EDGES.astype(np.float32), INTS, MASK, SCALAR, EMPTY))
    a, b = (np.array(x) for x in zip(*itertools.product(EDGES, EDGES), strict=True))
    for name in BINARY:
        yield Call(name, (a, b))
        yield from (Call(name, pair) for pair in ((INTS, np.array([2, -2, 3, 1])), (GRID, VECTOR[:4]), (GRID, VECTOR), (EMPTY, SCALAR)))
        yield from (Call(name, (GRID, INTS[:1])), Call(name, (INTS, SCALAR.astype(np.float32))))
    for name in BITWISE:
        yield from (Call(name, (np.abs(INTS), np.array([2, 1, 3, 0]))), Call(name, (MASK, MASK[:1])), Call(name, (GRID, GRID)))
    for mode in ("floor", "trunc"):
        yield from (Call("div", pair, {"rounding_mode": mode}) for pair in ((INTS, np.array([2, -2, 3, -3])), (a, b)))
    yield from (Call("floor_divide", (INTS, np.array(0))), Call("remainder", (INTS, np.array(0))), Call("pow", (INTS, np.array(-1))))
    yield from (Call("clamp", (EDGES, -1, 1)), Call("clamp", (EDGES,)), Call("clamp", (EDGES, 1, -1)), Call("clamp", (INTS, 0.5)))
    yield from (Call("lerp", (GRID, GRID + 1, 0.3)), Call("lerp", (GRID, GRID + 1, GRID)), Call("logit", (np.abs(EDGES[:6]), 0.1)))
    yield from (Call("addcmul", (GRID, GRID, GRID), {"value": 2}), Call("addcdiv", (GRID, GRID, GRID)), Call("where", (MASK, GRID, 0.0)))


def reductions() -> Iterator[Call]:
    for name, x in itertools.product(REDUCTIONS, SHAPES):
        yield Call(name, (x,))
        yield from (Call(name, (x, dim)) for dim in (0, -1, 5))
        if name != "count_nonzero":
            yield Call(name, (x,), {"dim": 0, "keepdim": True})
    for name, x, dim in itertools.product(ALONG, SHAPES, (0, -1, 5)):
        yield Call(name, (x,), {"dim": dim})
    for q, how in itertools.product((0.0, 0.3, 1.0), ("linear", "lower", "higher", "midpoint", "nearest")):
        yield Call("quantile", (GRID, q, 1), {"interpolation": how})
        yield Call("nanquantile", (ROWS, q, 0), {"interpolation": how})
    yield from (Call("quantile", (GRID, np.array([0.1, 0.5]), 1, True)), Call("quantile", (GRID, 2.0)), Call("quantile", (INTS, 0.5)))
    for k in (0, 1, 2, 9):
        yield from (Call("topk", (GRID, k)), Call("kthvalue", (GRID, k)), Call("topk", (INTS, k, 0, False)))
    yield from (Call("histc", (GRID.astype(np.float32), 4)), Call("histc", (GRID, 0)), Call("histc", (INTS, 3)))
    yield from (Call("cov", (GRID,)), Call("corrcoef", (GRID,)), Call("cov", (VECTOR,), {"correction": 0}), Call("trapezoid", (GRID,)))
    yield from (Call("var_mean", (GRID, 1)), Call("std_mean", (GRID,)), Call("aminmax", (GRID,)), Call("norm", (ROWS, 2, 1)))
    yield from (Call("norm", (GRID, p)) for p in (0, 1, 2, 3, INF, -INF, "fro", "nuc", "bad"))
    yield from (Call("norm", (GRID * 0, p, 1)) for p in (0.5, 1, 2, 3, INF))


def arranging() -> Iterator[Call]:
    for name in "flatten ravel t fliplr flipud tril triu diag diagonal diag_embed diagflat atleast_2d unbind squeeze argwhere".split():
        yield from (Call(name, (x,)) for x in (*SHAPES, NONE))
    for dim in (0, 1, -1, 7):
        yield from (
            Call("unsqueeze", (GRID, dim)),
            Call("chunk", (GRID, 3, dim)),
            Call("split", (GRID, 2, dim)),
            Call("roll", (GRID, 1, dim)),
        )
        yield from (Call("index_select", (GRID, dim, IDS)), Call("select", (GRID, dim, 1)), Call("narrow", (GRID, dim, 1, 2)))
        yield from (Call("gather", (GRID, dim, TABLE)), Call("gather", (GRID, dim, TABLE + 9)), Call("tensor_split", (GRID, 3, dim)))
        yield from (Call("scatter", (GRID, dim, TABLE, 2.0)), Call("scatter_add", (GRID, dim, TABLE, SQUARE)), Call("unique", (INTS,)))
        yield from (Call("index_add", (SQUARE, dim, IDS, SQUARE)), Call("index_copy", (SQUARE, dim, IDS[:2], SQUARE[:, :2])))
        yield from (Call("index_fill", (GRID, dim, IDS, 1.0)), Call("movedim", (CUBE, dim, 0)), Call("Tensor.unfold", (GRID, dim, 2, 1)))
        yield from (Call("cat", ([GRID, GRID], dim)), Call("stack", ([GRID, GRID], dim)), Call("flip", (GRID, (dim,))))
    for reduce, own in itertools.product(("sum", "prod", "mean", "amax", "amin", "bad"), (True, False)):
        yield Call("scatter_reduce", (GRID, 1, TABLE, SQUARE, reduce), {"include_self": own})
        yield Call("index_reduce", (SQUARE, 0, IDS, SQUARE, reduce), {"include_self": own})
    for mode, amounts in itertools.product(
        ("constant", "reflect", "replicate", "circular"), ((1, 1), (2, 0), (-1, 1), (1, 1, 1, 1), (9, 9))
    ):
        yield from (Call("nn.functional.pad", (CUBE, amounts, mode)), Call("nn.functional.pad", (CUBE[None], amounts, mode)))
    for size in ((12,), (4, 3), (-1, 2), (5, 5), (-1, -1)):
        yield from (Call("reshape", (GRID, size)), Call("Tensor.view", (GRID, *size)))
    yield from (Call("Tensor.expand", (x, s)) for x, s in ((GRID, (2, 3, 4)), (GRID, (-1, 4)), (GRID, (3, 5)), (SCALAR, (2, 2))))
    yield from (Call("masked_select", (GRID, MASK)), Call("masked_fill", (GRID, MASK, 3)), Call("masked_scatter", (GRID, MASK, VECTOR)))
    yield from (
        Call("take", (GRID, TABLE)),
        Call("take", (GRID, TABLE + 50)),
        Call("bincount", (IDS,), {"weights": VECTOR[:3], "minlength": 5}),
    )
    yield from (Call("searchsorted", (np.sort(VECTOR), GRID), {"right": r}) for r in (True, False))
    yield from (
        Call("bucketize", (EDGES, np.array([-1.0, 0, 1]))),
        Call("isin", (INTS, IDS)),
        Call("rot90", (GRID, 3)),
        Call("rot90", (VECTOR,)),
    )
    yield from (Call("meshgrid", (VECTOR, VECTOR)), Call("cartesian_prod", (IDS, IDS)), Call("combinations", (VECTOR, 3)))
    yield from (Call("block_diag", (GRID, SQUARE)), Call("kron", (GRID, SQUARE)), Call("tensordot", (GRID, GRID.T.copy(), 1)))
    yield from (
        Call("as_strided", (GRID, (2, 2), (1, 3), 2)),
        Call("as_strided", (GRID, (9, 9), (1, 3))),
        Call("unravel_index", (TABLE, (2, 2))),
    )
    yield from (Call("gradient", (GRID,), {"edge_order": k}) for k in (1, 2, 3))


def others() -> Iterator[Call]:
    for p in (0, 1, 2, 3, INF, -1):
        yield from (Call("cdist", (GRID, GRID[:2] + 1, p)), Call("nn.functional.pdist", (GRID, p)), Call("dist", (GRID, GRID + 1, p)))
        yield Call("renorm", (GRID, p, 0, 1.0))
    pairs = (
        (GRID, GRID.T.copy()),
        (GRID, VECTOR),
        (VECTOR, VECTOR),
        (CUBE, GRID.T.copy()),
        (SCALAR, GRID),
        (GRID, GRID),
        (EMPTY, EMPTY.T.copy()),
    )
    for name, pair in itertools.product("matmul mm mv dot inner outer vdot ger bmm".split(), pairs):
        yield Call(name, pair)
    dtypes = "bool uint8 int8 int32 int64 float16 float32 float64 complex64".split()
    for a, b in itertools.product(dtypes, dtypes):
        yield from (Call("promote_types", (Dtype(a), Dtype(b))), Call("can_cast", (Dtype(a), Dtype(b))))
    for d in dtypes:
        yield from (Call("Tensor.to", (EDGES[:12], Dtype(d))), Call("zeros", (2, 0), {"dtype": Dtype(d)}), Call("finfo", (Dtype(d),)))
        yield from (Call("arange", (1, 7, 2), {"dtype": Dtype(d)}), Call("full", ((2,), 1), {"dtype": Dtype(d)}))
    yield from (Call("arange", a) for a in ((5,), (0,), (-1,), (1, 2, 0.3), (5, 1, -2), (5, 1), (1, 5, 0)))
    yield from (Call("linspace", a) for a in ((0, 1, 5), (0, 1, 1), (0, 1, 0), (0, 1, -1)))
    yield from (Call("broadcast_shapes", a) for a in (((2, 1), (3,)), ((2,), (3,)), ()))
    yield from (Call("eye", a) for a in ((3,), (2, 3), (0,), (-1,)))


def calls() -> Iterator[Call]:
    """All of them."""
    yield from elementwise()
    yield from reductions()
    yield from arranging()
    yield from others()
