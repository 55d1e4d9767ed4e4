"""Predictions from one matrix, checked with what somebody else measured of the pairs that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
from scipy import stats

from ..errors import ParameterError
from ..wording import percent
from . import dyadic
from .estimate import Estimate, html, table
from .predict import fit_predictor
from .sample import FEWEST_FOR_INTERVAL, unordered


@dataclass(frozen=True)
class Elsewhere:
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

    def table(self) -> pd.DataFrame:
        """One row per estimate."""
        return table(self.estimates)

    def figure(self, *, note: str = ""):
        """Predicted against measured elsewhere, with the prediction intervals."""
        from ..figures.elsewhere import checked_elsewhere

        return checked_elsewhere(self, note=note)

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
    measured = unordered(others, "rtt_ms").frame
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
    common = {"n_pairs": len(found), "n_regions": len(regions), "level": 0.95}
    share, low, high = _mean(found.covered.to_numpy(dtype=float), *index, len(regions))
    middle = float(log.median())
    ends = _median_ends(log.to_numpy(), *index, len(regions))
    return Elsewhere(
        coverage=Estimate(
            quantity=f"coverage of {percent(level)} intervals elsewhere",
            claim=f"The {percent(level)} intervals of pairs that were not measured hold {{}} of what others "
            "measured of them",
            estimate=share,
            low=max(low, 0.0),
            high=min(high, 1.0),
            unit="fraction",
            method="share of pairs; interval from the dyadic jackknife over regions",
            assumption="Both measure the same thing: other tools, hosts and dates differ",
            **common,
        ),
        ratio=Estimate(
            quantity="measured elsewhere over predicted",
            claim="What others measured is {} times the prediction in the median",
            estimate=float(np.exp(middle)),
            low=float(np.exp(ends[0])),
            high=float(np.exp(ends[1])),
            unit="",
            method="median over pairs; percentile interval of a bootstrap over regions",
            assumption="Both measure the same thing: other tools, hosts and dates differ",
            **common,
        ),
        pairs=found,
    )


def _mean(values, first, second, n_regions) -> tuple[float, float, float]:
    mean = float(values.mean())
    if n_regions < FEWEST_FOR_INTERVAL:
        return mean, nan, nan
    sums = dyadic.region_sums(np.column_stack([values, np.ones(len(values))]), first, second, n_regions)
    left = np.array([values.sum(), len(values)]) - sums
    with np.errstate(invalid="ignore", divide="ignore"):
        without = left[:, 0] / left[:, 1]
    alone = (values.sum() - values) / (len(values) - 1)
    half = float(stats.t.ppf(0.975, n_regions - 1) * np.sqrt(dyadic.variance(without, alone)))
    return mean, mean - half, mean + half


def _median_ends(values, first, second, n_regions) -> tuple[float, float]:
    from .inflation import weighted_median

    if n_regions < FEWEST_FOR_INTERVAL:
        return nan, nan
    drawn = weighted_median(values, dyadic.region_weights(n_regions, 2_000, 0), first, second)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(low), float(high)
