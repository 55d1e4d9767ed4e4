"""Grids measured by others, and checks of predictions against them."""

from .other_surveys import check_predictions
from .senders import half_distances

__all__ = ["check_predictions", "half_distances"]
