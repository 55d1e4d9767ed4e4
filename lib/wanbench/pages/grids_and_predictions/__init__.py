"""Analyse grids of other surveys, predict pairs that were not measured, and check the predictions."""

from .other_surveys import check_predictions
from .prediction import fit_predictor, what_if

__all__ = ["check_predictions", "fit_predictor", "what_if"]
