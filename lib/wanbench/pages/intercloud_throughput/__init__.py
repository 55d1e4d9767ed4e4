"""Analyse a survey of TCP throughput between regions, and estimate the packet loss and window that explain it."""

from .loss import estimate_loss

__all__ = ["estimate_loss"]
