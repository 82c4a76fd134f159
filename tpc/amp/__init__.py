"""Mixed precision: PyTorch's interface. On the CPU of tpc nothing is cast behind the user's back; what asks for the mode is answered."""

from tpc.amp.autocast_mode import autocast, is_autocast_available
from tpc.amp.custom_function import custom_bwd, custom_fwd
from tpc.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
