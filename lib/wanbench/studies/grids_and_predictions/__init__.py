"""Grids that others measured, and predictions of pairs checked against them."""

from .other_surveys import check_predictions
from .senders import half_distances

__all__ = ["check_predictions", "half_distances"]
