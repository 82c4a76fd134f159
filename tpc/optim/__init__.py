"""Optimisers whose state and learning rate are tensors, so that a compiled step sees every change of them."""

from tpc.optim import lr_scheduler, swa_utils
from tpc.optim.adam import Adam, AdamW
from tpc.optim.adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from tpc.optim.lbfgs import LBFGS
from tpc.optim.optimizer import Optimizer
from tpc.optim.sgd import SGD
from tpc.optim.sign_and_average import ASGD, Rprop

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
    "lr_scheduler", "swa_utils",
]  # fmt: skip
