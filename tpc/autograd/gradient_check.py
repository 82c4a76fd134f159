"""`gradcheck` and `gradgradcheck`: derivatives held against central differences, and against each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpc.autograd import forward_ad
from tpc.autograd.backward import grad
from tpc.autograd.node import Grads, Node
from tpc.ir.types import is_complex, is_differentiable
from tpc.tensor import Tensor, from_array
from tpc.tree import leaves


class GradcheckError(RuntimeError):
    """A derivative does not hold."""


class _Undefined(Node):
    """Stands behind an output whose gradient is to be None."""

    def _run(self, grads: Grads) -> Sequence[Any]:
        return [None]


@dataclass(frozen=True)
class _Options:
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    fast: bool


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the derivatives of `func` at `inputs` agree with (f(x + eps) - f(x - eps)) / (2 eps).

    Every input that requires grad is checked against every output. `ValueError` where none does; `GradcheckError` (or False, without
    `raise_exception`) where a derivative is wrong, differs between two runs, or does not cope with gradients that are None; what
    `func` and its derivatives raise comes out.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    options = _Options(eps, atol, rtol, nondet_tol, fast_mode)
    try:
        check = _Check(func, inputs if isinstance(inputs, (tuple, list)) else (inputs,), options)
        check.validate()
        if check_forward_ad:
            check.forward()
            if check_batched_forward_grad:
                check.batched_forward()
        if check_backward_ad:
            check.backward(check_grad_dtypes)
            if check_undefined_grad:
                check.undefined()
            if check_batched_grad:
                check.batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradient of `func`: second derivatives. `grad_outputs` are random unless given."""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = _tensors(func(*given))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        seeds = [from_array(rng.standard_normal(o._type.shape).astype(o._type.numpy_dtype)).requires_grad_() for o in outputs]
    else:
        seeds = [
            g.detach().requires_grad_() if not g.requires_grad else g
            for g in (grad_outputs if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,))
        ]
    count = len(seeds)

    def gradient(*args: Any) -> tuple[Any, ...]:
        primals, cotangents = args[:-count], args[-count:]
        aliases = tuple(p.view_as(p) if _is_checked(p) else p for p in primals)
        out = _tensors(func(*aliases))
        wanted = [a for a in aliases if _is_checked(a)]
        got = grad(out, wanted, cotangents, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)

    return gradcheck(
        gradient,
        (*given, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _is_checked(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad and is_differentiable(x._type.dtype)


def _tensors(output: Any) -> list[Tensor]:
    """The outputs that can be differentiated."""
    spread = output if isinstance(output, (tuple, list)) else (output,)
    return [o for o in spread if isinstance(o, Tensor) and is_differentiable(o._type.dtype) and o.requires_grad]


class _Check:
    def __init__(self, func: Callable[..., Any], inputs: Sequence[Any], options: _Options) -> None:
        self.func, self.inputs, self.o = func, list(inputs), options
        self.checked = [x for x in leaves(list(inputs)) if _is_checked(x)]
        self.rng = np.random.default_rng(0)

    def validate(self) -> None:
        if not self.checked:
            raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
        for i, x in enumerate(self.checked):
            if x._type.dtype not in ("f64", "c128"):
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely "
                    "fail if all the "
                    "inputs are not of double precision floating point or complex.",
                    UserWarning,
                    stacklevel=4,
                )
        for i, x in enumerate(self.inputs):
            if _is_checked(x) and any(size > 1 and stride == 0 for size, stride in zip(x._type.shape, x.stride(), strict=True)):
                raise RuntimeError(
                    f"The {i}th input has a dimension with stride 0. gradcheck moves single elements, so that inputs must not overlap: "
                    "call .contiguous() on it first."
                )
        if any(not isinstance(o, Tensor) for o in self._all(self.func(*self.inputs))):
            raise ValueError("Expected func's outputs to be Tensors")

    @staticmethod
    def _all(output: Any) -> list[Any]:
        return list(output) if isinstance(output, (tuple, list)) else [output]

    def outputs(self) -> list[Tensor]:
        """The outputs, with history."""
        found = _tensors(self.func(*self.inputs))
        if not found:
            self._constant()
        return found

    def _constant(self) -> None:
        """A function without tracked outputs must have a derivative of zero."""
        numeric = [self.numeric(x, j) for x in self.checked for j in range(len(self._plain()))]
        if any(np.abs(n).max(initial=0) > self.o.atol for n in numeric):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero: no output requires grad, but the outputs depend on the inputs"
            )

    def _plain(self) -> list[np.ndarray]:
        """Values of the differentiable outputs."""
        spread = self._all(self.func(*self.inputs))
        return [np.array(o.detach()._array()) for o in spread if isinstance(o, Tensor) and is_differentiable(o._type.dtype)]

    # --- central differences ---

    def numeric(self, x: Tensor, output: int) -> np.ndarray:
        """d(output)/dx as (elements of x, elements of output); for complex x the derivative along the real axis, then the imaginary."""
        kept = np.array(x._array())
        steps: list[complex] = [self.o.eps, 1j * self.o.eps] if is_complex(x._type.dtype) else [self.o.eps]
        rows = [
            (self._moved(x, kept, i, step, output) - self._moved(x, kept, i, -step, output)) / (2 * self.o.eps)
            for step in steps
            for i in range(kept.size)
        ]
        self._put(x, kept)
        count = self._plain()[output].size
        return np.array(rows).reshape(len(steps) * kept.size, count)

    def _moved(self, x: Tensor, kept: np.ndarray, i: int, step: complex, output: int) -> np.ndarray:
        moved = kept.copy()
        moved.reshape(-1)[i] += step
        self._put(x, moved)
        return self._plain()[output].reshape(-1)

    @staticmethod
    def _put(x: Tensor, array: np.ndarray) -> None:
        from tpc.autograd.grad_mode import no_grad

        with no_grad():
            x.data.copy_(from_array(array.copy()))

    # --- reverse mode ---

    def backward(self, check_dtypes: bool) -> None:
        outputs = self.outputs()
        for j, output in enumerate(outputs):
            for i, x in enumerate(self.checked):
                analytic, again = self._rows(output, x, check_dtypes), self._rows(output, x, check_dtypes)
                if np.abs(analytic - again).max(initial=0) > self.o.nondet_tol:
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                        "different values, "
                        "although analytical gradient matches numerical gradient. The tolerance for nondeterminism was "
                        f"{self.o.nondet_tol}. "
                        f"(output {j}, input {i})"
                    )
                self._compare(self.numeric(x, self._position(output, outputs, j)), analytic, i, j, "Jacobian mismatch")

    def _position(self, output: Tensor, tracked: Sequence[Tensor], j: int) -> int:
        """The number of a tracked output among all differentiable ones."""
        spread = [o for o in self._all(self.func(*self.inputs)) if isinstance(o, Tensor) and is_differentiable(o._type.dtype)]
        numbers = [k for k, o in enumerate(spread) if o.requires_grad]
        return numbers[j]

    def _rows(self, output: Tensor, x: Tensor, check_dtypes: bool) -> np.ndarray:
        """What `numeric` approximates, from backward: one pass per output element (two for a complex one)."""
        units: list[complex] = [1.0, 1j] if is_complex(output._type.dtype) else [1.0]
        columns = []
        for unit in units:
            for k in range(output._type.numel):
                seed = np.zeros(output._type.numel, output._type.numpy_dtype)
                seed[k] = unit
                (g,) = grad([output], [x], [from_array(seed.reshape(output._type.shape))], retain_graph=True, allow_unused=True)
                if g is not None and check_dtypes and g._type.dtype != x._type.dtype:
                    raise GradcheckError(f"Backward is not returning gradients of the same dtype: {g.dtype} for an input of {x.dtype}")
                columns.append(np.zeros(x._type.numel, x._type.numpy_dtype) if g is None else np.array(g._array()).reshape(-1))
        return _as_rows(np.array(columns), output, x)

    def undefined(self) -> None:
        """Backward must cope with gradients that are None, and treat them as zeros: all of them, and each alone."""
        count = len(self.outputs())
        for missing in [range(count), *([k] for k in range(count) if count > 1)]:
            outputs = [_without_gradient(o) if k in missing else o for k, o in enumerate(self.outputs())]
            zeros = [from_array(np.zeros(o._type.shape, o._type.numpy_dtype)) for o in outputs]
            try:
                got = grad(outputs, self.checked, zeros, allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError(f"Expected backward function to handle undefined output grads: {error}") from error
            if any(g is not None and np.abs(g._array()).max(initial=0) > 0 for g in got):
                raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero.")

    def batched(self) -> None:
        """Backward under vmap must give what it gives one by one."""
        for output in self.outputs():
            seeds = from_array(self.rng.standard_normal((3, *output._type.shape)).astype(output._type.numpy_dtype))

            def pull(s: Any, output: Tensor = output) -> tuple[Any, ...]:
                return tuple(
                    g if g is not None else x * 0
                    for g, x in zip(grad([output], self.checked, [s], retain_graph=True, allow_unused=True), self.checked, strict=True)
                )

            self._one_by_one(pull, seeds, "For output of vmap over backward, got values that differ from those of backward one by one")

    # --- forward mode ---

    def forward(self) -> None:
        for i, x in enumerate(self.checked):
            columns = self._pushed(x)
            for j, analytic in enumerate(columns):
                self._compare(self.numeric(x, j), analytic, i, j, "Jacobian computed with forward mode mismatch")

    def batched_forward(self) -> None:
        """Forward mode under vmap must give what it gives one by one."""
        for x in self.checked:
            tangents = from_array(self.rng.standard_normal((2, *x._type.shape)).astype(x._type.numpy_dtype))

            def push(t: Any, x: Tensor = x) -> tuple[Any, ...]:
                return tuple(p * 0 if t is None else t for p, t in self._dual(x, t))

            self._one_by_one(push, tangents, "For output of vmap over forward mode, got values that differ from those one by one")

    def _one_by_one(self, function: Callable[[Tensor], tuple[Any, ...]], stacked: Tensor, otherwise: str) -> None:
        """`vmap` of a function must give what the function gives for each of the stacked tensors."""
        from tpc.func.vmap import vmap

        try:
            together = vmap(function)(stacked)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for k in range(stacked._type.shape[0]):
            for whole, one in zip(together, function(stacked.select(0, k)), strict=True):
                if not np.allclose(whole[k]._array(), one._array(), rtol=self.o.rtol, atol=self.o.atol):
                    raise GradcheckError(otherwise)

    def _pushed(self, x: Tensor) -> list[np.ndarray]:
        units: list[complex] = [1.0, 1j] if is_complex(x._type.dtype) else [1.0]
        rows: list[list[np.ndarray]] = []
        for unit in units:
            for k in range(x._type.numel):
                tangent = np.zeros(x._type.numel, x._type.numpy_dtype)
                tangent[k] = unit
                rows.append(self._push(x, from_array(tangent.reshape(x._type.shape))))
        return [np.array(column) for column in zip(*rows, strict=True)]

    def _push(self, x: Tensor, tangent: Tensor) -> list[np.ndarray]:
        pairs = self._dual(x, tangent)
        return [np.zeros(p._type.numel, p._type.numpy_dtype) if t is None else np.array(t._array()).reshape(-1) for p, t in pairs]

    def _dual(self, x: Tensor, tangent: Tensor) -> list[Any]:
        """The outputs with their tangents."""
        with forward_ad.dual_level():
            args = [forward_ad.make_dual(a, tangent) if a is x else a for a in self.inputs]
            spread = [o for o in self._all(self.func(*args)) if isinstance(o, Tensor) and is_differentiable(o._type.dtype)]
            return [forward_ad.unpack_dual(o) for o in spread]

    # --- the verdict ---

    def _compare(self, numeric: np.ndarray, analytic: np.ndarray, i: int, j: int, what: str) -> None:
        if self.o.fast:
            # One random direction on each side stands for the whole matrix.
            u, v = self.rng.standard_normal(numeric.shape[0]), self.rng.standard_normal(numeric.shape[1])
            u, v = u / max(float(np.linalg.norm(u)), 1e-30), v / max(float(np.linalg.norm(v)), 1e-30)
            numeric, analytic = np.array(u @ numeric @ v), np.array(u @ analytic @ v)
        if not np.allclose(numeric, analytic, rtol=self.o.rtol, atol=self.o.atol, equal_nan=True):
            shown = [repr(from_array(m)) if m.ndim else repr(m.item()) for m in (numeric, analytic)]
            raise GradcheckError(f"{what} for output {j} with respect to input {i},\nnumerical:{shown[0]}\nanalytical:{shown[1]}\n")


def _without_gradient(output: Tensor) -> Tensor:
    """The output, whose gradient never arrives."""
    made = output.detach()
    made._node, made._slot = _Undefined((output._edge(),), (output._type,)), 0
    return made


def _as_rows(columns: np.ndarray, output: Tensor, x: Tensor) -> np.ndarray:
    """Gradients by output element, (outputs [twice if complex], inputs), in the layout of `numeric`.

    PyTorch's gradient of a real L is dL/d(re x) + i dL/d(im x). For output component L = re y the seed is 1, for im y it is i.
    """
    n = output._type.numel
    parts = [columns[:n], columns[n:]] if is_complex(output._type.dtype) else [columns]
    along_real = [np.real(p) for p in parts]
    along_imag = [np.imag(p) for p in parts]

    def joined(p: list[np.ndarray]) -> np.ndarray:
        return (p[0] + 1j * p[1] if len(p) == 2 else p[0]).T

    rows = joined(along_real)
    return np.concatenate([rows, joined(along_imag)]) if is_complex(x._type.dtype) else rows
