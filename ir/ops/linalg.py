"""Linear algebra: products, solvers and decompositions of stacks of matrices, which are the last two axes.

The `info` of an op that may fail is 0 for each matrix it did not fail on; with `check` the kernel raises instead.
"""

from __future__ import annotations

from collections.abc import Callable

from tpc.ir.errors import TypeRuleError
from tpc.ir.opdef import Infer, OpDef, define
from tpc.ir.ops.rules import Attrs, Types, boolean, broadcast, integer, listed, require, same_dtype
from tpc.ir.types import TensorType, complex_dtype, real_dtype, tensor_type


def _matmul(types: Types, attrs: Attrs) -> TensorType:
    a, b = types
    dtype = same_dtype("matmul", types)
    if a.rank < 2 or b.rank < 2:
        raise TypeRuleError(f"both arguments to matmul need to be at least 2D {listed('matmul', types)}")
    if a.shape[-1] != b.shape[-2]:
        raise TypeRuleError(
            f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, a.shape))} and {'x'.join(map(str, b.shape))}) "
            f"{listed('matmul', types)}"
        )
    batch = broadcast("matmul", (tensor_type(dtype, a.shape[:-2]), tensor_type(dtype, b.shape[:-2])))
    return tensor_type(dtype, (*batch, a.shape[-2], b.shape[-1]))


def _matmul_flops(types: Types, attrs: Attrs) -> float:
    return 2.0 * _matmul(types, attrs).numel * types[0].shape[-1]


matmul = define(OpDef("matmul", ("a", "b"), _matmul, flops=_matmul_flops))


# --- what they share ----------------------------------------------------------------------------


def _matrices(op: str, types: Types) -> str:
    """The one dtype of operands that are matrices."""
    dtype = same_dtype(op, types)
    require(op, types, "fc", "floating and complex matrices")
    if dtype == "f16":
        raise TypeRuleError(f"{op}: Low precision dtypes not supported {listed(op, types)}")
    if any(t.rank < 2 for t in types):
        raise TypeRuleError(f"{op}: The input tensor must have at least 2 dimensions {listed(op, types)}")
    return dtype


def _square(op: str, types: Types) -> str:
    """The same, where the first matrices must be square."""
    dtype = _matrices(op, types)
    rows, columns = types[0].shape[-2:]
    if rows != columns:
        raise TypeRuleError(f"{op}: A must be batches of square matrices, but they are {rows} by {columns} matrices {listed(op, types)}")
    return dtype


def _cubic(factor: float) -> Callable[[Types, Attrs], float]:
    """Work of about `factor` n^3 for each matrix."""
    return lambda types, attrs: factor * types[0].numel * min(types[0].shape[-2:], default=1)


def _info(type: TensorType) -> TensorType:
    return tensor_type("i32", type.shape[:-2])


def _one(op: str, factor: float) -> OpDef:
    """A matrix from each square matrix."""

    def infer(types: Types, attrs: Attrs) -> TensorType:
        _square(op, types)
        return types[0]

    return define(OpDef(op, ("a",), infer, flops=_cubic(factor)))


# --- factors, solvers, determinants -------------------------------------------------------------


def _checked(op: str) -> Infer:
    """A matrix from each square matrix, and whether that failed."""

    def infer(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
        _square(op, types)
        boolean(attrs, "check")
        return types[0], _info(types[0])

    return infer


cholesky = define(OpDef("cholesky", ("a",), _checked("cholesky"), ("check",), checks=True, flops=_cubic(1 / 3)))
"""The lower triangular L of A = L L^H, from the lower triangle of A; NaN where A is not positive-definite."""
inv = define(OpDef("inv", ("a",), _checked("inv"), ("check",), checks=True, flops=_cubic(2.0)))
"""The inverse; NaN where there is none."""


def _solution(op: str, types: Types) -> TensorType:
    """The type of X in A X = B."""
    dtype = _square(op, types)
    a, b = types
    if a.shape[-1] != b.shape[-2]:
        sizes = f"{a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]}"
        raise TypeRuleError(f"{op}: Incompatible shapes of A and B for the equation AX = B ({sizes}) {listed(op, types)}")
    batch = broadcast(op, (tensor_type(dtype, b.shape[:-2]), tensor_type(dtype, a.shape[:-2])))
    return tensor_type(dtype, (*batch, *b.shape[-2:]))


def _solve(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    boolean(attrs, "check")
    return _solution("solve", types), _info(types[0])


def _solve_flops(types: Types, attrs: Attrs) -> float:
    return _cubic(2 / 3)(types, attrs) + 2.0 * _solution("solve", types).numel * types[0].shape[-1]


def _solve_triangular(types: Types, attrs: Attrs) -> TensorType:
    boolean(attrs, "upper")
    boolean(attrs, "unitriangular")
    return _solution("solve_triangular", types)


def _cholesky_solve(types: Types, attrs: Attrs) -> TensorType:
    boolean(attrs, "upper")
    boolean(attrs, "check")
    return _solution("cholesky_solve", types[::-1])


def _substitution_flops(types: Types, attrs: Attrs) -> float:
    return 1.0 * _solution("solve_triangular", types).numel * types[0].shape[-1]


solve = define(OpDef("solve", ("a", "b"), _solve, ("check",), checks=True, flops=_solve_flops))
"""X of A X = B; NaN where A is singular."""
solve_triangular = define(OpDef("solve_triangular", ("a", "b"), _solve_triangular, ("upper", "unitriangular"), flops=_substitution_flops))
"""X of A X = B, where only one triangle of A counts, with `unitriangular` as if its diagonal were 1."""

cholesky_solve = define(
    OpDef(
        "cholesky_solve",
        ("b", "factor"),
        _cholesky_solve,
        ("upper", "check"),
        checks=True,
        flops=lambda types, attrs: 2.0 * _cholesky_solve(types, attrs).numel * types[1].shape[-1],
    )
)
"""X of A X = B from the Cholesky factor of A; with `check` a zero on its diagonal is an error."""


def _det(types: Types, attrs: Attrs) -> TensorType:
    return tensor_type(_square("det", types), types[0].shape[:-2])


def _slogdet(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    dtype, batch = _square("slogdet", types), types[0].shape[:-2]
    return tensor_type(dtype, batch), tensor_type(real_dtype(dtype), batch)


def _directional(op: str, factor: float) -> OpDef:
    """The derivative of a matrix from each matrix, in a direction."""

    def infer(types: Types, attrs: Attrs) -> TensorType:
        dtype = _square(op, types)
        if types[0].shape[-2:] != types[1].shape[-2:]:
            raise TypeRuleError(f"{op}: both must be matrices of one size {listed(op, types)}")
        return tensor_type(dtype, broadcast(op, types))

    return define(OpDef(op, ("a", "h"), infer, flops=_cubic(factor)))


det = define(OpDef("det", ("a",), _det, flops=_cubic(2 / 3)))
cofactor = _one("cofactor", 4.0)
"""The derivative of the determinant, det(A) A^-T, which singular matrices have too."""
cofactor_derivative = _directional("cofactor_derivative", 20.0)
"""The derivative of the cofactors of A in the direction H."""
slogdet = define(OpDef("slogdet", ("a",), _slogdet, flops=_cubic(2 / 3)))
"""The sign of the determinant (of modulus 1 where complex, 0 where singular) and the logarithm of its modulus."""


# --- decompositions -----------------------------------------------------------------------------


def _qr(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    dtype, mode = _matrices("qr", types), attrs["mode"]
    *batch, m, n = types[0].shape
    rows = m if mode == "complete" else min(m, n)
    if mode not in ("reduced", "complete", "r"):
        raise TypeRuleError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    q = (*batch, 0, 0) if mode == "r" else (*batch, m, rows)
    return tensor_type(dtype, q), tensor_type(dtype, (*batch, rows, n))


def _eigh(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    boolean(attrs, "upper")
    return tensor_type(real_dtype(_square("eigh", types)), types[0].shape[:-1]), types[0]


def _eig(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    dtype = complex_dtype(_square("eig", types))
    return tensor_type(dtype, types[0].shape[:-1]), tensor_type(dtype, types[0].shape)


def _svd(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    dtype, full = _matrices("svd", types), boolean(attrs, "full")
    *batch, m, n = types[0].shape
    k = min(m, n)
    u, vh = (*batch, m, m if full else k), (*batch, n if full else k, n)
    return tensor_type(dtype, u), tensor_type(real_dtype(dtype), (*batch, k)), tensor_type(dtype, vh)


def _lu(types: Types, attrs: Attrs) -> tuple[TensorType, ...]:
    _matrices("lu", types)
    *batch, m, n = types[0].shape
    return types[0], tensor_type("i32", (*batch, min(m, n))), _info(types[0])


def _permutation(types: Types, attrs: Attrs) -> TensorType:
    (pivots,), rows = types, integer(attrs, "rows")
    if pivots.dtype != "i32" or pivots.rank < 1 or pivots.shape[-1] > rows:
        raise TypeRuleError(f"lu_permutation: pivots should be of type i32, at most one for each row {listed('lu_permutation', types)}")
    return tensor_type("i64", (*pivots.shape[:-1], rows))


def _pinv(types: Types, attrs: Attrs) -> TensorType:
    a, *tolerances = types
    dtype = _square("pinv", (a,)) if boolean(attrs, "hermitian") else _matrices("pinv", (a,))
    least = [tensor_type(dtype, t.shape[:-2]) for t in tolerances]
    fits = all(t.rank >= 2 and t.shape[-2:] == (1, 1) and t.dtype == real_dtype(dtype) for t in tolerances)
    if not fits or broadcast("pinv", (tensor_type(dtype, a.shape[:-2]), *least)) != a.shape[:-2]:
        raise TypeRuleError(
            f"pinv: the tolerances must be {real_dtype(dtype)}[...,1,1], one for each matrix or for all {listed('pinv', types)}"
        )
    return tensor_type(dtype, (*a.shape[:-2], a.shape[-1], a.shape[-2]))


qr = define(OpDef("qr", ("a",), _qr, ("mode",), flops=_cubic(4.0)))
"""Orthonormal Q and upper triangular R of A = Q R; with mode "r" no Q, with "complete" a square one."""
eigh = define(OpDef("eigh", ("a",), _eigh, ("upper",), checks=True, flops=_cubic(9.0)))
"""Ascending eigenvalues and orthonormal eigenvectors of Hermitian matrices, of which one triangle is looked at."""
eig = define(OpDef("eig", ("a",), _eig, checks=True, flops=_cubic(25.0)))
"""Eigenvalues and eigenvectors of length 1."""
svd = define(OpDef("svd", ("a",), _svd, ("full",), checks=True, flops=_cubic(20.0)))
"""U, descending S and V^H of A = U S V^H; U and V^H are square if `full`."""
lu = define(OpDef("lu", ("a",), _lu, flops=_cubic(2 / 3)))
"""L and U in one matrix, the row (from 1) that each row was swapped with, and which pivot is 0, counted from 1."""
lu_permutation = define(OpDef("lu_permutation", ("pivots",), _permutation, ("rows",)))
"""The order of rows that swaps with `pivots` lead to: A[order] = L U."""
pinv = define(OpDef("pinv", ("a", "atol", "rtol"), _pinv, ("hermitian",), checks=True, flops=_cubic(25.0)))
"""The inverse where singular values are above max(atol, rtol * the largest), else 0."""
matrix_exp = _one("matrix_exp", 30.0)
matrix_exp_derivative = _directional("matrix_exp_derivative", 240.0)
"""The derivative of the exponential of A in the direction H."""
