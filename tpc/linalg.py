"""`tpc.linalg`: norms, products, equations and decompositions of matrices."""

from tpc.functions.linalg import cross, matmul, matrix_power, multi_dot, vecdot
from tpc.functions.norms import linalg_norm as norm
from tpc.functions.norms import matrix_norm, vector_norm
from tpc.functions.shape import diagonal
from tpc.functions.solvers import cholesky_ex, det, inv, inv_ex, slogdet, solve, solve_ex, solve_triangular
from tpc.functions.solvers import linalg_cholesky as cholesky
from tpc.ir.errors import LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cross",
    "det",
    "diagonal",
    "inv",
    "inv_ex",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "vecdot",
    "vector_norm",
]
