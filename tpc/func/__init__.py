"""`tpc.func`: transforms of functions, which compose: gradients, products with Jacobians, vmap."""

from tpc.func.calls import functional_call
from tpc.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from tpc.func.vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]
