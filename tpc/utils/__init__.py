"""`tpc.utils`: checkpointing, data sets."""

from tpc.utils import checkpoint as checkpoint
from tpc.utils import data as data

__all__ = ["checkpoint", "data"]
