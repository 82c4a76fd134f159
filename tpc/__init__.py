"""tpc: a graph compiler for custom autograd Functions.

`import tpc as torch` runs a PyTorch file with custom Functions: recorded, optimised and run on NumPy. `tpc.compile` turns a function
into one compiled call, `tpc.trace` shows its programs.
"""

import math as _math
from typing import Any as _Any

import tpc.methods
from tpc import (
    amp,
    autograd,
    backends,
    compiler,
    config,
    cuda,
    distributed,
    distributions,
    fft,
    func,
    jit,
    linalg,
    nn,
    optim,
    random,
    safetensors,
    signal,
    special,
    testing,
    utils,
    version,
)
from tpc.amp.autocast_mode import (
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from tpc.autograd import derivatives as _derivatives
from tpc.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from tpc.autograd.grad_mode import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from tpc.compile import compile
from tpc.device import device
from tpc.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tpc.explaining import explain
from tpc.func.vmap import vmap
from tpc.functions.catalogue import public as _public
from tpc.functions.control import cond, scan, while_loop
from tpc.functions.host import host_call, register_host_function
from tpc.functions.random import Generator, default_generator, fork_rng
from tpc.legacy import TYPES as _TYPES
from tpc.legacy import sparse_coo_tensor
from tpc.printing import set_printoptions
from tpc.promotion import can_cast, promote_types, result_type, typename
from tpc.saving import load, save
from tpc.session import (
    _assert,
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_float32_matmul_precision,
    set_default_device,
    set_default_tensor_type,
    set_float32_matmul_precision,
    use_deterministic_algorithms,
)
from tpc.size import Size
from tpc.tensor import Tensor
from tpc.trace import Spec, spec, trace
from tpc.version import __version__

globals().update(_public())
globals().update({name: getattr(Tensor, name) for name in tpc.methods.ALSO_FUNCTIONS.split()})
globals().update({name: getattr(nn.functional, name) for name in nn.functional.ALSO_TOP_LEVEL.split()})
globals().update(_TYPES)

bool = bool_
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan
newaxis = None
strided, contiguous_format, preserve_format = "strided", "contiguous_format", "preserve_format"
channels_last, channels_last_3d = "channels_last", "channels_last_3d"


def is_tensor(obj: _Any) -> _Any:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> _Any:
    """Whether a tensor's dtype is floating."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> _Any:
    """Whether a tensor's dtype is complex."""
    return input.is_complex()


def numel(input: Tensor) -> _Any:
    """The number of elements of a tensor."""
    return input.numel()


def set_num_threads(threads: _Any) -> None:
    """Threads that large fused groups may use."""
    config.threads = threads


def get_num_threads() -> _Any:
    """Threads that large fused groups may use."""
    return config.threads


def __getattr__(name: str) -> _Any:
    from tpc.missing import refuse

    refuse("module 'tpc'", name, [n for n in globals() if not n.startswith("_")])


__all__ = sorted(n for n in globals() if not n.startswith("_") and n not in ("tpc", "methods"))
