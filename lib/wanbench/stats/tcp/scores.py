"""How well each model predicts, in sample and on left-out regions, and which models differ from the best."""

from __future__ import annotations

from math import exp, nan

import numpy as np
import pandas as pd

from ..regions import dyadic
from ..regions.unordered_pairs import Sample, unordered_numbers
from .cross_validation import Predictions
from .intervals import half_width

SAME_CURVE = 1e-3
"""Two models are the same curve if no pair's fitted throughput differs by more than 0.1 %."""
BEST = "best"
TIED = "not told apart from the best"
WORSE = "worse"


def scores(
    predictions: list[Predictions], sample: Sample, level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """One row per model, the best first; columns as `ModelComparison.scores`."""
    in_sample = np.array([each.in_sample for each in predictions])
    error = np.array([each.error for each in predictions])
    mean, median = error.mean(axis=1), np.median(error, axis=1)
    same = np.abs(in_sample[:, None] - in_sample[None]).max(axis=2) < SAME_CURVE
    # Of models that are the same curve, the simplest counts as the best.
    best = min(np.flatnonzero(same[mean.argmin()]), key=lambda k: predictions[k].n_parameters)
    half = _half_widths(error, sample, level)
    half_of_difference = _half_widths(error - error[best], sample, level)
    median_low, median_high = _median_intervals(error, sample, level, resamples, seed)
    rows = []
    for k, model in enumerate(predictions):
        difference = mean[k] - mean[best]
        is_worse = difference - half_of_difference[k] > 0 and not same[k, best]
        others = [other.name for m, other in enumerate(predictions) if m != k and same[k, m]]
        rows.append(
            {
                "model": model.name,
                "formula": model.formula,
                "fitted": model.fitted,
                "n_parameters": model.n_parameters,
                "error_factor": exp(mean[k]),
                "low": exp(mean[k] - half[k]),
                "high": exp(mean[k] + half[k]),
                "median_factor": exp(median[k]),
                "median_low": exp(median_low[k]),
                "median_high": exp(median_high[k]),
                "in_sample_factor": exp(np.abs(in_sample[k]).mean()),
                "in_sample_median_factor": exp(np.median(np.abs(in_sample[k]))),
                "worse_by": exp(difference),
                "worse_low": exp(difference - half_of_difference[k]) if k != best else nan,
                "worse_high": exp(difference + half_of_difference[k]) if k != best else nan,
                "verdict": BEST if k == best else WORSE if is_worse else TIED,
                "same_curve_as": ", ".join(others),
            }
        )
    order = sorted(range(len(rows)), key=lambda k: (k != best, mean[k]))
    return pd.DataFrame(rows).iloc[order].reset_index(drop=True)


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
    return half_width(level, sample.n_regions - 1, dyadic.variance(without_region, without_pair))


def _median_intervals(error, sample: Sample, level, resamples, seed) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles over region resamples of the median error per model."""
    drawn = dyadic.region_weights(sample.n_regions, resamples, seed)
    weights = dyadic.pair_weights(drawn, sample.first, sample.second)
    weights = weights[weights.sum(axis=1) > 0]
    ends = np.empty((2, len(error)))
    for k, values in enumerate(error):
        order = np.argsort(values)
        running = np.cumsum(weights[:, order], axis=1)
        middle = (running >= running[:, -1:] / 2).argmax(axis=1)
        ends[:, k] = np.quantile(values[order][middle], [(1 - level) / 2, (1 + level) / 2])
    return ends[0], ends[1]
