"""Check predictions from one survey against another survey's measurements of pairs that the first lacks."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import number, percent
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.unordered_pairs import FEWEST_FOR_INTERVAL, Sample, unordered
from wanbench.methods.result import Estimate, Result

from .prediction import fit_predictor
from .prediction_coverage import share_interval

RESAMPLES = 2_000
ENDS = ["region_a", "region_b"]


@dataclass(frozen=True, repr=False)
class CheckedPredictions(Result):
    """
    Attributes
    ----------
    ratio : Estimate
        RTT measured by the other survey over the predicted RTT: the median over pairs.
    coverage : Estimate
        The share of the other survey's RTTs that lie in the prediction intervals.
    pairs : DataFrame
        Per unordered pair: region_a, region_b, distance_km, predicted_ms, low_ms, high_ms, measured_ms, covered.
    """

    ratio: Estimate
    coverage: Estimate
    pairs: pd.DataFrame

    TITLE = "Predictions against others' measurements of these pairs"
    DRAWN_BY = "other_surveys_figure.predicted_against_measured"

    @property
    def sentence(self) -> str:
        rows = self.pairs
        below, above = (rows.measured_ms < rows.low_ms).sum(), (rows.measured_ms > rows.high_ms).sum()
        too_high = (rows.predicted_ms > rows.measured_ms).mean()
        return (
            f"{self.ratio.sentence} {self.coverage.sentence} Of the others {below} lie below and {above} above; "
            f"{number(100 * too_high, 0)} % of the predictions are too high."
        )


def check_predictions(pairs: pd.DataFrame, others: pd.DataFrame, *, level: float = 0.9) -> CheckedPredictions:
    """
    Predict from `pairs` the RTT of every pair that only `others` has, between regions that `pairs` has.

    Parameters
    ----------
    pairs, others : DataFrame
        Tables `pairs`: of the survey that predicts, and of the survey that checks.
    level : float
        Level of the prediction intervals.

    Raises
    ------
    ParameterError
        There is no such pair.
    """
    predictor = fit_predictor(pairs, level=level)
    own = {tuple(sorted(ends)) for ends in pairs[["from_region", "to_region"]].to_numpy()}
    sample = unordered(others, "rtt_ms")
    wanted = [tuple(ends) not in own and set(ends) <= set(predictor.names) for ends in sample.frame[ENDS].to_numpy()]
    checked = sample.frame[wanted].reset_index(drop=True)
    if checked.empty:
        raise ParameterError("others has no pair that pairs lacks, between regions of pairs")
    rtts = [
        predictor.predict(row.region_a, row.region_b, distance_km=row.distance_km).rtt for row in checked.itertuples()
    ]
    checked = checked[[*ENDS, "distance_km"]].assign(
        predicted_ms=[rtt.estimate for rtt in rtts],
        low_ms=[rtt.low for rtt in rtts],
        high_ms=[rtt.high for rtt in rtts],
        measured_ms=checked.value,
    )
    checked["covered"] = checked.measured_ms.between(checked.low_ms, checked.high_ms)
    share, low, high, n_regions = share_interval(checked.covered, np.ones(len(checked)), checked[ENDS])
    log = np.log(checked.measured_ms / checked.predicted_ms)
    log_ends = (nan, nan)
    if n_regions >= FEWEST_FOR_INTERVAL:
        ends = Sample("rtt_ms", checked, sample.left_out)
        weights = dyadic.region_weights(n_regions, RESAMPLES, 0)
        medians = dyadic.weighted_median(log.to_numpy(), weights, ends.first, ends.second)
        log_ends = np.nanquantile(medians, [0.025, 0.975])
    common = {
        "n": len(checked),
        "n_regions": n_regions,
        "level": 0.95,
        "warnings": sample.warnings()[: len(sample.left_out) > 0],
        "assumption": "Both measure the same quantity, although tools, hosts and dates differ",
    }
    return CheckedPredictions(
        ratio=Estimate(
            quantity="measured by others over predicted",
            claim="The RTT measured by others is {} times the predicted one in the median",
            estimate=float(np.exp(log.median())),
            low=float(np.exp(log_ends[0])),
            high=float(np.exp(log_ends[1])),
            unit="",
            method="median over pairs; percentile interval of a bootstrap over regions",
            **common,
        ),
        coverage=Estimate(
            quantity=f"coverage of {percent(level)} intervals in another survey",
            claim="For pairs that the first survey did not measure, {} of the RTTs in the other survey lie inside "
            f"the {percent(level)} intervals predicted from the first",
            estimate=share,
            low=low,
            high=high,
            unit="fraction",
            method="share of pairs; interval from the dyadic jackknife over regions",
            **common,
        ),
        pairs=checked,
    )
