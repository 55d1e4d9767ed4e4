"""What this page measures."""

from .charts import link_map, rounds
from .loss import estimate_loss

__all__ = ["estimate_loss", "link_map", "rounds"]
