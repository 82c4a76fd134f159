"""`tpc.linalg`: norms and products of vectors and matrices. Decompositions and solvers are not there yet."""

from tpc.functions.linalg import cross, matmul, matrix_power, multi_dot, vecdot
from tpc.functions.norms import linalg_norm as norm
from tpc.functions.norms import matrix_norm, vector_norm
from tpc.functions.shape import diagonal

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm", "vecdot", "vector_norm"]
