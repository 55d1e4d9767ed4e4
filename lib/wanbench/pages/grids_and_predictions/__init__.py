"""Predict RTT and throughput of pairs that nobody measured, and check predictions against other surveys."""

from .other_surveys import check_predictions
from .prediction import fit_predictor, what_if

__all__ = ["check_predictions", "fit_predictor", "what_if"]
