"""Weights by length and direction, weights of spectral norm one, orthogonal weights."""

from __future__ import annotations

from typing import Any

from tpc.autograd.grad_mode import no_grad
from tpc.functions.decompositions import householder_product, matrix_exp, qr
from tpc.functions.factories import eye
from tpc.functions.norms import norm
from tpc.functions.random import randn
from tpc.functions.solvers import solve
from tpc.nn import functional as fn
from tpc.nn.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tpc.nn.module import Module
from tpc.nn.utils.parametrize import register_parametrization


def lengths(weight: Any, dim: int) -> Any:
    """The norm of each slice of a weight along a dimension; with -1, of the whole."""
    if dim == -1:
        return norm(weight)
    return norm(weight, 2, [d for d in range(weight.dim()) if d != dim % weight.dim()], keepdim=True) if weight.dim() > 1 else weight.abs()


def scaled(length: Any, direction: Any, dim: int) -> Any:
    """The weight of a length and a direction (Salimans & Kingma 2016)."""
    return direction * (length / lengths(direction, dim))


def in_rows(weight: Any, dim: int) -> Any:
    """The weight as a matrix whose rows are its slices along `dim`."""
    return weight.movedim(dim, 0).flatten(1) if weight.dim() > 1 else weight.unsqueeze(1)


@no_grad()
def iterate(matrix: Any, u: Any, v: Any, times: int, eps: float) -> None:
    """Brings two vectors, in place, nearer to the singular ones of the largest value (power iteration; Miyato et al. 2018)."""
    for _ in range(times):
        u.copy_(fn.normalize(matrix @ v, dim=0, eps=eps))
        v.copy_(fn.normalize(matrix.t() @ u, dim=0, eps=eps))


def turned(module: Module) -> int:
    """The dimension of a weight that counts the outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, length: Any, direction: Any) -> Any:
        return scaled(length, direction, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return lengths(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Trains the length (`original0`) of each slice along `dim`, or of the whole with None, and its direction (`original1`)."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of [-{weight.dim()}, {weight.dim() - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim, eps, n_power_iterations
        if weight.dim() > 1:
            matrix = in_rows(weight.detach(), dim)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(name, fn.normalize(randn(size, dtype=weight.dtype), dim=0, eps=eps))
            iterate(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Any) -> Any:
        if weight.dim() == 1:
            return fn.normalize(weight, dim=0, eps=self.eps)
        matrix = in_rows(weight, self.dim)
        if self.training:
            iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # Copies: the next call writes into the buffers, and backward needs those of this one.
        return weight / (self._u.clone() @ (matrix @ self._v.clone()))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """Divides a weight by its largest singular value, which each call in training mode knows better by `n_power_iterations`."""
    weight = getattr(module, name)
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, turned(module) if dim is None else dim, eps))


class _Orthogonal(Module):
    def __init__(self, weight: Any, map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.map, self.wide = map, weight.size(-2) < weight.size(-1)
        self.shape = weight.shape
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        x = x.mT if self.wide else x
        rows, columns = x.shape[-2:]
        made: Any
        if self.map == "householder":
            made = householder_product(x.tril(-1) + eye(rows, columns, dtype=x.dtype), 2 / (1 + (x.tril(-1) ** 2).sum(-2)))
            made = made * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            skew = x.tril(-1)
            if rows != columns:
                skew = fn.pad(skew, (0, rows - columns))
            skew = skew - skew.mH
            if self.map == "matrix_exp":
                made = matrix_exp(skew)
            else:
                whole = eye(rows, dtype=x.dtype)
                made = solve(whole + skew * -0.5, whole + skew * 0.5)
            made = made[..., :columns]
        base = self._buffers.get("base")
        if base is not None:
            made = base @ made
        return made.mT if self.wide else made

    @no_grad()
    def right_inverse(self, value: Any) -> Any:
        if value.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}.")
        if "base" not in self._buffers:
            raise NotImplementedError("An orthogonal matrix can be assigned only with use_trivialization=True.")
        tall = value.mT if self.wide else value
        factor: Any
        triangle: Any
        factor, triangle = qr(tall, "complete")
        columns = tall.size(-1)
        # The factor whose triangle has a positive diagonal: an orthogonal value is its own.
        factor[..., :columns] *= triangle.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        self.base = factor
        # Every map takes this to the first columns of the identity.
        start = value * 0
        start.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return start


def orthogonal(module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Any:
    """Keeps the columns (of a wide matrix, the rows) orthonormal.

    `matrix_exp` (square and tall alike) or `cayley` of a skew-symmetric matrix, times a fixed orthogonal one with `use_trivialization`.
    """
    weight = getattr(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)
