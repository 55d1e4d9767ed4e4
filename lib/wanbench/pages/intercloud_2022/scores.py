"""How well each model predicts, in sample and on left-out regions, and which models differ from the best."""

from __future__ import annotations

from math import nan

import numpy as np
import pandas as pd

from wanbench.methods.regions import dyadic
from wanbench.methods.regions.unordered_pairs import Sample, unordered_numbers
from wanbench.methods.result import t_quantile
from wanbench.methods.tcp.cross_validation import Predictions

SAME_CURVE = 1e-3
"""Two models are the same curve if no pair's fitted throughput differs by more than 0.1 %."""
BEST = "best"
TIED = "not told apart from the best"
WORSE = "worse"


def scores(predictions: list[Predictions], sample: Sample, level: float) -> pd.DataFrame:
    """One row per model, the best first; columns as `ModelComparison.scores`."""
    in_sample = np.array([each.in_sample for each in predictions])
    error = np.array([each.error for each in predictions])
    mean = error.mean(axis=1)
    same = np.abs(in_sample[:, None] - in_sample[None]).max(axis=2) < SAME_CURVE
    # Of models that are the same curve, the simplest counts as the best.
    best = min(np.flatnonzero(same[mean.argmin()]), key=lambda k: predictions[k].n_parameters)
    half = _half_widths(error, sample, level)
    difference, half_of_difference = mean - mean[best], _half_widths(error - error[best], sample, level)
    is_worse = (difference - half_of_difference > 0) & ~same[best]
    is_best = np.arange(len(mean)) == best
    names = np.array([each.name for each in predictions])
    table = pd.DataFrame(
        {
            "model": names,
            "formula": [each.formula for each in predictions],
            "fitted": [each.fitted for each in predictions],
            "n_parameters": [each.n_parameters for each in predictions],
            "error_factor": np.exp(mean),
            "low": np.exp(mean - half),
            "high": np.exp(mean + half),
            "median_factor": np.exp(np.median(error, axis=1)),
            "in_sample_factor": np.exp(np.abs(in_sample).mean(axis=1)),
            "worse_by": np.exp(difference),
            "worse_low": np.where(is_best, nan, np.exp(difference - half_of_difference)),
            "worse_high": np.where(is_best, nan, np.exp(difference + half_of_difference)),
            "verdict": np.where(is_best, BEST, np.where(is_worse, WORSE, TIED)),
            "same_curve_as": [", ".join(names[row & (names != name)]) for row, name in zip(same, names, strict=True)],
        }
    )
    return table.iloc[np.lexsort((mean, ~is_best))].reset_index(drop=True)


def _half_widths(values: np.ndarray, sample: Sample, level: float) -> np.ndarray:
    """
    Half the width of the interval of the mean over pairs, per row of values (rows, pairs).

    If both directions of a pair are rows, they are left out together.
    """
    per_pair = values.T
    total, n = per_pair.sum(axis=0), len(per_pair)
    pair = unordered_numbers(sample.first, sample.second, sample.n_regions)
    sums = dyadic.sums(per_pair, pair, pair.max() + 1)
    without_pair = (total - sums) / (n - np.bincount(pair)[:, None])
    sums = dyadic.region_sums(per_pair, sample.first, sample.second, sample.n_regions)
    n_of_region = dyadic.region_sums(np.ones(n), sample.first, sample.second, sample.n_regions)
    without_region = (total - sums) / (n - n_of_region)[:, None]
    return t_quantile(level, sample.n_regions - 1) * np.sqrt(dyadic.variance(without_region, without_pair))
