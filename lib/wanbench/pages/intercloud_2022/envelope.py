"""The lower envelope of RTT over distance: the RTT of the best paths, next to that of light in fibre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_resamples
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count, percent
from wanbench.methods.distance.pair_points import POINTS, against_distance, basis
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.line import ASSUMPTION
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, Sample, require_regions, unordered
from wanbench.methods.regions.places import units
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, t_quantile, tails
from wanbench.regions import LIGHT_RTT_MS_PER_KM

from .quantile_line import quantile_lines

LIGHT_SLOPE = THOUSAND_KM * LIGHT_RTT_MS_PER_KM
TAU = 0.05  # Share of the pairs under the envelope
FEW_BELOW = 5  # With fewer pairs below the line, single paths determine it
METHOD = (
    "quantile regression (Koenker & Bassett 1978) over unordered pairs; interval from the variance of a bootstrap over "
    "regions less twice that over pairs (Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021)"
)
ONE_SIGMA = [0.158655, 0.841345]  # Shares below and above one standard deviation of a normal distribution


@dataclass(frozen=True, repr=False)
class Envelope(Result):
    """
    The line under which a share tau of the pairs lies: RTT = intercept + slope x distance.

    slope, intercept: ms per 1,000 km, and ms.
    ratio: Slope over that of light in fibre, 2 n / c = 9.79 ms per 1,000 km.
    resampled: Intercept and slope of each resample of regions.
    sample: The pairs in use, and the rows left out.
    """

    slope: Estimate
    intercept: Estimate
    ratio: Estimate
    resampled: np.ndarray
    sample: Sample

    TITLE = "Lower envelope of RTT"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.slope, self.ratio, self.intercept)

    @property
    def sentence(self) -> str:
        return f"{self.slope.sentence} {self.ratio.sentence}"

    def band(self, distance_km) -> pd.DataFrame:
        """Return the envelope with the percentiles of resampled envelopes: distance_km, rtt_ms, low, high."""
        distance_km = np.asarray(distance_km, dtype=float)
        y = self.intercept.estimate + self.slope.estimate * distance_km / THOUSAND_KM
        low = high = np.full_like(y, np.nan)
        if len(self.resampled):
            heights = self.resampled[:, :1] + self.resampled[:, 1:] * distance_km / THOUSAND_KM
            low, high = np.quantile(heights, tails(), axis=0)
        return pd.DataFrame({"distance_km": distance_km, "rtt_ms": y, "low": low, "high": high})

    def figure(self, *, note: str = "") -> go.Figure:
        """Draw the RTT of every pair, the line under which a share tau lies, its interval, and light in fibre."""
        frame, share = self.sample.frame, percent(TAU)
        figure, band = against_distance(frame, self.band, "rtt_ms", f"{share} envelope")
        figure.update_yaxes(title="round-trip time (ms)", rangemode="tozero")
        level = percent(LEVEL)
        shaded = f"; band: {level} of the envelopes of resampled regions" if band.low.notna().all() else ""
        return theme.finish(
            figure,
            name="rtt-lower-envelope",
            title="Lower envelope of round-trip time over distance",
            subtitle=f"{POINTS}. Line: {share} of the pairs lie under it{shaded}. Dashed: light in fibre.",
            alt=f"Scatter of round-trip time against distance for {basis(self.sample)} with its lower envelope. "
            f"{self.sentence}",
            caption=f"{self} The dashed line is the round trip of light in fibre along the great circle.",
            table=band,
            note=note,
        )


def lower_envelope(pairs: pd.DataFrame, *, resamples: int = 2_000, seed: int = 0) -> Envelope:
    """
    Fit the line over distance under which 5 % of the RTTs lie, one value per unordered pair, and compare it with light.

    Parameters
    ----------
    resamples, seed : int
        Number and seed of the bootstrap over places.

    Raises ParameterError: with fewer than 3 regions or 3 pairs, or if every pair has the same distance.
    """
    check_resamples(resamples, seed)
    sample = unordered(pairs, "rtt_ms")
    require_regions(sample, 3, "an envelope")
    x, y = sample.frame.distance_km.to_numpy() / THOUSAND_KM, sample.frame.value.to_numpy()
    n = len(x)
    if n < 3 or np.ptp(x) <= 0:
        raise ParameterError(f"an envelope needs at least 3 pairs of different distance; there are {n} pairs")
    line = quantile_lines(x, y, np.ones((1, n)), TAU)[0]
    grouped = units(sample)
    share = percent(TAU)
    notes = (*sample.warnings(), *grouped.warnings())
    if TAU * n < FEW_BELOW:
        notes += (f"{share} of {count(n, 'pair')} are {TAU * n:.1f}: the envelope depends on very few",)
    drawn = np.random.default_rng([seed, 1]).multinomial(n, np.full(n, 1 / n), resamples).astype(float)
    by_pair = _lines(x, y, drawn)
    by_region = np.empty((0, 2))
    if grouped.n >= FEWEST_FOR_INTERVAL:
        weights = dyadic.region_weights(grouped.n, resamples, seed)
        by_region = _lines(x, y, dyadic.pair_weights(weights, grouped.first, grouped.second))
    common = {
        "n": sample.n_pairs,
        "n_regions": sample.n_regions,
        "n_places": grouped.n,
        "method": f"{METHOD}, {count(len(by_region), 'resample')}, t with {grouped.n - 2} degrees of freedom",
        "assumption": f"The envelope is a straight line. {ASSUMPTION}",
        "warnings": notes,
    }
    intercept = Estimate(
        quantity=f"intercept of the {share} envelope",
        claim="The intercept of the envelope is {}",
        unit="ms",
        **_intervals(line[0], by_region[:, 0], by_pair[:, 0], grouped.n),
        **common,
    )
    slope = Estimate(
        quantity=f"slope of the {share} envelope",
        claim=f"The RTT under which {share} of the pairs lie grows by {{}} of distance",
        unit="ms per 1,000 km",
        **_intervals(line[1], by_region[:, 1], by_pair[:, 1], grouped.n),
        **common,
    )
    ratio = slope.transformed(
        lambda b: b / LIGHT_SLOPE,
        quantity="slope of the envelope over that of light in fibre",
        claim="That is {} the slope of light in fibre along the great circle",
        unit="times",
        note="slope / (2 n / c), n = 1.468",
    )
    return Envelope(slope, intercept, ratio, by_region, sample)


def _lines(x, y, weights) -> np.ndarray:
    """Compute the intercept and slope of each resample that has a line."""
    lines = quantile_lines(x, y, weights, TAU)
    return lines[np.isfinite(lines).all(axis=1)]


def _variance(values: np.ndarray) -> float:
    """The square of half the width that holds the middle 68.3 %, as a few far resamples would inflate a variance."""
    low, high = np.quantile(values, ONE_SIGMA)
    return ((high - low) / 2) ** 2


def _intervals(value: float, by_region: np.ndarray, by_pair: np.ndarray, n_places: int) -> dict:
    """Return the estimate, its interval by place, and the naive one over pairs, as fields."""
    low = high = np.nan
    if len(by_region):
        # A pair's weight is a product of the weights of its two regions, so resampling regions counts a pair's own part
        # of the variance three times. Twice the variance of resampling pairs is taken off, but the rest is never less.
        of_pairs = _variance(by_pair)
        error = np.sqrt(max(_variance(by_region) - 2 * of_pairs, of_pairs))
        half = error * t_quantile(LEVEL, max(n_places - 2, 1))
        low, high = value - half, value + half
    naive = np.quantile(by_pair, tails()) if len(by_pair) else (np.nan, np.nan)
    return {
        "estimate": float(value),
        "low": float(low),
        "high": float(high),
        "naive": Interval(PAIRS_INDEPENDENT, *naive),
    }
