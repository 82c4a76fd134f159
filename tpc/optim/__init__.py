"""Optimisers whose state and learning rate are tensors, so that a compiled step sees every change of them."""

from tpc.optim.adam import Adam, AdamW
from tpc.optim.optimizer import Optimizer
from tpc.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
