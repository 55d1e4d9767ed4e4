"""Predictions from one matrix, checked with what somebody else measured of the pairs that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...formatting import percent
from ...stats.distance.predict import fit_predictor
from ...stats.distance.prediction_calibration import share_interval
from ...stats.regions import dyadic
from ...stats.regions.unordered_pairs import FEWEST_FOR_INTERVAL, unordered
from ...stats.result import Estimate, Result, html

RESAMPLES = 2_000


@dataclass(frozen=True, repr=False)
class Elsewhere(Result):
    """
    Attributes
    ----------
    coverage : Estimate
        The share of the other's RTTs that lie in the prediction intervals.
    ratio : Estimate
        Measured elsewhere over predicted: the median over pairs.
    pairs : DataFrame
        Per unordered pair: region_a, region_b, distance_km, predicted_ms, low_ms, high_ms, measured_ms, covered.
    """

    coverage: Estimate
    ratio: Estimate
    pairs: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.coverage, self.ratio)

    DRAWN_BY = "other_surveys_figure.checked_elsewhere"

    def __str__(self) -> str:
        return f"{self.coverage} {self.ratio}"

    def _repr_html_(self) -> str:
        return html(self.estimates, "Predictions against what others measured of these pairs")


def check_elsewhere(pairs: pd.DataFrame, others: pd.DataFrame, *, level: float = 0.9) -> Elsewhere:
    """
    Predict the RTT of every pair that `others` measured and `pairs` did not, both regions being known to `pairs`.

    Parameters
    ----------
    pairs, others : DataFrame
        Tables `pairs`: the matrix that predicts, and the one that checks.
    level : float
        Of the prediction intervals.

    Raises
    ------
    ParameterError
        There is no such pair.
    """
    predictor = fit_predictor(pairs, level=level)
    known = {tuple(sorted(ends)) for ends in pairs[["from_region", "to_region"]].to_numpy()}
    sample = unordered(others, "rtt_ms")
    measured = sample.frame
    asked = measured[
        [
            tuple(ends) not in known and set(ends) <= set(predictor.regions)
            for ends in measured[["region_a", "region_b"]].to_numpy()
        ]
    ].reset_index(drop=True)
    if asked.empty:
        raise ParameterError("others has no pair that is missing here and whose regions are both known here")
    said = [
        predictor.predict(row.region_a, row.region_b, distance_km=row.distance_km).rtt
        for row in asked.itertuples()
    ]
    found = pd.DataFrame(
        {
            "region_a": asked.region_a,
            "region_b": asked.region_b,
            "distance_km": asked.distance_km,
            "predicted_ms": [each.estimate for each in said],
            "low_ms": [each.low for each in said],
            "high_ms": [each.high for each in said],
            "measured_ms": asked.value,
        }
    )
    found["covered"] = found.measured_ms.between(found.low_ms, found.high_ms)
    log = np.log(found.measured_ms / found.predicted_ms)
    regions = sorted({*found.region_a, *found.region_b})
    index = [np.searchsorted(regions, found[name]) for name in ("region_a", "region_b")]
    common = {
        "n": len(found),
        "n_regions": len(regions),
        "level": 0.95,
        "warnings": sample.warnings()[: len(sample.left_out) > 0],
    }
    covered = found.covered.to_numpy(dtype=float)
    share, low, high = share_interval(covered, np.ones_like(covered), *index, len(regions))
    ends = (nan, nan)
    if len(regions) >= FEWEST_FOR_INTERVAL:
        weights = dyadic.region_weights(len(regions), RESAMPLES, 0)
        ends = np.nanquantile(dyadic.weighted_median(log.to_numpy(), weights, *index), [0.025, 0.975])
    return Elsewhere(
        coverage=Estimate(
            quantity=f"coverage of {percent(level)} intervals elsewhere",
            claim=f"The {percent(level)} intervals of pairs that were not measured hold {{}} of what others "
            "measured of them",
            estimate=share,
            low=low,
            high=high,
            unit="fraction",
            method="share of pairs; interval from the dyadic jackknife over regions",
            assumption="Both measure the same thing: other tools, hosts and dates differ",
            **common,
        ),
        ratio=Estimate(
            quantity="measured elsewhere over predicted",
            claim="What others measured is {} times the prediction in the median",
            estimate=float(np.exp(log.median())),
            low=float(np.exp(ends[0])),
            high=float(np.exp(ends[1])),
            unit="",
            method="median over pairs; percentile interval of a bootstrap over regions",
            assumption="Both measure the same thing: other tools, hosts and dates differ",
            **common,
        ),
        pairs=found,
    )
