"""What this page measures."""

from .calibrate import calibrate
from .cut import Cut
from .shorten import Shorten

__all__ = ["Cut", "Shorten", "calibrate"]
