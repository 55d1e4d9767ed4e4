"""What this page measures."""

from .detection import Detection
from .disturbances import leader_skew, rolls, slowed, warmed_up

__all__ = ["Detection", "leader_skew", "rolls", "slowed", "warmed_up"]
