"""tpc: a graph compiler for custom autograd Functions."""

import sys as _sys
import types as _types

import tpc.methods as methods
import tpc.autograd.elementwise, tpc.autograd.reduction, tpc.autograd.linalg, tpc.autograd.random
import tpc.autograd.shape, tpc.autograd.indexing
from tpc import autograd, optim
from tpc.functions.catalogue import FAMILIES
for _f in FAMILIES:
    for _n, _v in vars(_f).items():
        if not _n.startswith("_") and isinstance(_v, _types.FunctionType) and _v.__module__.startswith("tpc.functions") and (_n not in globals() or isinstance(globals()[_n], _types.ModuleType)):
            globals()[_n] = _v
from tpc.compile import compile
from tpc.trace import trace, spec
from tpc.tensor import Tensor, Size
from tpc.dtype import *
from tpc.dtype import bool_ as bool, finfo, iinfo
float = float32; double = float64; half = float16; long = int64; int = int32; short = int16
from tpc.autograd.grad_mode import no_grad, enable_grad, set_grad_enabled, is_grad_enabled, inference_mode
from tpc import func
from tpc.func import vmap
from tpc import utils
from tpc.autograd import functional as _functional
from tpc.autograd.gradcheck import gradcheck as _gradcheck, gradgradcheck as _gradgradcheck
autograd.functional = _functional
autograd.gradcheck = _gradcheck
autograd.gradgradcheck = _gradgradcheck
