"""`tpc.utils`: checkpointing."""

from tpc.utils import checkpoint as checkpoint

__all__ = ["checkpoint"]
