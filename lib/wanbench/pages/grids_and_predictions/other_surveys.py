"""Check RTTs that were predicted from one survey against the RTTs that another survey measured."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import REFERENCE, interval_points
from wanbench.formatting import number, percent
from wanbench.methods.distance.pair_points import pair_labels
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, Sample, unordered
from wanbench.methods.result import Estimate, Result, exact_binomial

from .prediction import fit_predictor

RESAMPLES = 2_000
ENDS = ["region_a", "region_b"]


@dataclass(frozen=True, repr=False)
class CheckedPredictions(Result):
    """
    Predictions from one survey, checked against another survey's RTTs.

    ratio: The median over pairs of measured over predicted RTT.
    coverage: The share of measured RTTs that lie inside their prediction intervals.
    pairs: Per unordered pair: region_a, region_b, distance_km, predicted_ms, low_ms, high_ms, measured_ms, covered.
    """

    ratio: Estimate
    coverage: Estimate
    pairs: pd.DataFrame

    TITLE = "Predicted RTTs against RTTs in another survey"

    @property
    def sentence(self) -> str:
        rows = self.pairs
        below, above = (rows.measured_ms < rows.low_ms).sum(), (rows.measured_ms > rows.high_ms).sum()
        too_high = (rows.predicted_ms > rows.measured_ms).mean()
        return (
            f"{self.ratio.sentence} {self.coverage.sentence} Of the RTTs outside their interval, {below} lie below "
            f"and {above} above; {number(100 * too_high, 0)} % of the predictions are too high."
        )

    def figure(self) -> go.Figure:
        """Draw predicted RTTs with their intervals against the measured RTTs."""
        rows = self.pairs
        figure = go.Figure()
        for covered, label, colour in ((True, "inside the interval", theme.WITHIN), (False, "outside", theme.OUTSIDE)):
            part = rows[rows.covered == covered]
            interval_points(
                figure,
                *(part[f"{name}_ms"] for name in ("measured", "predicted", "low", "high")),
                vertical=True,
                marker={"color": colour, "size": 7},
                bar={"thickness": 1, "width": 0},
                name=label,
                text=pair_labels(part),
                hovertemplate="%{text}<br>measured %{x:.0f} ms, predicted %{y:.0f} ms<extra></extra>",
            )
        ends = [0, float(rows[["measured_ms", "predicted_ms"]].to_numpy().max()) * 1.05]
        figure.add_scatter(x=ends, y=ends, mode="lines", line=REFERENCE, name="equal", hoverinfo="skip")
        figure.update_xaxes(title="measured in the other survey (ms)", rangemode="tozero")
        figure.update_yaxes(title="predicted (ms)", rangemode="tozero")
        return theme.finish(
            figure,
            name="predictions-elsewhere",
            title=f"In another survey RTTs are {self.ratio.formatted} times the predicted RTTs",
            subtitle="One point per pair that the first survey lacks; bars: prediction intervals.",
            alt=f"Predicted against measured round-trip times. {self.sentence}",
            caption=str(self),
            table=rows,
        )


def share_interval(hits: pd.Series, ends: pd.DataFrame) -> tuple[float, float, float, int]:
    """
    Return the share of unordered pairs with a hit, both ends of its 95 % interval, and the number of regions.

    hits: True or False per pair.
    ends: The two regions of each pair, in two columns.

    The interval is from the jackknife over regions. At 0 and 1 this has no width, so the interval is Clopper and
    Pearson's with the number of regions as n. The ends are NaN with fewer than `FEWEST_FOR_INTERVAL` regions.
    """
    hits = hits.to_numpy(dtype=float)
    codes, regions = pd.factorize(ends.to_numpy().ravel(), sort=True)
    n_regions = len(regions)
    if n_regions < FEWEST_FOR_INTERVAL:
        return float(hits.mean()), nan, nan, n_regions
    first, second = codes.reshape(-1, 2).T
    share, half = dyadic.ratio(hits, np.ones(len(hits)), first, second, n_regions, 0.95)
    if share in (0.0, 1.0):
        return share, *exact_binomial(int(share) * n_regions, n_regions, 0.95), n_regions
    return float(share), float(max(share - half, 0.0)), float(min(share + half, 1.0)), n_regions


def check_predictions(pairs: pd.DataFrame, others: pd.DataFrame, *, level: float = 0.9) -> CheckedPredictions:
    """
    Predict the RTTs of one survey (`others`) from another survey (`pairs`), and compare them with the measured RTTs.

    The pairs checked are those that only `others` has, between regions that `pairs` has. `level` is the level of the
    prediction intervals. Raises ParameterError: there is no such pair.
    """
    predictor = fit_predictor(pairs, level=level)
    own = {tuple(sorted(ends)) for ends in pairs[["from_region", "to_region"]].to_numpy()}
    sample = unordered(others, "rtt_ms")
    wanted = [
        tuple(ends) not in own and set(ends) <= set(predictor.sample.regions) for ends in sample.frame[ENDS].to_numpy()
    ]
    checked = sample.frame[wanted].reset_index(drop=True)
    if checked.empty:
        raise ParameterError("others has no pair that is not in pairs, between regions of pairs")
    rows = checked[[*ENDS, "distance_km"]].itertuples(index=False)
    rtts = [predictor.predict(a, b, distance_km=distance_km).rtt for a, b, distance_km in rows]
    predicted = [(rtt.estimate, rtt.low, rtt.high) for rtt in rtts]
    measured_ms, checked = checked.value, checked[[*ENDS, "distance_km"]]
    checked[["predicted_ms", "low_ms", "high_ms"]] = predicted
    checked["measured_ms"] = measured_ms
    checked["covered"] = checked.measured_ms.between(checked.low_ms, checked.high_ms)
    *share, n_regions = share_interval(checked.covered, checked[ENDS])
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
        "assumption": "Both surveys measure the same quantity, although tools, hosts and dates differ",
    }
    return CheckedPredictions(
        ratio=Estimate(
            "RTT in another survey over predicted RTT",
            "For the median pair, the RTT in the other survey is {} times the predicted RTT",
            *np.exp([log.median(), *log_ends]).tolist(),
            unit="",
            method="median over pairs; percentile interval of a bootstrap over regions",
            **common,
        ),
        coverage=Estimate(
            f"coverage of {percent(level)} intervals in another survey",
            "For pairs that the first survey did not measure, {} of the RTTs in the other survey lie inside "
            f"the {percent(level)} intervals predicted from the first",
            *share,
            unit="fraction",
            method="share of pairs; interval from the dyadic jackknife over regions",
            **common,
        ),
        pairs=checked,
    )
