"""Public functions by name, over all families."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from types import FunctionType, ModuleType
from typing import Any

from tpc.functions import (
    arranging,
    decompositions,
    derived,
    distances,
    einsum,
    elementwise,
    factories,
    gathering,
    indexing,
    joining,
    linalg,
    masks,
    norms,
    numbers,
    older_linalg,
    ordering,
    pairs,
    random,
    reduction,
    regions,
    scans,
    searching,
    shape,
    solvers,
    special,
    spectrogram,
    statistics,
    tapers,
)
from tpc.functions.dims import numpy_spelling

FAMILIES: tuple[ModuleType, ...] = (
    elementwise,
    derived,
    reduction,
    ordering,
    norms,
    shape,
    joining,
    arranging,
    gathering,
    indexing,
    masks,
    linalg,
    older_linalg,
    solvers,
    decompositions,
    einsum,
    random,
    factories,
    scans,
    statistics,
    searching,
    distances,
    regions,
    pairs,
    special,
    spectrogram,
    tapers,
    numbers,
)
"""In the order in which a name is looked for."""


@cache
def find(name: str) -> Callable[..., Any]:
    """The public function of that name; one with a `dim` takes `axis` too."""
    for family in FAMILIES:
        found = getattr(family, name, None)
        if isinstance(found, FunctionType) and found.__module__.startswith("tpc.functions"):
            return numpy_spelling(found) if "dim" in signature(found).parameters else found
    raise AttributeError(f"no family of functions has {name!r}")


PUBLIC = """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint all allclose amax amin aminmax angle any arange arccos
    arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_tensor asarray asin asinh atan atan2 atanh
    atleast_1d atleast_2d atleast_3d baddbmm bernoulli bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor block_diag bmm broadcast_shapes broadcast_tensors broadcast_to cartesian_prod cat ceil
    chain_matmul chunk clamp clamp_max clamp_min clip clone column_stack complex concat concatenate conj copysign cos cosh
    count_nonzero cross cumprod cumsum deg2rad diag diag_embed diagflat diagonal diagonal_scatter diff dist div divide dot dsplit
    dstack einsum empty empty_like eq equal erf erfc exp exp2 expm1 eye fix flatten flip fliplr flipud float_power floor floor_divide
    fmod frac from_numpy full full_like gather ge ger get_rng_state greater greater_equal gt heaviside hsplit hstack hypot imag
    index_add index_copy index_fill index_put index_select initial_seed inner isclose isfinite isinf isnan isneginf isposinf isreal
    kron kthvalue ldexp le lerp less less_equal linspace log log10 log1p log2 log_softmax logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit logspace logsumexp lt manual_seed masked_fill masked_scatter masked_select matmul matrix_power max
    maximum mean median meshgrid min minimum mm moveaxis movedim msort mul multinomial multiply mv nan_to_num nanmean nanmedian nansum
    narrow ne neg negative nonzero norm normal not_equal ones ones_like outer permute polar positive pow prod put rad2deg rand
    rand_like randint randint_like randn randn_like randperm ravel real reciprocal relu remainder renorm repeat_interleave reshape
    resolve_conj resolve_neg roll rot90 round row_stack rsqrt rsub scalar_tensor scatter scatter_add scatter_reduce seed select
    select_scatter set_rng_state sgn sigmoid sign signbit sin sinc sinh slice_scatter softmax sort split split_with_sizes sqrt square
    squeeze stack std std_mean sub subtract sum swapaxes swapdims t take take_along_dim tan tanh tensor tensor_split tensordot tile
    topk transpose tril tril_indices triu triu_indices true_divide trunc unbind unflatten unsqueeze var var_mean vdot vsplit
    vstack where xlogy zeros zeros_like

    cummax cummin logcumsumexp trapezoid trapz cumulative_trapezoid quantile nanquantile mode histc histogram cov corrcoef searchsorted
    bucketize isin unique unique_consecutive cdist pdist combinations vander as_strided as_strided_scatter unravel_index index_reduce
    gradient fill unsafe_chunk unsafe_split narrow_copy fmax fmin conj_physical view_as_real view_as_complex
    digamma erfinv i0 igamma igammac lgamma mvlgamma polygamma
    bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft
    frexp gcd lcm nextafter

    cholesky cholesky_inverse cholesky_solve det inverse logdet slogdet
    eig frobenius_norm lstsq lu lu_solve lu_unpack matrix_exp matrix_rank nuclear_norm orgqr pinverse qr solve svd symeig triangular_solve
"""
"""Functions that users find as `tpc.<name>`."""


def public() -> dict[str, Callable[..., Any]]:
    """Every function of `PUBLIC`, by name."""
    return {name: find(name) for name in PUBLIC.split()}
