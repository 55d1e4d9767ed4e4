"""
Fit RTT and throughput against distance by straight lines over unordered pairs of regions.

Intervals treat places (regions at most 100 km apart), not pairs, as independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, log10, nan
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count, percent
from wanbench.methods.regions import coverage
from wanbench.methods.regions.line import ASSUMPTION, Line, straight_line
from wanbench.methods.regions.pairs import Sample, unordered
from wanbench.methods.result import Estimate, Result
from wanbench.regions import FIBRE_INDEX, LIGHT_KM_PER_MS, light_rtt_ms

from .pair_points import POINTS, against_distance, basis, distance_ends

THOUSAND_KM = 1000.0  # Slopes are per 1,000 km
# The key in `coverage.COVERAGE` of each parameter of the line
COVERAGE_OF = {"slope": "slope", "intercept": "RTT intercept", "pearson": "Pearson r", "spearman": "Pearson r"}


@dataclass(frozen=True, repr=False)
class RttFit(Result):
    """
    The line RTT = intercept + slope x distance.

    slope, intercept: In ms per 1,000 km, and in ms.
    pearson, spearman: Correlations of RTT with distance.
    speed_in_fibre, speed_in_vacuum: The effective speed, 2 / slope, as a fraction of the speed of light in fibre
        (index 1.468) and in vacuum.
    sample: The pairs in use, and the rows left out.
    """

    slope: Estimate
    intercept: Estimate
    pearson: Estimate
    spearman: Estimate
    speed_in_fibre: Estimate
    speed_in_vacuum: Estimate
    sample: Sample
    line: Line

    TITLE = "RTT against distance"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        speeds = (self.speed_in_fibre, self.speed_in_vacuum)
        return (self.slope, self.intercept, *speeds, self.pearson, self.spearman)

    @property
    def sentence(self) -> str:
        return f"{self.slope.sentence} {self.speed_in_fibre.sentence}"

    def band(self, distance_km: np.typing.ArrayLike) -> pd.DataFrame:
        """Return the fitted line and its interval at each distance in km: distance_km, rtt_ms, low, high."""
        return _band(self.line, distance_km).rename(columns={"y": "rtt_ms"})

    def figure(self, *, note: str = "") -> go.Figure:
        """
        Draw RTT against distance: a point per unordered pair, coloured by pair of clouds, the fitted line with its
        interval, and the round trip of light in fibre.

        note: Text shown below the figure.
        """
        sample, frame = self.sample, self.sample.frame
        figure = against_distance(frame, self.band, "rtt_ms", "least squares")
        top = max(light_rtt_ms(distance_ends(frame)[1]), frame.value.max()) * 1.05
        below = int((frame.value < light_rtt_ms(frame.distance_km)).sum())
        figure.update_yaxes(title="round-trip time (ms)", range=[0, top])
        return theme.finish(
            figure,
            name="rtt-against-distance",
            title=theme.headline(self.slope.sentence, "Round-trip time against distance"),
            subtitle=f"{POINTS}, median of both directions. Dashed: light in fibre. Line: least squares; band: its "
            f"{percent(self.slope.level)} interval, with places as independent units.",
            alt=f"Scatter of round-trip time in ms against distance in km for {basis(sample)}. {self.slope} "
            f"{self.pearson}",
            caption=f"Round-trip time of {basis(sample)} against the great-circle distance between the regions. "
            f"{below:,} of {count(len(frame), 'point')} lie under the dashed line, the round trip of light in fibre."
            f"{_left_out(sample)}",
            table=_numbers(frame, "rtt_ms"),
            note=note,
        )


@dataclass(frozen=True, repr=False)
class ThroughputFit(Result):
    """
    The line log10(throughput) = intercept + slope x distance.

    slope: Change of log10(bit/s) per 1,000 km.
    factor: The factor by which throughput changes per 1,000 km: 10 to the power of the slope.
    half_distance: The distance that halves throughput, in km (`half_distance`).
    pearson, spearman: Correlations of log10(throughput) with distance.
    """

    slope: Estimate
    factor: Estimate
    half_distance: Estimate
    pearson: Estimate
    spearman: Estimate
    sample: Sample
    line: Line

    TITLE = "log10 throughput against distance"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.half_distance, self.factor, self.slope, self.pearson, self.spearman)

    def band(self, distance_km: np.typing.ArrayLike) -> pd.DataFrame:
        """Return the fitted line and its interval at each distance in km: distance_km, throughput_bps, low, high."""
        band = _band(self.line, distance_km)
        band[["y", "low", "high"]] = 10 ** band[["y", "low", "high"]]
        return band.rename(columns={"y": "throughput_bps"})

    def figure(self) -> go.Figure:
        """Draw throughput (log axis) of each unordered pair against distance, with the fitted line and its interval."""
        sample, frame = self.sample, self.sample.frame
        figure = against_distance(frame, self.band, "throughput_bps", "least squares")
        figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(frame.value, "bit/s"))
        return theme.finish(
            figure,
            name="throughput-against-distance",
            title=theme.headline(self.half_distance.sentence, "Throughput against distance"),
            subtitle=f"{POINTS}, geometric mean of both directions. Vertical axis: logarithmic. Line: least squares; "
            f"band: its {percent(self.slope.level)} interval, with places as independent units.",
            alt=f"Scatter of throughput on a log axis against distance in km for {basis(sample)}. {self.half_distance} "
            f"{self.pearson}",
            caption=f"TCP throughput of {basis(sample)} against the great-circle distance between the regions."
            f"{_left_out(sample)}",
            table=_numbers(frame, "throughput_bps"),
        )


def fit_rtt(pairs: pd.DataFrame, **options: Any) -> RttFit:
    """
    Fit RTT on distance by ordinary least squares, one value per unordered pair (the median of both directions).

    Rows without `distance_km` or `rtt_ms` are left out; a caution states how many.

    pairs: Table `pairs`.
    **options: Options of `line.straight_line`: `level`; `resamples` and `seed` of the region bootstrap, which is shown
        next to the main interval; `cluster`, the unit that intervals treat as independent: "place" (regions at most
        100 km apart), "region", a number of km, or a mapping of regions to names (`places.units`).
    """
    return rtt_line(unordered(pairs, "rtt_ms"), **options)


def rtt_line(sample: Sample, **options: Any) -> RttFit:
    """Fit as `fit_rtt` does, but to a sample whose values are RTTs in ms."""
    line = straight_line(sample, sample.frame.distance_km / THOUSAND_KM, sample.frame.value, **options)
    slope = _estimate(line, "slope", "RTT per distance", "RTT grows by {} of distance", "ms per 1,000 km")
    if slope.estimate < 0:
        slope = replace(slope, claim="RTT changes by {} of distance")
    correlates = "RTT correlates with distance at"
    return RttFit(
        slope=slope,
        intercept=_estimate(line, "intercept", "RTT intercept", "The RTT intercept is {}", "ms"),
        pearson=_estimate(line, "pearson", "Pearson r", f"{correlates} Pearson r = {{}}"),
        spearman=_estimate(line, "spearman", "Spearman rho", f"{correlates} Spearman rho = {{}}"),
        speed_in_fibre=_speed(slope, LIGHT_KM_PER_MS / FIBRE_INDEX, "light in fibre"),
        speed_in_vacuum=_speed(slope, LIGHT_KM_PER_MS, "light in vacuum"),
        sample=sample,
        line=line,
    )


def fit_throughput(pairs: pd.DataFrame, **options: Any) -> ThroughputFit:
    """
    Fit log10(throughput) on distance by ordinary least squares, one value per unordered pair.

    The value of a pair is the geometric mean of both directions, because these share distance and path, so that their
    errors are correlated. If every pair has both directions, the line through ordered pairs is the same. The options
    are those of `fit_rtt`.
    """
    return throughput_line(unordered(pairs, "throughput_bps", combine="geometric mean"), **options)


def throughput_line(sample: Sample, **options: Any) -> ThroughputFit:
    """Fit as `fit_throughput` does, but to a sample whose values are throughputs in bit/s."""
    x, y = sample.frame.distance_km / THOUSAND_KM, np.log10(sample.frame.value)
    line = straight_line(sample, x, y, **options)
    quantity, claim = "log10 throughput per distance", "log10(bit/s) changes by {}"
    slope = _estimate(line, "slope", quantity, claim, "per 1,000 km", coverage_of="half-distance")
    correlates = "log10 throughput correlates with distance at"
    return ThroughputFit(
        slope=slope,
        factor=slope.transformed(
            lambda b: 10**b,
            quantity="throughput factor per 1,000 km",
            claim="Each further 1,000 km multiplies throughput by {}",
            unit="",
        ),
        half_distance=half_distance(slope),
        pearson=_estimate(line, "pearson", "Pearson r", f"{correlates} Pearson r = {{}}"),
        spearman=_estimate(line, "spearman", "Spearman rho", f"{correlates} Spearman rho = {{}}"),
        sample=sample,
        line=line,
    )


def half_distance(slope: Estimate) -> Estimate:
    """
    Compute the distance that halves throughput, in km: log10(2) / -slope.

    The upper end of its interval is infinite if the slope's interval reaches zero. If the slope is not negative, the
    estimate is NaN, and it has an interval only if the slope's interval includes negative slopes.

    slope: Change of log10 throughput per 1,000 km.
    """
    half = slope.transformed(
        lambda b: THOUSAND_KM * log10(2) / -b if b < 0 else inf,
        quantity="distance that halves throughput",
        claim="Throughput halves every {} of distance",
        unit="km",
        note="log10(2) / -slope",
    )
    if slope.estimate < 0:
        return half
    caution = "throughput does not fall with distance here, so no distance halves it"
    low, high = (half.low, half.high) if slope.low < 0 else (nan, nan)
    return replace(half, estimate=nan, low=low, high=high, warnings=(*half.warnings, caution))


def _estimate(
    line: Line, name: str, quantity: str, claim: str, unit: str = "", coverage_of: str | None = None
) -> Estimate:
    part = getattr(line, name)
    coverage_of = coverage_of or COVERAGE_OF[name]
    cautions = ()
    if isfinite(part.interval.low):
        cautions = coverage.caution(coverage_of, line.n_places, line.skew)
        if line.moran and line.moran.significant:
            cautions += (*line.moran.warnings, *coverage.caution_if_correlated(coverage_of, line.n_regions))
    return part.estimate(
        quantity=quantity,
        claim=claim,
        unit=unit,
        n=line.n_pairs,
        n_regions=line.n_regions,
        n_places=line.n_places,
        method=line.method,
        assumption=ASSUMPTION + coverage.lower_coverage(coverage_of, line.n_places),
        level=line.level,
        others=part.others,
        warnings=(*line.warnings, *cautions),
        standard_error=part.standard_error,
    )


def _speed(slope: Estimate, reference_km_per_ms: float, name: str) -> Estimate:
    """Compute the effective speed, 2 / slope (a round trip covers the distance twice), as a fraction of a reference."""
    speed = slope.transformed(
        lambda b: 2 * THOUSAND_KM / b / reference_km_per_ms if b > 0 else inf,
        quantity=f"speed relative to {name}",
        claim=f"The effective speed along the great circle is {{}} of {name}",
        unit="fraction",
        note="2 / slope",
    )
    if slope.estimate > 0:
        return speed
    caution = "RTT does not grow with distance here, so there is no effective speed"
    return replace(speed, estimate=nan, low=nan, high=nan, warnings=(*speed.warnings, caution))


def _band(line: Line, distance_km: np.typing.ArrayLike) -> pd.DataFrame:
    """Return the line and its interval at each distance: distance_km, y, low, high."""
    distance_km = np.asarray(distance_km, dtype=float)
    band = line.band(distance_km / THOUSAND_KM)
    return band.assign(x=distance_km).rename(columns={"x": "distance_km"})


def _numbers(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    kept = ["region_a", "region_b", "cloud_pair", "distance_km", "light_rtt_ms", "value", "n_directions"]
    return frame[[name for name in kept if name in frame]].rename(columns={"value": column})


def _left_out(sample: Sample) -> str:
    if not len(sample.left_out):
        return ""
    first = sample.warnings()[0]
    return f" {first[0].upper()}{first[1:]}."
