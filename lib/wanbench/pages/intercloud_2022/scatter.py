"""By what factor pairs deviate from a straight line on distance, for throughput and RTT."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_level
from wanbench.formatting import count
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.line import ASSUMPTION, BOOTSTRAP
from wanbench.methods.regions.places import PLACE, unit_of_region, units
from wanbench.methods.regions.unordered_pairs import FEWEST_FOR_INTERVAL, Sample, require_regions
from wanbench.methods.result import Estimate, Result
from wanbench.methods.tcp.pairs_with_both import pairs_with_both

MIN_DISTANCE_KM = 500.0
"""Nearer pairs are left out: where the line of RTT is close to zero, the factor of a deviation says little."""
REFERENCES = "Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021"


@dataclass(frozen=True, repr=False)
class Scatter(Result):
    """
    The factor by which pairs deviate from their line on distance.

    Attributes
    ----------
    ratio : Estimate
        The logarithm of the factor of throughput over that of RTT: above 1, throughput scatters more.
    rtt, throughput : Estimate
        The factor by which a pair typically misses the line: exp of the median absolute log residual.
    """

    TITLE = "How far pairs lie from the line on distance"
    DRAWN_BY = "scatter_figure.factors_off_the_line"

    rtt: Estimate
    throughput: Estimate
    ratio: Estimate

    @property
    def sentence(self) -> str:
        return " ".join(estimate.sentence for estimate in self.estimates)


def scatter(
    pairs: pd.DataFrame,
    *,
    min_distance_km: float = MIN_DISTANCE_KM,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    cluster=PLACE,
) -> Scatter:
    """
    Scatter of RTT about its line on distance, and of log throughput about its own line, as factors.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`; only unordered pairs with both values count.
    min_distance_km : float
        Nearer pairs are left out and counted.
    cluster
        As for `fit_rtt`.
    """
    check_level(level)
    whole = pairs_with_both(pairs)
    far = whole.frame.distance_km >= min_distance_km
    sample = Sample(whole.column, whole.frame[far].reset_index(drop=True), whole.left_out)
    require_regions(sample, 3, "the scatter")
    frame = sample.frame
    x, rtt_ms = frame.distance_km.to_numpy() / THOUSAND_KM, frame.rtt_ms.to_numpy()
    log_throughput = np.log(frame.throughput_bps.to_numpy())
    # The near pairs that are left out still say which regions share a place.
    place_of = unit_of_region(whole, cluster)
    places = units(sample, {name: place_of[name] for name in sample.regions})
    warnings = sample.warnings()
    if not far.all():
        warnings += (f"{count(int((~far).sum()), 'pair')} nearer than {min_distance_km:g} km left out",)
    warnings += places.warnings()
    logs = _log_scatter(x, rtt_ms, log_throughput, np.ones((1, len(x))))[0]
    ends = np.full((2, 3), nan)
    if places.n >= FEWEST_FOR_INTERVAL:
        weights = dyadic.region_weights(places.n, resamples, seed)
        weights = dyadic.pair_weights(weights, places.first, places.second)
        drawn = _log_scatter(x, rtt_ms, log_throughput, weights)
        ends = np.column_stack([_percentiles(column, level) for column in drawn.T])

    def estimate(quantity: str, claim: str, value: float, low: float, high: float) -> Estimate:
        return Estimate(
            quantity=quantity,
            claim=claim,
            estimate=float(value),
            low=low,
            high=high,
            unit="",
            n=sample.n_pairs,
            n_regions=sample.n_regions,
            n_places=places.n,
            method=f"median absolute log residual of a least-squares line on distance, pairs of at least "
            f"{min_distance_km:g} km; percentile interval of a {BOOTSTRAP} ({REFERENCES})",
            assumption=ASSUMPTION,
            level=level,
            warnings=warnings,
        )

    rtt, throughput = np.exp([logs[:2], *ends[:, :2]]).T
    claim = "A pair typically misses the line of {} by a factor of {{}}"
    return Scatter(
        estimate("scatter of RTT", claim.format("RTT"), *rtt),
        estimate("scatter of throughput", claim.format("log throughput"), *throughput),
        estimate(
            "scatter of throughput over that of RTT",
            "On log scales throughput scatters {} times as much as RTT",
            logs[2],
            *ends[:, 2],
        ),
    )


def _percentiles(values: np.ndarray, level: float) -> np.ndarray:
    values = values[np.isfinite(values)]
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2]) if len(values) else np.full(2, nan)


def _log_scatter(x, rtt_ms, log_throughput, weights) -> np.ndarray:
    """
    Median absolute log residual of RTT and of throughput, and their ratio: (rows, 3) for weights (rows, pairs).
    """
    medians = np.empty((len(weights), 3))
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = x - weights @ x[:, None] / total
        squares = (weights * centred**2).sum(axis=1, keepdims=True)
        for k, y in enumerate((rtt_ms, log_throughput)):
            slope = (weights * centred) @ y[:, None] / squares
            line = weights @ y[:, None] / total + slope * centred
            # RTT is fitted by a straight line, so its residual is a ratio; throughput is a logarithm already.
            residual = np.log(y / np.where(line > 0, line, nan)) if k == 0 else y - line
            medians[:, k] = _weighted_medians(np.abs(residual), weights)
        medians[:, 2] = medians[:, 1] / medians[:, 0]
    return medians


def _weighted_medians(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The lower weighted median of each row of values (rows, n); NaN has no weight."""
    order = np.argsort(values, axis=1)
    weights = np.take_along_axis(np.where(np.isnan(values), 0.0, weights), order, axis=1)
    running = np.cumsum(weights, axis=1)
    middle = (running < running[:, -1:] / 2).sum(axis=1)[:, None]
    return np.take_along_axis(np.take_along_axis(values, order, axis=1), middle, axis=1)[:, 0]
