"""
The lower envelope of RTT over distance: the RTT of the best paths, next to that of light in fibre.

The envelope is a line by quantile regression (Koenker & Bassett 1978), for many weightings at once. The best line goes
through two of the points: the best one through a point has a weighted quantile of the slopes to the others, which gives
the second point; repeated from there, the loss falls to its minimum. statsmodels fits one unweighted line at a time,
too slowly for thousands of resamples.
"""

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

CHUNK_CELLS = 1_000_000  # Weights held at a time, 8 MB
MAXIMUM_STEPS = 200  # Limit of the search, which ends when no line is better
SMALL = 1e-10  # Points whose standardised x differ by less have the same x up to rounding
ROUNDING = 1e-13  # A smaller relative improvement of the loss is rounding
# In standard deviations of y: moves points so that no three are collinear, too little to change a result
PERTURBATION = 1e-9
GOLDEN = 0.6180339887498949  # Multiples of the golden ratio, modulo 1, spread evenly without a pattern
LIGHT_SLOPE = THOUSAND_KM * LIGHT_RTT_MS_PER_KM
TAU = 0.05  # Share of the pairs under the envelope
FEW_BELOW = 5  # With fewer pairs below the line, single paths determine it
METHOD = (
    "quantile regression (Koenker & Bassett 1978) over unordered pairs; interval from the variance of a bootstrap over "
    "regions less twice that over pairs (Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021)"
)
ONE_SIGMA = [0.158655, 0.841345]  # Shares below and above one standard deviation of a normal distribution


def quantile_lines(x: np.ndarray, y: np.ndarray, weights: np.ndarray, tau: float) -> np.ndarray:
    """
    Find the line under which a share `tau` of the weight lies: intercept and slope (weightings, 2).

    `weights` is (weightings, points). A weighting whose points have fewer than two different x values gives NaN.
    """
    x, y, weights = (np.asarray(part, dtype=float) for part in (x, y, weights))
    step = max(1, CHUNK_CELLS // len(x))
    chunks = (weights[start : start + step] for start in range(0, len(weights), step))
    return np.concatenate([_quantile_lines(x, y, chunk, tau) for chunk in chunks])


def check_loss(x, y, weights, tau: float, line) -> np.ndarray:
    """Compute the sum of weight x check loss of lines (cases, 2): (cases,)."""
    residual = y - line[:, :1] - line[:, 1:] * x
    return (weights * residual * (tau - (residual < 0))).sum(axis=1)


def _quantile_lines(x, y, weights, tau: float) -> np.ndarray:
    mean_x, scale_x, mean_y, scale_y = x.mean(), x.std() or 1.0, y.mean(), y.std() or 1.0
    u = (x - mean_x) / scale_x
    v = (y - mean_y) / scale_y + PERTURBATION * ((np.arange(len(y)) * GOLDEN) % 1)
    usable = np.array([bool((row > 0).any()) and np.ptp(u[row > 0]) > SMALL for row in weights])
    loss, ends = np.full(len(weights), np.inf), np.zeros((2, len(weights)), dtype=int)
    pivot, active = np.argmax(weights > 0, axis=1), np.flatnonzero(usable)
    for _ in range(MAXIMUM_STEPS):
        if not len(active):
            break
        at = pivot[active]
        new, entering = _through(u, v, weights[active], tau, u[at], v[at])
        now = check_loss(u, v, weights[active], tau, new)
        better = now < loss[active] * (1 - ROUNDING)
        active = active[better]
        ends[:, active], loss[active], pivot[active] = ((at[better], entering[better]), now[better], entering[better])
    one, other = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(usable, (y[other] - y[one]) / (x[other] - x[one]), np.nan)
    return np.column_stack([y[one] - slope * x[one], slope])


def _through(u, v, weights, tau: float, at_u, at_v) -> tuple[np.ndarray, np.ndarray]:
    """Return the best line of each weighting through its pivot, and the index of its second point."""
    run, rise = u - at_u[:, None], v - at_v[:, None]
    mass = weights * np.abs(run)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(mass > 0, rise / run, np.inf)
    # A point to the left of the pivot lies above the line if the line is steeper than the slope to that point.
    target = (np.where(run > 0, tau, 1 - tau) * mass).sum(axis=1)
    order = np.argsort(slopes, axis=1)
    below = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)
    position = np.minimum((below < target[:, None] - 1e-14).sum(axis=1), mass.shape[1] - 1)
    entering = np.take_along_axis(order, position[:, None], axis=1)[:, 0]
    slope = np.take_along_axis(slopes, entering[:, None], axis=1)[:, 0]
    slope = np.where(np.isfinite(slope), slope, 0.0)
    return np.column_stack([at_v - slope * at_u, slope]), entering


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

    def figure(self) -> go.Figure:
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
        **sample.counted(grouped),
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
    ends = {"estimate": float(value), "low": float(low), "high": float(high)}
    return ends | {"naive": Interval(PAIRS_INDEPENDENT, *naive)}
