"""What this page measures."""

from .link_map import link_map
from .loss import estimate_loss
from .schedule import rounds

__all__ = ["estimate_loss", "link_map", "rounds"]
