"""What this page measures."""

from .detection import Detection
from .disturbances import piled, rolls, slowed, warmed_up

__all__ = [
    "Detection",
    "piled",
    "rolls",
    "slowed",
    "warmed_up",
]
