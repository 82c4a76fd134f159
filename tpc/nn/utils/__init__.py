"""`tpc.nn.utils`: gradients kept small, parameters as one vector."""

from tpc.nn.utils.clipping import clip_grad_norm_, clip_grad_value_, get_total_norm
from tpc.nn.utils.vector import parameters_to_vector, vector_to_parameters

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "vector_to_parameters"]
