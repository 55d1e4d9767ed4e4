"""Analyse whether the congestion control decides how throughput falls with distance."""

from . import claims
from .cells import bbr_over_cubic, by_path, transfer_rows
from .model_scores import score_models

__all__ = ["bbr_over_cubic", "by_path", "claims", "score_models", "transfer_rows"]
