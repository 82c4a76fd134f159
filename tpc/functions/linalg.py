"""Products of vectors and matrices. Everything is built from `matmul` of two stacks of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tpc.dtype import BY_IR
from tpc.functions import elementwise as e
from tpc.functions.dims import one_dim
from tpc.functions.elementwise import stored
from tpc.functions.norms import linalg_norm as norm
from tpc.functions.norms import matrix_norm, vector_norm
from tpc.functions.reduction import sum
from tpc.functions.shape import diagonal, permute, reshape, transpose, unsqueeze
from tpc.ir.ops import linalg as ops
from tpc.ir.types import category
from tpc.record import record
from tpc.tensor import Tensor


def _check_dtypes(name: str, a: Tensor, b: Tensor) -> None:
    for x in (a, b):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): expected Tensor, not {type(x).__name__}")
    if a._type.dtype != b._type.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {BY_IR[a._type.dtype].name} != {BY_IR[b._type.dtype].name}"
        )


def _times(rows: Sequence[int]) -> str:
    return "x".join(map(str, rows))


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Two stacks of matrices; a stack times one matrix is one large product."""
    (*batch, m, k), n = a._type.shape, b._type.shape[-1]
    if batch and b._type.rank == 2 and a._type.numel:
        folded = reshape(a, (math.prod(batch) * m, k))
        return reshape(record(ops.matmul, (folded, b)), (*batch, m, n))
    return record(ops.matmul, (a, b))  # type: ignore[no-any-return]


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product: vectors count as a row on the left and a column on the right, leading dimensions broadcast."""
    _check_dtypes("matmul", input, other)
    left, right = input._type.shape, other._type.shape
    if not left or not right:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(left)}D and {len(right)}D")
    if len(left) == len(right) == 1:
        return dot(input, other, out=out)
    a = unsqueeze(input, 0) if len(left) == 1 else input
    b = unsqueeze(other, 1) if len(right) == 1 else other
    if a._type.shape[-1] != b._type.shape[-2]:
        _refuse_sizes(a, b, len(right) == 1)
    result = _product(a, b)
    batch = result._type.shape[:-2]
    if len(left) == 1:
        result = reshape(result, (*batch, right[-1]))
    elif len(right) == 1:
        result = reshape(result, (*batch, left[-2]))
    return stored(result, out)


def _refuse_sizes(a: Tensor, b: Tensor, vector: bool) -> None:
    left, right = a._type.shape, b._type.shape
    if vector and len(left) == 2:
        raise RuntimeError(f"size mismatch, got input ({left[0]}), mat ({_times(left)}), vec ({right[-2]})")
    if len(left) > 2 and len(right) > 2:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[left[0], left[-1]]} but got: {[right[0], right[-2]]}."
        )
    rows = (math.prod(left[:-1]), left[-1])
    raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_times(rows)} and {_times(right[-2:])})")


def _of_rank(name: str, x: Tensor, rank: int, role: str) -> None:
    if x._type.rank != rank:
        raise RuntimeError(f"{name}: {role} must be a {rank}D tensor, but got {x._type.rank}D")


def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices."""
    if input._type.rank != 2:
        raise RuntimeError("self must be a matrix")
    if mat2._type.rank != 2:
        raise RuntimeError("mat2 must be a matrix")
    return matmul(input, mat2, out=out)


def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of two stacks of as many matrices."""
    if input._type.rank != 3 or mat2._type.rank != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if input._type.rank != 3 else "batch2 must be a 3D tensor")
    left, right = input._type.shape, mat2._type.shape
    if left[0] != right[0] or left[2] != right[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{left[0]}, {left[2]}] but got: [{right[0]}, {right[1]}]."
        )
    return matmul(input, mat2, out=out)


def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix times vector."""
    if input._type.rank != 2 or vec._type.rank != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input._type.rank}, {vec._type.rank}")
    return matmul(input, vec, out=out)


def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sum of the products of two vectors' elements."""
    if input._type.rank != 1 or tensor._type.rank != 1:
        raise RuntimeError(f"1D tensors expected, but got {input._type.rank}D and {tensor._type.rank}D tensors")
    if input._type.dtype != tensor._type.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{BY_IR[input._type.dtype].name} and {BY_IR[tensor._type.dtype].name}"
        )
    n, m = input._type.numel, tensor._type.numel
    if n != m:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} and {m} "
            "elements respectively"
        )
    return stored(reshape(record(ops.matmul, (reshape(input, (1, n)), reshape(tensor, (n, 1)))), ()), out)


def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`dot` with the first vector conjugated."""
    return dot(e.conj(input), other, out=out)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Sum over one dimension of conj(x) * y."""
    return stored(sum(e.mul(e.conj(x), y), dim), out)


def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last dimension of both."""
    if not input._type.shape or not other._type.shape:
        return e.mul(input, other, out=out)
    if input._type.shape[-1] != other._type.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._type.shape)} and {list(other._type.shape)}"
        )
    return stored(tensordot(input, other, ([-1], [-1])), out)


def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of elements of two vectors."""
    for x in (input, vec2):
        if x._type.rank != 1:
            raise RuntimeError(f"outer: Expected 1-D argument, but got {x._type.rank}-D")
    return stored(e.mul(unsqueeze(input, 1), vec2), out)


ger = outer


# --- products added to something ----------------------------------------------------------------


def _added(input: Tensor, product: Tensor, beta: Any, alpha: Any, out: Tensor | None) -> Tensor:
    if category(input._type.dtype) == category(product._type.dtype) == 1:
        alpha, beta = int(alpha), int(beta)
    have, wanted = input._type.shape, product._type.shape
    if len(have) > len(wanted) or any(m not in (1, n) for m, n in zip(reversed(have), reversed(wanted), strict=False)):
        raise RuntimeError(
            f"The expanded size of the tensor {list(wanted)} must match the existing size {list(have)} of the tensor that is added"
        )
    scaled = product if alpha == 1 else e.mul(product, alpha)
    if beta == 0:  # PyTorch ignores `input` then, NaN and all
        from tpc.functions.shape import broadcast_to

        return stored(e.add(scaled, e.mul(e.where(e.ne(input, input), 0, broadcast_to(input, product._type.shape)), 0)), out)
    return stored(e.add(scaled, input if beta == 1 else e.mul(input, beta)), out)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2)."""
    _of_rank("addmm", mat1, 2, "mat1")
    _of_rank("addmm", mat2, 2, "mat2")
    return _added(input, mm(mat1, mat2), beta, alpha, out)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    return _added(input, mv(mat, vec), beta, alpha, out)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
    return _added(input, outer(vec1, vec2), beta, alpha, out)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""
    return _added(input, bmm(batch1, batch2), beta, alpha, out)


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * the sum of bmm(batch1, batch2) over the batch."""
    return _added(input, sum(bmm(batch1, batch2), 0, dtype=batch1.dtype), beta, alpha, out)


# --- other --------------------------------------------------------------------------------------


def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix."""
    if input._type.rank != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._type.rank}")
    return sum(diagonal(input))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over pairs of dimensions: the last `dims` of a with the first of b, or two lists of dimensions."""
    _check_dtypes("tensordot", a, b)
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._type.rank, b._type.rank):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(a._type.rank - dims, a._type.rank)), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
        left, right = [one_dim(d, a._type.rank) for d in left], [one_dim(d, b._type.rank) for d in right]
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    for i, j in zip(left, right, strict=True):
        if a._type.shape[i] != b._type.shape[j]:
            if a._type.shape[i] == 1:
                b = sum(b, j, keepdim=True, dtype=b.dtype)
                continue
            if b._type.shape[j] == 1:
                a = sum(a, i, keepdim=True, dtype=a.dtype)
                continue
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a._type.shape[i]} in dim {i} and second has size "
                f"{b._type.shape[j]} in dim {j}"
            )
    free_a = [i for i in range(a._type.rank) if i not in left]
    free_b = [j for j in range(b._type.rank) if j not in right]
    shape_a, shape_b = [a._type.shape[i] for i in free_a], [b._type.shape[j] for j in free_b]
    inner_size = math.prod([a._type.shape[i] for i in left])
    rows = reshape(permute(a, (*free_a, *left)), (math.prod(shape_a), inner_size))
    columns = reshape(permute(b, (*right, *free_b)), (inner_size, math.prod(shape_b)))
    return stored(reshape(record(ops.matmul, (rows, columns)), (*shape_a, *shape_b)), out)


def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Kronecker product: every element of `input` times the whole of `other`."""
    rank = max(input._type.rank, other._type.rank)
    left = (1,) * (rank - input._type.rank) + input._type.shape
    right = (1,) * (rank - other._type.rank) + other._type.shape
    a = reshape(input, tuple([n for size in left for n in (size, 1)]))
    b = reshape(other, tuple([n for size in right for n in (1, size)]))
    return stored(reshape(e.mul(a, b), tuple([m * n for m, n in zip(left, right, strict=True)])), out)


def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The matrix multiplied n times with itself, for negative n its inverse -n times. `LinAlgError` where that is singular."""
    from tpc.functions.factories import eye
    from tpc.functions.shape import broadcast_to
    from tpc.functions.solvers import inv

    if input._type.rank < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if input._type.shape[-1] != input._type.shape[-2]:
        raise RuntimeError(
            "linalg.matrix_power: A must be batches of square matrices, but they are "
            f"{input._type.shape[-2]} by {input._type.shape[-1]} matrices"
        )
    square = inv(input) if n < 0 else input
    result: Tensor | None = None
    n = abs(n)
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        if n:
            square = matmul(square, square)
    if result is None:
        # the identity depends on the matrix, with a gradient of zero
        identity = broadcast_to(eye(input._type.shape[-1], dtype=input.dtype), input._type.shape)
        result = e.where(e.ne(identity, identity), input, identity)
    return stored(result, out)


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Matrix product of two or more matrices in the order that costs least; the first and the last may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, x in enumerate(tensors):
        end = i in (0, len(tensors) - 1)
        if x._type.rank != 2 and not (end and x._type.rank == 1):
            which = "the first tensor" if i == 0 else "the last tensor" if end else f"tensor {i}"
            raise RuntimeError(f"multi_dot(): {which} must be {'1D or 2D' if end else '2D'} but got {x._type.rank}D")
        if x._type.dtype != tensors[0]._type.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {BY_IR[tensors[0]._type.dtype].name} and tensor {i} "
                f"{BY_IR[x._type.dtype].name}"
            )
    row, column = tensors[0]._type.rank == 1, tensors[-1]._type.rank == 1
    chain = list(tensors)
    chain[0] = unsqueeze(chain[0], 0) if row else chain[0]
    chain[-1] = unsqueeze(chain[-1], 1) if column else chain[-1]
    for i, (a, b) in enumerate(pairwise(chain)):
        if a._type.shape[1] != b._type.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i]._type.shape)} and {list(tensors[i + 1]._type.shape)} "
                "cannot be multiplied"
            )
    result = _chained(chain)
    shape = result._type.shape[int(row) : 1 if column else 2]
    return stored(reshape(result, shape), out)


def _chained(chain: Sequence[Tensor]) -> Tensor:
    """The product of matrices; where to split it is found for all of its parts, short ones first."""
    sizes = [chain[0]._type.shape[0], *[x._type.shape[1] for x in chain]]
    cost: dict[tuple[int, int], tuple[int, int]] = {(i, i + 1): (0, i) for i in range(len(chain))}
    for length in range(2, len(chain) + 1):
        for i in range(len(chain) - length + 1):
            j = i + length
            cost[i, j] = min((cost[i, k][0] + cost[k, j][0] + sizes[i] * sizes[k] * sizes[j], k) for k in range(i + 1, j))

    def product(i: int, j: int) -> Tensor:
        k = cost[i, j][1]
        return chain[i] if j == i + 1 else matmul(product(i, k), product(k, j))

    return product(0, len(chain))


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Matrix product of several matrices."""
    for x in matrices:
        if x._type.rank != 2:
            raise RuntimeError(f"Tensor dimension is {x._type.rank}, expected 2 instead.")
    return stored(matrices[0], out) if len(matrices) == 1 else multi_dot(matrices, out=out)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Vector product along a dimension of size 3; the others broadcast."""
    from tpc.functions.arranging import roll

    if input._type.rank != other._type.rank:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    at = one_dim(dim, input._type.rank)
    if input._type.shape[at] != 3 or other._type.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input._type.shape[at]} and {other._type.shape[at]}"
        )
    first = e.mul(roll(input, -1, at), roll(other, -2, at))
    second = e.mul(roll(input, -2, at), roll(other, -1, at))
    return stored(e.sub(first, second), out)


def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Vector product along `dim`, without it along the first dimension of size 3."""
    if dim is None:
        dim = next((i for i, n in enumerate(input._type.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim, out=out)


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803
    """Powers 0 .. N - 1 of the elements, along a new last dimension."""
    from tpc.functions.distances import powers

    count = N if N is not None else x._type.shape[-1] if x._type.shape else 1
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return powers(x if x._type.shape else unsqueeze(x, 0), count, True)


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products by labels: `einsum("bij,bjk->bik", a, b)`, or with lists `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    from tpc.functions.einsum import contract

    return contract(equation, operands)


__all__ = ["matrix_norm", "norm", "transpose", "vector_norm"]
