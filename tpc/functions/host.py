"""`tpc.host_call`: Python, NumPy and SciPy code as a part of programs."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tpc.autograd.function import Function
from tpc.functions.factories import as_tensor
from tpc.ir.ops.host import TOKEN, HostFunction
from tpc.ir.ops.host import host_call as host_call_op
from tpc.ir.types import TensorType, type_of
from tpc.record import record
from tpc.runtime.kernels.host import KNOWN, REGISTERED
from tpc.state import STATE, detached_state
from tpc.tensor import Tensor, from_array

_token = from_array(np.zeros(TOKEN.shape, TOKEN.numpy_dtype))
"""How many ordered calls there were: each reads it and writes the next number, so that they keep their order and none is left out."""


def host_call(
    fn: Callable[..., Any] | str,
    *tensors: Any,
    out: Any = None,
    vectorized: bool = False,
    ordered: bool = False,
    backward: Callable[..., Any] | None = None,
) -> Any:
    """Calls `fn` on NumPy arrays whenever the values of the result are computed: deferred, in compiled calls, in programs of `tpc.trace`.

    `out` says what comes back: a spec such as ``"f32[3]"``, a `tpc.spec` or a tensor or array of that shape and dtype, or a tuple of
    these for several results; the type of the first tensor if it is not given. `fn` gets arrays that are its own. It is taken to be a
    function of them: calls whose results nobody uses are left out, equal ones made once, and none is computed a second time for
    backward. With `ordered=True` it is called for what it does (`out=()` for no results): none is left out, and they keep their order.

    Under vmap `fn` is called for each sample, with `vectorized=True` once, with the batch as first dimension of every array. Gradients:
    call it inside forward and backward of a Function, or give `backward(*gradients, *tensors)`, which returns a gradient (or None) for
    each tensor and is recorded like a Function's.

    Raises `TypeError` where `fn` returns another number of results or no arrays, `RuntimeError` where one has another shape or dtype,
    and on backward through a call without `backward`. A name instead of a function is one that `register_host_function` gave.
    """
    given = [t if isinstance(t, Tensor) else as_tensor(t) for t in tensors]
    if not given and not ordered:
        raise TypeError("host_call: a call without tensors gives the same result every time; pass ordered=True if it does not")
    types = _types(out, given)
    several = isinstance(out, tuple | list)
    attrs = {
        "function": _named(fn),
        "dtypes": tuple(t.dtype for t in types),
        "shapes": tuple(t.shape for t in types),
        "vectorized": bool(vectorized),
        "mapped": 0,
        "ordered": bool(ordered),
    }
    if not ordered and not types:
        raise TypeError("host_call: a call without results is left out; pass ordered=True if it is made for what it does")
    if backward is not None and STATE.grad_enabled and any(t._tracked() for t in given):
        if not callable(backward):
            raise TypeError(f"host_call: backward must be callable, not {type(backward).__name__}")
        results = HostCall.apply(attrs, backward, *given)
    else:
        results = _recorded(attrs, given)
    results = results if isinstance(results, tuple) else (results,)
    return results if several else results[0]


def register_host_function(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Gives a Python function a name for good, so that a program read from text or JSON can call it; also a decorator.

    `ValueError` where another function has the name.
    """
    if function is None:
        return lambda f: register_host_function(name, f)
    if not callable(function):
        raise TypeError(f"register_host_function takes a function, not {type(function).__name__}")
    known = REGISTERED.get(name)
    if known is not None and known.function.function is not function:  # type: ignore[attr-defined]
        raise ValueError(f"there is another host function of the name {name!r}")
    REGISTERED[name] = HostFunction(name, Detached(function))
    return function


class HostCall(Function):
    """A host call whose gradient the caller gave."""

    generate_vmap_rule = True

    @staticmethod
    def forward(attrs: Any, backward: Callable[..., Any], *tensors: Tensor) -> Any:
        return _recorded(attrs, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.given, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        got = ctx.given(*grads, *ctx.saved_tensors)
        return (None, None, *(got if isinstance(got, tuple | list) else (got,)))


def _recorded(attrs: Any, tensors: Any) -> Any:
    if not attrs["ordered"]:
        return record(host_call_op, tensors, attrs)
    if STATE.vmaps:
        raise RuntimeError("vmap: an ordered host_call has no order among samples; call it outside of vmap, or without ordered=True")
    if STATE.trace is not None:
        *results, after = _spread(record(host_call_op, (_token, *tensors), attrs))
        _token._write(after)
        return tuple(results)
    from tpc.deferred import compute, flush

    flush()
    # What it does is done once: nothing waits that could be computed a second time.
    *results, after = _spread(record(host_call_op, (_token.clone().detach(), *tensors), attrs))
    compute(after._storage.value)
    _token._write(after)
    return tuple(results)


def _spread(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _types(out: Any, tensors: list[Tensor]) -> list[TensorType]:
    if out is None:
        if not tensors:
            raise TypeError("host_call: say with `out` what comes back: a spec such as 'f32[3]', an example, or a tuple of these")
        return [tensors[0]._type]
    return [_type(x) for x in (out if isinstance(out, tuple | list) else (out,))]


def _type(x: Any) -> TensorType:
    from tpc.trace import Spec, spec

    if isinstance(x, str):
        return spec(x).type
    if isinstance(x, Spec):
        return x.type
    if isinstance(x, Tensor):
        return x._type
    if isinstance(x, np.ndarray | np.generic):
        return type_of(np.asarray(x))
    raise TypeError(f"host_call: `out` is made of specs such as 'f32[3]', tensors and arrays, not {type(x).__name__}")


# --- names --------------------------------------------------------------------------------------


class Detached:
    """A host function as programs call it: apart from whatever the thread is recording."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arrays: np.ndarray) -> Any:
        with detached_state():
            return self.function(*arrays)


def _named(fn: Any) -> HostFunction:
    """The function under a name that no other living one has; a function that is made anew each time keeps its name."""
    if isinstance(fn, str):
        if fn not in REGISTERED:
            raise ValueError(f"there is no host function {fn!r}; register it first: tpc.register_host_function({fn!r}, function)")
        return REGISTERED[fn]
    if not callable(fn):
        raise TypeError(f"host_call takes a function first, not {type(fn).__name__}")
    module = getattr(fn, "__module__", None) or ""
    base = f"{module}.{getattr(fn, '__qualname__', None) or getattr(fn, '__name__', None) or type(fn).__name__}".lstrip(".")
    name, number = base, 1
    while (known := REGISTERED.get(name) or KNOWN.get(name)) is not None:
        if _same(known.function.function, fn):  # type: ignore[attr-defined]
            return known
        number += 1
        name = f"{base}#{number}"
    made = KNOWN[name] = HostFunction(name, Detached(fn))
    return made


def _same(a: Any, b: Any) -> bool:
    """Whether two functions do the same: code, defaults and the variables that they share with their surroundings are the very same."""
    if isinstance(a, MethodType) and isinstance(b, MethodType):
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    if a is b or not (isinstance(a, FunctionType) and isinstance(b, FunctionType)):
        return a is b
    if a.__code__ is not b.__code__ or a.__globals__ is not b.__globals__ or a.__dict__ or b.__dict__:
        return False
    shared = [*(a.__defaults__ or ()), *(a.__kwdefaults__ or {}).values(), *(a.__closure__ or ())]
    others = [*(b.__defaults__ or ()), *(b.__kwdefaults__ or {}).values(), *(b.__closure__ or ())]
    return len(shared) == len(others) and all(x is y for x, y in zip(shared, others, strict=True))
