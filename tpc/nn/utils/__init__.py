"""`tpc.nn.utils`: gradients kept small, parameters as one vector, parameters that are computed, sequences of several lengths."""

from tpc.nn.utils import parametrizations, parametrize, rnn
from tpc.nn.utils.clipping import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from tpc.nn.utils.older_norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from tpc.nn.utils.vector import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector", "parametrizations",
    "parametrize", "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip
