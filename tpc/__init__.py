"""tpc: a graph compiler for custom autograd Functions."""

from tpc import methods as methods
import tpc.autograd.elementwise, tpc.autograd.reduction, tpc.autograd.linalg, tpc.autograd.random
