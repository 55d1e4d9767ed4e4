"""How well each model predicts, in sample and on left-out regions, and which differ from the best."""

from __future__ import annotations

from math import exp, nan

import numpy as np
import pandas as pd
from scipy import stats

from ..regions import dyadic
from ..regions.unordered_pairs import Sample, unordered_numbers
from .left_out import Predicted

SAME_CURVE = 1e-3


def scores(found: list[Predicted], sample: Sample, level: float, resamples: int, seed: int) -> pd.DataFrame:
    """One row per model, the best first; columns as `ModelComparison.scores`."""
    inside = np.array([each.inside for each in found])
    error = np.array([each.error for each in found])
    mean, median = error.mean(axis=1), np.median(error, axis=1)
    same = np.abs(inside[:, None] - inside[None]).max(axis=2) < SAME_CURVE
    best = min(np.flatnonzero(same[mean.argmin()]), key=lambda k: found[k].n_numbers)
    half = _half(error, sample, level)
    apart = _half(error - error[best], sample, level)
    low, high = _median_ends(error, sample, level, resamples, seed)
    rows = []
    for k, each in enumerate(found):
        difference = mean[k] - mean[best]
        worse = difference - apart[k] > 0 and not same[k, best]
        rows.append(
            {
                "model": each.name,
                "formula": each.says,
                "fitted": each.fitted,
                "n_numbers": each.n_numbers,
                "error_factor": exp(mean[k]),
                "low": exp(mean[k] - half[k]),
                "high": exp(mean[k] + half[k]),
                "median_factor": exp(median[k]),
                "median_low": exp(low[k]),
                "median_high": exp(high[k]),
                "in_sample_factor": exp(np.abs(inside[k]).mean()),
                "in_sample_median_factor": exp(np.median(np.abs(inside[k]))),
                "worse_by": exp(difference),
                "worse_low": exp(difference - apart[k]) if k != best else nan,
                "worse_high": exp(difference + apart[k]) if k != best else nan,
                "verdict": "best" if k == best else "worse" if worse else "not told apart from the best",
                "same_curve_as": ", ".join(
                    other.name for m, other in enumerate(found) if m != k and same[k, m]
                ),
            }
        )
    order = sorted(range(len(rows)), key=lambda k: (k != best, mean[k]))
    return pd.DataFrame(rows).iloc[order].reset_index(drop=True)


def _half(values: np.ndarray, sample: Sample, level: float) -> np.ndarray:
    """
    Half the width of the interval of the mean over pairs, per row of values (rows, pairs).

    Two directions of one pair, where both are rows, are left out together.
    """
    per_pair = values.T
    total, n = per_pair.sum(axis=0), len(per_pair)
    both = unordered_numbers(sample.first, sample.second, sample.n_regions)
    size = np.bincount(both)[:, None]
    per_both = np.zeros((len(size), per_pair.shape[1]))
    np.add.at(per_both, both, per_pair)
    ones = dyadic.region_sums(np.ones(n), sample.first, sample.second, sample.n_regions)
    sums = dyadic.region_sums(per_pair, sample.first, sample.second, sample.n_regions)
    without_region = (total - sums) / (n - ones)[:, None]
    variance = dyadic.variance(without_region, (total - per_both) / (n - size))
    return stats.t.ppf((1 + level) / 2, sample.n_regions - 1) * np.sqrt(variance)


def _median_ends(error, sample: Sample, level, resamples, seed) -> tuple[np.ndarray, np.ndarray]:
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
