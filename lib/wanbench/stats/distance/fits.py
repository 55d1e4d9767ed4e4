"""RTT and throughput against distance: straight lines over unordered pairs, with intervals by place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log10, nan

import numpy as np
import pandas as pd

from ...regions import FIBRE_INDEX, LIGHT_KM_PER_MS
from ..regions import coverage
from ..regions.clusters import PLACE
from ..regions.line import ASSUMPTION, Line, Part, straight_line
from ..regions.unordered_pairs import Sample, unordered
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html

PER_KM = 1000.0


class OnLine(Result):
    """What both lines have in common; `sample` and `line` are those of the fit."""

    def residuals(self) -> pd.DataFrame:
        """Per unordered pair: region_a, region_b, distance_km, value, fitted, residual (log10 of throughput)."""
        frame = self.sample.frame[["region_a", "region_b", "distance_km"]]
        fitted = self.line.intercept.value + self.line.slope.value * frame.distance_km / PER_KM
        return frame.assign(value=self.line.y, fitted=fitted, residual=self.line.y - fitted)

    @property
    def r_squared(self) -> float:
        """Share of the variance over pairs that distance explains."""
        return float(self.line.pearson.value**2)

    def diagnostics(self) -> pd.Series:
        """
        What to look at before quoting the line.

        Returns
        -------
        Series
            n_pairs, n_regions, n_places; r_squared; residual_sd; morans_i and its p (do places near each other deviate
            alike); skewness and its p (of the effects of places); influential: the place without which the slope moves
            most, and slope_moves: by how many standard errors.
        """
        line, moran, skew = self.line, self.line.moran, self.line.skew
        found = {
            "n_pairs": line.n_pairs,
            "n_regions": line.n_regions,
            "n_places": line.n_places,
            "r_squared": self.r_squared,
            "residual_sd": float(self.residuals().residual.std(ddof=2)),
            "morans_i": moran.i if moran else nan,
            "morans_p": moran.p if moran else nan,
            "skewness": skew.skewness if skew else nan,
            "skewness_p": skew.p if skew else nan,
            "influential": None,
            "slope_moves": nan,
        }
        if line.left is not None:
            moved = (line.left.without_region - line.left.coefficients) @ line.scale.slope
            worst = int(np.abs(moved).argmax())
            found |= {
                "influential": line.grouped.names[worst],
                "slope_moves": float(moved[worst] / line.slope.standard_error),
            }
        return pd.Series(found)


@dataclass(frozen=True, repr=False)
class RttFit(OnLine):
    """
    RTT = intercept + slope x distance.

    Attributes
    ----------
    slope, intercept : Estimate
        ms per 1,000 km, and ms.
    pearson, spearman : Estimate
        Correlations of RTT with distance.
    speed_in_fibre, speed_in_vacuum : Estimate
        Effective speed 2 / slope as a fraction of light in fibre (index 1.468), and of light in vacuum.
    sample : Sample
        The pairs in use, and the rows left out.
    """

    slope: Estimate
    intercept: Estimate
    pearson: Estimate
    spearman: Estimate
    speed_in_fibre: Estimate
    speed_in_vacuum: Estimate
    sample: Sample
    line: Line

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (
            self.slope,
            self.intercept,
            self.speed_in_fibre,
            self.speed_in_vacuum,
            self.pearson,
            self.spearman,
        )

    def band(self, distance_km) -> pd.DataFrame:
        """The fitted line with the interval of its height: distance_km, rtt_ms, low, high."""
        band = self.line.band(np.asarray(distance_km, dtype=float) / PER_KM)
        return band.assign(x=np.asarray(distance_km, dtype=float)).rename(
            columns={"x": "distance_km", "y": "rtt_ms"}
        )

    DRAWN_BY = "fits_figure.rtt_against_distance"

    def __str__(self) -> str:
        return f"{self.slope} {self.speed_in_fibre}"

    def _repr_html_(self) -> str:
        return html(self.estimates, "RTT against distance")


@dataclass(frozen=True, repr=False)
class ThroughputFit(OnLine):
    """
    log10(throughput) = intercept + slope x distance.

    Attributes
    ----------
    slope : Estimate
        Change of log10(bit/s) per 1,000 km.
    factor : Estimate
        What 1,000 km more multiply throughput by: 10 to the slope.
    half_distance : Estimate
        The distance that halves throughput, in km: log10(2) / -slope. Its upper end is infinite where the
        slope's interval reaches zero; without an estimate where throughput does not fall with distance.
    pearson, spearman : Estimate
        Correlations of log10(throughput) with distance.
    """

    slope: Estimate
    factor: Estimate
    half_distance: Estimate
    pearson: Estimate
    spearman: Estimate
    sample: Sample
    line: Line

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.half_distance, self.factor, self.slope, self.pearson, self.spearman)

    def band(self, distance_km) -> pd.DataFrame:
        """The fitted line with the interval of its height: distance_km, throughput_bps, low, high."""
        band = self.line.band(np.asarray(distance_km, dtype=float) / PER_KM)
        band[["y", "low", "high"]] = 10 ** band[["y", "low", "high"]]
        return band.assign(x=np.asarray(distance_km, dtype=float)).rename(
            columns={"x": "distance_km", "y": "throughput_bps"}
        )

    DRAWN_BY = "fits_figure.throughput_against_distance"

    def __str__(self) -> str:
        return str(self.half_distance)

    def _repr_html_(self) -> str:
        return html(self.estimates, "log10 throughput against distance")


def fit_rtt(
    pairs: pd.DataFrame,
    *,
    column: str = "rtt_ms",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster=PLACE,
) -> RttFit:
    """
    RTT on distance by ordinary least squares, one value per unordered pair (the median of both directions).

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`: ordered pairs with `distance_km` and the column, in ms. Rows without are left out,
        counted and stated in the warnings.
    level : float
        Confidence level of all intervals.
    resamples, seed
        Of the region bootstrap beside the main interval.
    cluster
        What intervals take as one independent unit: "place" (default; regions at most 100 km apart), "region", a
        number of km, or a mapping of regions to names. See `clusters.units`.
    """
    return rtt_line(unordered(pairs, column), level=level, resamples=resamples, seed=seed, cluster=cluster)


def rtt_line(
    sample: Sample, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0, cluster=PLACE
) -> RttFit:
    """`fit_rtt` of unordered pairs whose value is an RTT in ms."""
    x, y = sample.frame.distance_km.to_numpy() / PER_KM, sample.frame.value.to_numpy()
    line = straight_line(sample, x, y, level=level, resamples=resamples, seed=seed, cluster=cluster)
    slope = _estimate(line, "slope", "RTT per distance", "RTT grows by {} of distance", "ms per 1,000 km")
    if slope.estimate < 0:
        slope = replace(slope, claim="RTT changes by {} of distance")
    return RttFit(
        slope=slope,
        intercept=_estimate(line, "intercept", "RTT at no distance", "RTT at no distance is {}", "ms"),
        pearson=_estimate(line, "pearson", "Pearson r", "RTT correlates with distance at Pearson r = {}"),
        spearman=_estimate(
            line, "spearman", "Spearman rho", "RTT correlates with distance at Spearman rho = {}"
        ),
        speed_in_fibre=_speed(slope, LIGHT_KM_PER_MS / FIBRE_INDEX, "light in fibre"),
        speed_in_vacuum=_speed(slope, LIGHT_KM_PER_MS, "light in vacuum"),
        sample=sample,
        line=line,
    )


def fit_throughput(
    pairs: pd.DataFrame,
    *,
    column: str = "throughput_bps",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster=PLACE,
) -> ThroughputFit:
    """
    log10(throughput) on distance by ordinary least squares, one value per unordered pair.

    The two directions of a pair are two measurements at one distance, over one path: they cannot say anything
    apart about the slope, and their errors go together. So their geometric mean is one observation. Where
    every pair has both directions, the line through ordered pairs is the same one.

    Parameters as in `fit_rtt`; the column is in bit/s and must be positive.
    """
    sample = unordered(pairs, column, combine="geometric mean")
    return throughput_line(sample, level=level, resamples=resamples, seed=seed, cluster=cluster)


def throughput_line(
    sample: Sample, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0, cluster=PLACE
) -> ThroughputFit:
    """`fit_throughput` of unordered pairs whose value is a throughput in bit/s."""
    x, y = sample.frame.distance_km.to_numpy() / PER_KM, np.log10(sample.frame.value.to_numpy())
    line = straight_line(sample, x, y, level=level, resamples=resamples, seed=seed, cluster=cluster)
    slope = _estimate(
        line,
        "slope",
        "log10 throughput per distance",
        "log10(bit/s) changes by {}",
        "per 1,000 km",
        judged="half-distance",
    )
    factor = slope.transformed(
        lambda b: 10**b,
        quantity="throughput factor per 1,000 km",
        claim="1,000 km more multiply throughput by {}",
        unit="",
    )
    said = "log10 throughput correlates with distance at"
    return ThroughputFit(
        slope=slope,
        factor=factor,
        half_distance=_half_distance(slope),
        pearson=_estimate(line, "pearson", "Pearson r", said + " Pearson r = {}"),
        spearman=_estimate(line, "spearman", "Spearman rho", said + " Spearman rho = {}"),
        sample=sample,
        line=line,
    )


JUDGED = {
    "slope": "slope",
    "intercept": "RTT at no distance",
    "pearson": "Pearson r",
    "spearman": "Pearson r",
}
"""Which simulated quantity says how a number of the line is covered."""


def _estimate(
    line: Line, name: str, quantity: str, claim: str, unit: str = "", judged: str | None = None
) -> Estimate:
    part: Part = getattr(line, name)
    judged = judged or JUDGED[name]
    cautions = ()
    if np.isfinite(part.interval.low):
        cautions = coverage.caution(judged, line.n_places, line.skew)
        cautions += line.moran.warnings(coverage.alike(judged, line.n_regions)) if line.moran else ()
    return Estimate(
        quantity=quantity,
        claim=claim,
        estimate=float(part.value),
        low=float(part.interval.low),
        high=float(part.interval.high),
        unit=unit,
        n=line.n_pairs,
        n_regions=line.n_regions,
        n_places=line.n_places,
        method=line.method,
        assumption=ASSUMPTION + coverage.harder(judged, line.n_places),
        level=line.level,
        naive=Interval(PAIRS_INDEPENDENT, float(part.naive.low), float(part.naive.high)),
        others=part.others,
        warnings=(*line.warnings, *cautions),
        standard_error=part.standard_error,
        ends=None if part.at is None else lambda level: (part.at(level).low, part.at(level).high),
    )


def _speed(slope: Estimate, reference_km_per_ms: float, name: str) -> Estimate:
    """2 / slope over a reference speed: a round trip covers the distance twice."""

    def fraction(ms_per_1000_km: float) -> float:
        return 2 * PER_KM / ms_per_1000_km / reference_km_per_ms if ms_per_1000_km > 0 else inf

    speed = slope.transformed(
        fraction,
        quantity=f"speed relative to {name}",
        claim=f"the effective speed along the great circle is {{}} of {name}",
        unit="fraction",
        note="2 / slope",
    )
    if slope.estimate > 0:
        return _capitalised(speed)
    warning = "RTT does not grow with distance here, so there is no effective speed"
    return replace(speed, estimate=nan, low=nan, high=nan, ends=None, warnings=(*speed.warnings, warning))


def _half_distance(slope: Estimate) -> Estimate:
    def halves(b: float) -> float:
        return PER_KM * log10(2) / -b if b < 0 else inf

    half = slope.transformed(
        halves,
        quantity="distance that halves throughput",
        claim="throughput halves every {} of distance",
        unit="km",
        note="log10(2) / -slope",
    )
    if slope.estimate < 0:
        return _capitalised(half)
    warning = "throughput does not fall with distance here, so no distance halves it"
    low = half.low if slope.low < 0 else nan
    high = half.high if slope.low < 0 else nan
    return replace(half, estimate=nan, low=low, high=high, ends=None, warnings=(*half.warnings, warning))


def _capitalised(estimate: Estimate) -> Estimate:
    return replace(estimate, claim=estimate.claim[0].upper() + estimate.claim[1:])
