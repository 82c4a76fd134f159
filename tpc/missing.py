"""What PyTorch has and tpc has not: why, and what is nearest."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NoReturn

REASONS: dict[str, tuple[str, str]] = {
    "sparse layouts": ("sparse to_sparse sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
                       "sparse_compressed_tensor smm sspaddmm hspmm",
               "tensors are dense; `index_put(accumulate=True)` and `scatter_add` build them from indices and values"),
    "devices": ("mps xpu mtia accelerator xla ipu hpu", "there is one device, the CPU"),
    "processes": ("multiprocessing futures fork wait share_memory", "there is one process"),
    "quantised dtypes": ("qint8 quint8 qint32 quantize_per_tensor quantize_per_channel dequantize int_repr quantization ao",
                         "values are quantised by rounding in floating dtypes, as fake quantisation does"),
    "programs": ("fx export onnx package library ops classes", "`tpc.trace` gives a program, `tpc.compile` runs one"),
    "files": ("save load hub from_file", "`pickle` and `numpy.save` keep tensors"),
    "profilers": ("profiler monitor", "`report()` of a compiled function says what it does"),
    "named and nested tensors": ("nested rename refine_names align_to masked", "dimensions are numbers"),
    "small dtypes": ("float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex32 chalf uint1 int4 bits8", "NumPy has no such numbers"),
    "approximate decompositions": ("lobpcg svd_lowrank pca_lowrank geqrf ormqr ldl_factor ldl_solve",
                                   "`linalg.svd`, `linalg.eigh`, `linalg.qr` and `linalg.lu_factor` give whole factors"),
    "other random numbers": ("poisson binomial", "`bernoulli`, `multinomial` and the in-place distributions are there"),
}  # fmt: skip
"""Per kind of thing: the names, and why they are missing or what to use."""


def refuse(owner: str, name: str, known: Sequence[str]) -> NoReturn:
    """Raises the `AttributeError` for a name that there is not, with the reason or the nearest name."""
    if name.startswith("__"):
        raise AttributeError(f"{owner} has no attribute {name!r}")
    for kind, (names, why) in REASONS.items():
        if name in names.split():
            raise AttributeError(f"{owner} has no attribute {name!r}: no {kind}, {why}")
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; the nearest it has is {near[0]!r}" if near else ""
    raise AttributeError(f"{owner} has no attribute {name!r}{hint}. docs/operators.md lists what there is")
