"""By what factor pairs miss a straight line on distance: how spiky one measurement is beside another."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from ...checks import check_level
from ...formatting import count
from ...stats.distance.fits import THOUSAND_KM
from ...stats.regions import dyadic
from ...stats.regions.clusters import PLACE, mapping, units
from ...stats.regions.line import ASSUMPTION, BOOTSTRAP
from ...stats.regions.unordered_pairs import (
    FEWEST_FOR_INTERVAL,
    Sample,
    left_out_of_any,
    require_regions,
    unordered,
)
from ...stats.result import Estimate, Result, html

SHORTEST_KM = 500.0
REFERENCES = "Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021"


@dataclass(frozen=True, repr=False)
class Scatter(Result):
    """
    Attributes
    ----------
    rtt, throughput : Estimate
        The factor by which a pair typically misses the line: exp of the median absolute log residual.
    ratio : Estimate
        The logarithm of the second over that of the first: above 1, throughput scatters more.
    """

    rtt: Estimate
    throughput: Estimate
    ratio: Estimate

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.rtt, self.throughput, self.ratio)

    DRAWN_BY = "survey_figures.scattered"

    def __str__(self) -> str:
        return " ".join(map(str, self.estimates))

    def _repr_html_(self) -> str:
        return html(self.estimates, "How far pairs lie from the line on distance")


def scatter(
    pairs: pd.DataFrame,
    *,
    min_distance_km: float = SHORTEST_KM,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    cluster=PLACE,
) -> Scatter:
    """
    Scatter of RTT about a line on distance, and of throughput about a line of its logarithm, as factors.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`; only unordered pairs with both values count.
    min_distance_km : float
        Nearer pairs have no part: where RTT nears zero, factors say little.
    cluster
        As for `fit_rtt`.
    """
    check_level(level)
    rtt = unordered(pairs, "rtt_ms")
    throughput = unordered(pairs, "throughput_bps", combine="geometric mean")
    both = rtt.frame.merge(
        throughput.frame[["region_a", "region_b", "value"]],
        on=["region_a", "region_b"],
        suffixes=("", "_throughput"),
    )
    whole = Sample("rtt_ms and throughput_bps", both, both.head(0))
    far = both.distance_km >= min_distance_km
    sample = Sample(
        "rtt_ms and throughput_bps", both[far].reset_index(drop=True), left_out_of_any(rtt, throughput)
    )
    both = sample.frame
    require_regions(sample, 3, "the scatter")
    x = both.distance_km.to_numpy() / THOUSAND_KM
    rtt_ms, log = both.value.to_numpy(), np.log(both.value_throughput.to_numpy())
    plain = _factors(x, rtt_ms, log, np.ones((1, len(x))))[0]
    ends, notes = np.full((2, 3), nan), sample.warnings()
    if not far.all():
        notes += (f"{count(int((~far).sum()), 'pair')} nearer than {min_distance_km:g} km left out",)
    known = mapping(whole, cluster)
    grouped = units(sample, {name: known[name] for name in sample.regions})
    notes += grouped.warnings()
    if grouped.n >= FEWEST_FOR_INTERVAL:
        weights = dyadic.region_weights(grouped.n, resamples, seed)
        drawn = _factors(x, rtt_ms, log, dyadic.pair_weights(weights, grouped.first, grouped.second))
        ends = np.column_stack([_ends(column, level) for column in drawn.T])

    def estimate(k: int, quantity: str, claim: str) -> Estimate:
        change = np.exp if k < 2 else (lambda value: value)
        return Estimate(
            quantity=quantity,
            claim=claim,
            estimate=float(change(plain[k])),
            low=float(change(ends[0, k])),
            high=float(change(ends[1, k])),
            unit="",
            n=sample.n_pairs,
            n_regions=sample.n_regions,
            n_places=grouped.n,
            method=f"median absolute log residual of a least-squares line on distance, pairs of at least "
            f"{min_distance_km:g} km; percentile interval of a {BOOTSTRAP} ({REFERENCES})",
            assumption=ASSUMPTION,
            level=level,
            warnings=notes,
        )

    return Scatter(
        estimate(0, "scatter of RTT", "A pair typically misses the line of RTT by a factor of {}"),
        estimate(
            1, "scatter of throughput", "A pair typically misses the line of log throughput by a factor of {}"
        ),
        estimate(
            2,
            "scatter of throughput over that of RTT",
            "On log scales throughput scatters {} times as much as RTT",
        ),
    )


def _ends(drawn: np.ndarray, level: float) -> np.ndarray:
    known = drawn[np.isfinite(drawn)]
    return np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else np.full(2, nan)


def _factors(x, rtt_ms, log, weights) -> np.ndarray:
    """Median absolute log residuals of both lines and their ratio, per row of weights (rows, pairs)."""
    found = np.empty((len(weights), 3))
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = weights @ x[:, None] / total
        for k, y in enumerate((rtt_ms, log)):
            middle = weights @ y[:, None] / total
            slope = (
                (weights * (x - centre))
                @ y[:, None]
                / (weights * (x - centre) ** 2).sum(axis=1, keepdims=True)
            )
            line = middle + slope * (x - centre)
            residual = np.abs(np.log(y / np.where(line > 0, line, nan)) if k == 0 else y - line)
            found[:, k] = _median(residual, weights)
        found[:, 2] = found[:, 1] / found[:, 0]
    return found


def _median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    order = np.argsort(values, axis=1)
    sorted_weights = np.take_along_axis(np.where(np.isnan(values), 0.0, weights), order, axis=1)
    below = np.cumsum(sorted_weights, axis=1)
    at = (below < below[:, -1:] / 2).sum(axis=1)
    return np.take_along_axis(np.take_along_axis(values, order, axis=1), at[:, None], axis=1)[:, 0]
