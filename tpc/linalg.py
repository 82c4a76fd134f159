"""`tpc.linalg`: norms, products, equations and decompositions of matrices."""

from tpc.functions.decompositions import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    householder_product,
    lstsq,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    matrix_exp,
    matrix_rank,
    pinv,
    qr,
    svd,
    svdvals,
)
from tpc.functions.linalg import linalg_cross as cross
from tpc.functions.linalg import linalg_vander as vander
from tpc.functions.linalg import matmul, matrix_power, multi_dot, vecdot
from tpc.functions.norms import cond, matrix_norm, vector_norm
from tpc.functions.norms import linalg_norm as norm
from tpc.functions.shape import diagonal
from tpc.functions.solvers import cholesky_ex, det, inv, inv_ex, slogdet, solve, solve_ex, solve_triangular, tensorinv, tensorsolve
from tpc.functions.solvers import linalg_cholesky as cholesky
from tpc.ir.errors import LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
