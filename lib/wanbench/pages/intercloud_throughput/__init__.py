"""Analyse a survey of throughput between regions: its map, and the loss that explains a throughput."""

from .charts import link_map
from .loss import estimate_loss

__all__ = ["estimate_loss", "link_map"]
