"""Analyse a survey of throughput between regions: the loss that explains a throughput."""

from .loss import estimate_loss

__all__ = ["estimate_loss"]
