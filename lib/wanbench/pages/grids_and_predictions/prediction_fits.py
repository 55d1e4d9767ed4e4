"""
Fit RTT and throughput for predictions, with conformal intervals from the errors on left-out pairs.

The fits have an effect of each region (`region_effects`). They are repeated without each pair, each region, or both
regions of each pair.

A score is the distance of a left-out value from its prediction, in units of a scale that may grow with distance. For a
new pair, each of the repeated fits gives a prediction, which is moved up and down by its score; the interval runs
between quantiles of these values (jackknife+: Barber, Candès, Ramdas & Tibshirani 2021). Values that are left out
together, such as those of one region, are one unit and share its weight; the new value counts as one more unit, at
infinity (Dunn, Wasserman & Ramdas 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from wanbench.checks import LATER
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions.pairs import Sample
from wanbench.methods.tcp import knee
from wanbench.regions import light_rtt_ms

from .region_effects import Effects, design_rows, fit_effects

SMALLEST_SCALE = 0.3  # Lower limit of a scale, as a share of the typical deviation
SITUATIONS = {
    "both": "both regions have other measured pairs",
    "one": "one of the regions has no measured pair",
    "none": "neither region has a measured pair",
}
WITHOUT = {"both": "without_pairs", "one": "without_regions", "none": "without_ends"}
BASES = ("window", "distance")
MIN_REGIONS = 5  # With fewer regions, leaving one out says too little, as for intervals with regions as units
MIN_PAIRS = 6  # More than MIN_REGIONS, because both the effects of regions and the line are fitted
MIN_THROUGHPUTS = 10  # Fewer values do not determine both a window and a capacity
MIN_RTT_MS = 0.05  # Minimum RTT in the window model, whose logarithm is infinite at 0


@dataclass(frozen=True)
class Spread:
    """
    The typical size of deviations as a function of x (distance in 1000 km): (constant + slope x) times `up` for
    positive deviations, times `down` for others.
    """

    constant: float
    slope: float
    smallest: float
    up: float
    down: float

    def of(self, x: np.typing.ArrayLike) -> np.ndarray:
        """Return constant + slope x, but at least `smallest`."""
        return np.maximum(self.constant + self.slope * np.asarray(x, dtype=float), self.smallest)

    def scores(self, deviation: np.ndarray, x: np.typing.ArrayLike) -> np.ndarray:
        """Divide the size of each deviation (measured minus predicted) by the scale for its sign at x."""
        scaled = deviation / self.of(x)
        return np.where(scaled >= 0, scaled / self.up, -scaled / self.down)


def spread(deviation: np.ndarray, x: np.ndarray) -> Spread:
    """Fit the scale of deviations: a line through their absolute values over x, times a median for each sign."""
    size = np.abs(deviation)
    typical = max(float(np.mean(size)), 1e-9)
    design = np.column_stack([np.ones_like(x), x])
    # Capped, so that a few outliers do not tilt the line.
    capped = np.minimum(size, 5 * max(float(np.median(size)), 1e-9))
    middle = max(float(capped.mean()), 1e-9)
    constant, slope = np.linalg.lstsq(design, capped, rcond=None)[0]
    if slope < 0:
        constant, slope = float(capped.mean()), 0.0
    flat = Spread(float(constant), float(slope), SMALLEST_SCALE * min(typical, middle), 1.0, 1.0)
    scaled = deviation / flat.of(x)
    sides = [scaled[scaled >= 0], -scaled[scaled < 0]]
    both = max(float(np.median(np.abs(scaled))), 1e-9)
    up, down = (max(float(np.median(side)), SMALLEST_SCALE * both) if len(side) else both for side in sides)
    return Spread(flat.constant, flat.slope, flat.smallest, up, down)


def unit_weights(units: np.ndarray) -> np.ndarray:
    """Return the weight of each score, given the unit of each: a unit's scores share 1 / (number of units + 1)."""
    _, index, size = np.unique(units, return_inverse=True, return_counts=True)
    return 1.0 / size[index] / (len(size) + 1)


def upper_end(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """
    Return the weighted quantile of each row of `values` (rows, scores), rounded up to one of the values.

    It is the smallest value with at least `share` of the weight at or below it, or infinite if there is none. The
    weight of a NaN is divided among the other values of its row.

    >>> upper_end(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.25), 0.5)
    array([2.])
    >>> upper_end(np.array([[3.0, 1.0, 2.0]]), np.full(3, 0.25), 0.9)
    array([inf])
    """
    valid = ~np.isnan(values)
    weight = np.where(valid, weights, 0.0)
    kept = weight.sum(axis=1, keepdims=True)
    weight = weight * np.divide(weights.sum(), kept, out=np.zeros_like(kept), where=kept > 0)
    order = np.argsort(np.where(valid, values, inf), axis=1)
    below = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    at = (below < share - 1e-9).sum(axis=1)
    ends = np.full(len(values), inf)
    inside = at < values.shape[1]
    sorted_values = np.take_along_axis(values, order, axis=1)
    ends[inside] = sorted_values[inside, at[inside]]
    return np.where(np.isnan(ends), inf, ends)


def lower_end(values: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """Return, for each row, the largest value with at least `share` of the weight at or above it, like `upper_end`."""
    return -upper_end(-values, weights, share)


@dataclass(frozen=True)
class ObservedPairs:
    """
    Measured unordered pairs, as arrays of one value per pair.

    first, second: Indices of the pair's regions.
    log_bps: Natural logarithm of throughput in bit/s, mean of both directions; NaN if not measured.
    half_gap: Half the difference of log throughput between the two directions; 0 if only one was measured.
    """

    n_regions: int
    first: np.ndarray
    second: np.ndarray
    distance_km: np.ndarray
    rtt_ms: np.ndarray
    log_bps: np.ndarray
    half_gap: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def take(self, kept: np.ndarray) -> ObservedPairs:
        """Return the pairs that `kept` selects; regions keep their indices."""
        arrays = (self.first, self.second, self.distance_km, self.rtt_ms, self.log_bps, self.half_gap)
        return ObservedPairs(self.n_regions, *(values[kept] for values in arrays))

    @property
    def measured(self) -> np.ndarray:
        """The number of measured pairs of each region."""
        return np.bincount(np.concatenate([self.first, self.second]), minlength=self.n_regions)


@dataclass(frozen=True)
class NewPairs:
    """Pairs to predict: indices of their regions (-1 for a region without measured pairs), and their distances."""

    first: np.ndarray
    second: np.ndarray
    distance_km: np.ndarray


@dataclass(frozen=True)
class Predicted:
    """Predictions of several pairs with intervals, whose ends are infinite if there are too few units (`n_units`)."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_units: int


@dataclass(frozen=True)
class Model:
    """A fit, with effects of regions, of RTT in ms or of log throughput (minus the window model, if it is the base)."""

    observed: ObservedPairs
    fit: Effects

    @cached_property
    def without(self) -> dict[str, np.ndarray]:
        return {}

    def coefficients(self, situation: str) -> np.ndarray:
        """
        Return the coefficients of all fits that leave something out (fits, coefficients); they are computed once.

        The `situation` of a new pair decides what: if "both" its regions have measured pairs, each fit leaves out a
        pair; if "one" has, a region; if "none" has, both regions of a pair.
        """
        if situation not in self.without:
            self.without[situation] = getattr(self.fit, WITHOUT[situation])()
        return self.without[situation]

    def left_out(self, situation: str) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each score, the index of its left-out pair and of the row of `coefficients` that predicts it."""
        pair = np.arange(len(self.observed))
        if situation != "one":
            return pair, pair
        return np.concatenate([pair, pair]), np.concatenate([self.observed.first, self.observed.second])

    def rows(self, new: NewPairs) -> np.ndarray:
        """Return the design matrix of new pairs."""
        return design_rows(_fixed(new.distance_km, self.fit.n_fixed), new.first, new.second, self.observed.n_regions)


def window_log_bps(fitted: knee.Knee | None, rtt_ms: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of the fitted min(C, 8 W / RTT) in bit/s; 0 if `fitted` is None."""
    if fitted is None:
        return np.zeros_like(rtt_ms)
    return np.minimum(fitted.level, fitted.falling - np.log(np.maximum(rtt_ms, MIN_RTT_MS)))


@dataclass(frozen=True)
class Fits:
    """
    The fits of RTT and throughput on one set of observed pairs.

    rtt: Fitted to all pairs.
    throughput: None if fewer than 10 pairs have a throughput.
    window: The window model, if it is the base of `throughput`.
    on_throughput: Indices of the pairs that have a throughput.
    """

    rtt: Model
    throughput: Model = LATER
    window: knee.Knee | None = None
    on_throughput: np.ndarray = LATER

    @property
    def base(self) -> str:
        """How throughput is fitted: "window" (over RTT), "distance" (over distance), or "" (not at all)."""
        return "" if self.throughput is None else "distance" if self.window is None else "window"

    def predict(self, quantity: str, situation: str, new: NewPairs, level: float) -> Predicted:
        """
        Predict a quantity of new pairs, with intervals.

        quantity: "rtt_ms", predicted in ms, or "throughput_bps", predicted as a natural logarithm.
        situation: Whether "both", "one" or "none" of each new pair's regions have measured pairs.
        """
        model = self.rtt if quantity == "rtt_ms" else self.throughput
        pair, unit = model.left_out(situation)
        deviation, centre, value = self._deviations(quantity, situation, model, new)
        pairs = model.observed
        x = pairs.distance_km[pair] / THOUSAND_KM
        finite = np.isfinite(deviation)
        scale = spread(deviation[finite], x[finite])
        weights, units = unit_weights(unit), len(np.unique(unit))
        if situation == "none":
            # Pairs are left out with both their regions, but a new pair brings new regions, so regions are the units.
            regions = int((pairs.measured > 0).sum())
            weights, units = weights * ((units + 1) / units) * (regions / (regions + 1)), regions
        # One range predicts both directions of a pair, so both deviations count, each with half the weight.
        gap = pairs.half_gap[pair] if quantity == "throughput_bps" else np.zeros(len(deviation))
        moved = np.concatenate([deviation + gap, deviation - gap])
        scores = scale.scores(moved, np.concatenate([x, x]))
        here = scale.of(new.distance_km / THOUSAND_KM)[:, None]
        both = np.concatenate([centre, centre], axis=1)
        weights = np.concatenate([weights, weights]) / 2
        high = upper_end(both + scores * scale.up * here, weights, level)
        low = lower_end(both - scores * scale.down * here, weights, level)
        return Predicted(value, low, high, units)

    def deviations(self, quantity: str, situation: str) -> np.ndarray:
        """Return measured minus predicted of each left-out value: in ms, or of log throughput (natural logarithm)."""
        model = self.rtt if quantity == "rtt_ms" else self.throughput
        none = NewPairs(np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0))
        return self._deviations(quantity, situation, model, none)[0]

    def _deviations(
        self, quantity: str, situation: str, model: Model, new: NewPairs
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `deviations`, and the predictions of `new` by each repeated fit (pairs, scores) and the full fit."""
        pair, unit = model.left_out(situation)
        own = model.coefficients(situation)[unit]
        rows = model.rows(new)
        predicted = (model.fit.design[pair] * own).sum(axis=1)
        centre, value = rows @ own.T, rows @ model.fit.coefficients
        if quantity == "throughput_bps" and self.window is not None:
            kept = self.on_throughput
            index = kept[unit] if situation != "one" else unit
            rtt = self.rtt.coefficients(situation)[index]
            rtt_rows = self.rtt.rows(new)
            floor = np.asarray(light_rtt_ms(new.distance_km))
            own_rtt, own_floor = self.rtt.fit.design[kept][pair] * rtt, light_rtt_ms(model.observed.distance_km[pair])
            predicted = predicted + window_log_bps(self.window, np.maximum(own_rtt.sum(axis=1), own_floor))
            centre = centre + window_log_bps(self.window, np.maximum(rtt_rows @ rtt.T, floor[:, None]))
            value = value + window_log_bps(self.window, np.maximum(rtt_rows @ self.rtt.fit.coefficients, floor))
        measured = model.observed.rtt_ms if quantity == "rtt_ms" else model.observed.log_bps
        deviation = measured[pair] - predicted
        return deviation, np.where(np.isfinite(deviation), centre, np.nan), value


def fit_both(observed: ObservedPairs) -> Fits:
    """
    Fit RTT over distance, and throughput over RTT (the window model) or over distance, whichever has the smaller error
    on left-out regions.
    """
    rtt = Model(observed, _fit(observed, observed.rtt_ms, 2))
    kept = np.flatnonzero(np.isfinite(observed.log_bps))
    if len(kept) < MIN_THROUGHPUTS:
        return Fits(rtt)
    part = observed.take(kept)
    candidates = []
    for name in BASES:
        window = None
        if name == "window":
            order = np.argsort(part.rtt_ms, kind="stable")
            window = knee.fit(np.log(np.maximum(part.rtt_ms[order], MIN_RTT_MS)), part.log_bps[order])
        model = Model(part, _fit(part, part.log_bps - window_log_bps(window, part.rtt_ms), 2 if window is None else 1))
        candidates.append(Fits(rtt, model, window, kept))
    return min(candidates, key=_error)


def _error(fits: Fits) -> float:
    deviation = np.abs(fits.deviations("throughput_bps", "one"))
    return float(np.nanmean(deviation)) if np.isfinite(deviation).any() else inf


def _fit(observed: ObservedPairs, y: np.ndarray, n_fixed: int) -> Effects:
    return fit_effects(_fixed(observed.distance_km, n_fixed), observed.first, observed.second, observed.n_regions, y)


def _fixed(distance_km: np.ndarray, n_fixed: int) -> np.ndarray:
    return np.column_stack([np.ones(len(distance_km)), np.asarray(distance_km) / THOUSAND_KM])[:, :n_fixed]


def observed_pairs(rtt: Sample, throughput: Sample | None, directed: dict[tuple[str, str], float]) -> ObservedPairs:
    """Convert the pairs of the sample `rtt` to arrays; `directed` maps (from, to) to throughput in bit/s."""
    frame = rtt.frame
    log_bps = np.full(len(frame), np.nan)
    if throughput is not None:
        ends = ["region_a", "region_b"]
        log_bps = np.log(frame[ends].merge(throughput.frame[[*ends, "value"]], on=ends, how="left").value).to_numpy()
    ratios = [
        directed.get((a, b), np.nan) / directed.get((b, a), np.nan)
        for a, b in zip(frame.region_a, frame.region_b, strict=True)
    ]
    return ObservedPairs(
        rtt.n_regions,
        rtt.first,
        rtt.second,
        frame.distance_km.to_numpy(dtype=float),
        frame.value.to_numpy(dtype=float),
        log_bps,
        np.nan_to_num(np.log(np.array(ratios, dtype=float)) / 2),
    )
