"""Optimisers whose state and learning rate are tensors, so that a compiled step sees every change of them."""

from tpc.optim import lr_scheduler
from tpc.optim.adam import Adam, AdamW
from tpc.optim.adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from tpc.optim.optimizer import Optimizer
from tpc.optim.sgd import SGD

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "lr_scheduler"]
