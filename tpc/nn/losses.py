"""Losses as modules; those that end in a reduction take `reduction` "mean", "sum" or "none"."""

from __future__ import annotations

from tpc.nn import functional as fn
from tpc.nn.applied import applied

_OLD = "size_average reduce reduction"
_WEIGHTED = "weight size_average reduce reduction"

BCELoss = applied("BCELoss", fn.binary_cross_entropy, _WEIGHTED)
BCEWithLogitsLoss = applied("BCEWithLogitsLoss", fn.binary_cross_entropy_with_logits, _WEIGHTED + " pos_weight")
CTCLoss = applied("CTCLoss", fn.ctc_loss, "blank reduction zero_infinity")
CosineEmbeddingLoss = applied("CosineEmbeddingLoss", fn.cosine_embedding_loss, "margin " + _OLD)
CrossEntropyLoss = applied("CrossEntropyLoss", fn.cross_entropy, "weight size_average ignore_index reduce reduction label_smoothing")
GaussianNLLLoss = applied("GaussianNLLLoss", fn.gaussian_nll_loss, "full eps reduction")
HingeEmbeddingLoss = applied("HingeEmbeddingLoss", fn.hinge_embedding_loss, "margin " + _OLD)
HuberLoss = applied("HuberLoss", fn.huber_loss, "reduction delta")
KLDivLoss = applied("KLDivLoss", fn.kl_div, _OLD + " log_target")
L1Loss = applied("L1Loss", fn.l1_loss, _OLD)
MSELoss = applied("MSELoss", fn.mse_loss, _OLD)
MarginRankingLoss = applied("MarginRankingLoss", fn.margin_ranking_loss, "margin " + _OLD)
MultiLabelMarginLoss = applied("MultiLabelMarginLoss", fn.multilabel_margin_loss, _OLD)
MultiLabelSoftMarginLoss = applied("MultiLabelSoftMarginLoss", fn.multilabel_soft_margin_loss, _WEIGHTED)
MultiMarginLoss = applied("MultiMarginLoss", fn.multi_margin_loss, "p margin " + _WEIGHTED)
NLLLoss = applied("NLLLoss", fn.nll_loss, "weight size_average ignore_index reduce reduction")
PoissonNLLLoss = applied("PoissonNLLLoss", fn.poisson_nll_loss, "log_input full size_average eps reduce reduction")
SmoothL1Loss = applied("SmoothL1Loss", fn.smooth_l1_loss, _OLD + " beta")
SoftMarginLoss = applied("SoftMarginLoss", fn.soft_margin_loss, _OLD)
TripletMarginLoss = applied("TripletMarginLoss", fn.triplet_margin_loss, "margin p eps swap " + _OLD)
TripletMarginWithDistanceLoss = applied(
    "TripletMarginWithDistanceLoss", fn.triplet_margin_with_distance_loss, "distance_function margin swap reduction"
)
