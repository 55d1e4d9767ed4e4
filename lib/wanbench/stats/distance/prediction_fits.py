"""
What stands behind a prediction: the fits of RTT and throughput, and their left-out scores, in three situations.

"both": both regions of the pair have other measured pairs; "one": one of them has; "none": neither has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np

from ...regions import light_rtt_ms
from ..regions import conformal, region_effects
from ..regions.unordered_pairs import Sample
from ..tcp import knee

SITUATIONS = ("both", "one", "none")
BASES = ("window", "distance")
PER_KM = 1000.0
FEWEST_REGIONS, FEWEST_PAIRS, FEWEST_THROUGHPUTS = 5, 6, 10
LEAST_RTT_MS = 0.05


@dataclass(frozen=True)
class Observed:
    """
    Unordered pairs as arrays: `first` and `second` index regions; `log_bps` is the natural logarithm of the
    throughput (NaN: none), `half_gap` half of what that from `first` to `second` lies above that of the way back (0 for
    one direction).
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

    def take(self, kept: np.ndarray) -> Observed:
        """Some of the pairs; the regions keep their indices."""
        arrays = (self.first, self.second, self.distance_km, self.rtt_ms, self.log_bps, self.half_gap)
        return Observed(self.n_regions, *(each[kept] for each in arrays))

    @property
    def measured(self) -> np.ndarray:
        """Pairs per region."""
        return np.bincount(np.concatenate([self.first, self.second]), minlength=self.n_regions)


@dataclass(frozen=True)
class New:
    """Pairs to predict: indices of their regions (-1: one without measured pairs) and their distances."""

    first: np.ndarray
    second: np.ndarray
    distance_km: np.ndarray


@dataclass(frozen=True)
class Ends:
    """A prediction per pair with its interval; ends are infinite where there are too few units."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_units: int


@dataclass(frozen=True)
class _LeftOut:
    """Scores of one situation: pair, row of the coefficients without it, the unit that was left out."""

    pair: np.ndarray
    fit: np.ndarray
    unit: np.ndarray


@dataclass(frozen=True)
class Model:
    """A fit of RTT, or of the logarithm of throughput over a base that RTT sets, with effects of regions."""

    observed: Observed
    fit: region_effects.Effects

    @cached_property
    def without(self) -> dict[str, np.ndarray]:
        return {}

    def coefficients(self, situation: str) -> np.ndarray:
        """Coefficients of the fits that leave out what the situation leaves out, computed once."""
        if situation not in self.without:
            leave = {
                "both": self.fit.without_pairs,
                "one": self.fit.without_regions,
                "none": self.fit.without_ends,
            }
            self.without[situation] = leave[situation]()
        return self.without[situation]

    def left_out(self, situation: str) -> _LeftOut:
        n, first, second = len(self.observed), self.observed.first, self.observed.second
        pair = np.arange(n)
        if situation == "one":
            ends = np.concatenate([first, second])
            return _LeftOut(np.concatenate([pair, pair]), ends, ends)
        return _LeftOut(pair, pair, pair)

    def rows(self, new: New) -> np.ndarray:
        """The design of new pairs."""
        n_fixed = self.fit.n_fixed
        fixed = _fixed(new.distance_km, n_fixed)
        return region_effects.rows(fixed, new.first, new.second, self.observed.n_regions)


@dataclass(frozen=True)
class Window:
    """The window-limited model on natural logarithms, or no base at all (`knee` is None)."""

    knee: knee.Knee | None = None

    def of(self, rtt_ms: np.ndarray) -> np.ndarray:
        """The logarithm of min(C, 8 W / RTT); 0 without a window."""
        if self.knee is None:
            return np.zeros_like(rtt_ms)
        return np.minimum(self.knee.level, self.knee.falling - np.log(np.maximum(rtt_ms, LEAST_RTT_MS)))


@dataclass(frozen=True)
class Core:
    """
    Both fits on one set of observed pairs.

    `throughput` is None where fewer than 10 pairs have both values; `on_throughput` are those pairs.
    """

    rtt: Model
    throughput: Model | None = None
    window: Window = field(default_factory=Window)
    on_throughput: np.ndarray | None = None

    @property
    def base(self) -> str:
        """What throughput rests on: "window", "distance", or "" without throughput."""
        return "" if self.throughput is None else "distance" if self.window.knee is None else "window"

    def predict(self, quantity: str, situation: str, new: New, level: float) -> Ends:
        """Value and interval of "rtt_ms", or of "throughput_bps" as a natural logarithm, for new pairs."""
        model = self.rtt if quantity == "rtt_ms" else self.throughput
        left = model.left_out(situation)
        deviation, centre, value = self._deviations(quantity, situation, model, left, new)
        pairs = model.observed
        x = pairs.distance_km[left.pair] / PER_KM
        known = np.isfinite(deviation)
        scale = conformal.spread(deviation[known], x[known])
        weights, units = self._weights(situation, model, left)
        gap = pairs.half_gap[left.pair] if quantity == "throughput_bps" else np.zeros(len(deviation))
        moved = np.concatenate([deviation + gap, deviation - gap])
        scores = scale.scores(moved, np.concatenate([x, x]))
        here = scale.of(new.distance_km / PER_KM)[:, None]
        both = np.concatenate([centre, centre], axis=1)
        weights = np.concatenate([weights, weights]) / 2
        high = conformal.upper(both + scores * scale.up * here, weights, level)
        low = conformal.lower(both - scores * scale.down * here, weights, level)
        return Ends(value, low, high, units)

    def deviations(self, quantity: str, situation: str) -> np.ndarray:
        """Measured less predicted for each pair left out: in ms, or of the natural logarithm."""
        model = self.rtt if quantity == "rtt_ms" else self.throughput
        none = New(*(np.empty(0, dtype=int),) * 2, np.empty(0))
        return self._deviations(quantity, situation, model, model.left_out(situation), none)[0]

    def _deviations(self, quantity, situation, model: Model, left: _LeftOut, new: New):
        """What was off per score; what each score's fit says of each new pair; what the full fit says."""
        own = model.coefficients(situation)[left.fit]
        rows = model.rows(new)
        said = (model.fit.design[left.pair] * own).sum(axis=1)
        centre, value = rows @ own.T, rows @ model.fit.coefficients
        if quantity == "throughput_bps" and self.window.knee is not None:
            kept = self.on_throughput
            index = kept[left.fit] if situation != "one" else left.fit
            rtt = self.rtt.coefficients(situation)[index]
            rtt_rows = self.rtt.rows(new)
            floor = light_rtt_ms(new.distance_km)
            said = said + self.window.of(
                np.maximum(
                    (self.rtt.fit.design[kept][left.pair] * rtt).sum(axis=1),
                    light_rtt_ms(model.observed.distance_km[left.pair]),
                )
            )
            centre = centre + self.window.of(np.maximum(rtt_rows @ rtt.T, floor[:, None]))
            value = value + self.window.of(np.maximum(rtt_rows @ self.rtt.fit.coefficients, floor))
        measured = model.observed.rtt_ms if quantity == "rtt_ms" else model.observed.log_bps
        deviation = measured[left.pair] - said
        return deviation, np.where(np.isfinite(deviation), centre, np.nan), value

    @staticmethod
    def _weights(situation: str, model: Model, left: _LeftOut) -> tuple[np.ndarray, int]:
        weights = conformal.unit_weights(left.unit)
        units = len(np.unique(left.unit))
        if situation == "none":
            regions = int((model.observed.measured > 0).sum())
            weights, units = weights * ((units + 1) / units) * (regions / (regions + 1)), regions
        return weights, units


def core(observed: Observed, bases: tuple[str, ...] = BASES) -> Core:
    """
    Fit both. Throughput rests on the window model, or on none with a slope over distance: of several `bases` the
    one that errs less on pairs of a left-out region.
    """
    rtt = Model(observed, _fit(observed, observed.rtt_ms, 2))
    kept = np.flatnonzero(np.isfinite(observed.log_bps))
    if len(kept) < FEWEST_THROUGHPUTS:
        return Core(rtt)
    part = observed.take(kept)
    found = []
    for name in bases:
        base = Window(_knee(part)) if name == "window" else Window()
        y = part.log_bps - base.of(part.rtt_ms)
        model = Model(part, _fit(part, y, 2 if base.knee is None else 1))
        found.append(Core(rtt, model, base, kept))
    return min(found, key=_error) if len(found) > 1 else found[0]


def _error(one: Core) -> float:
    deviation = np.abs(one.deviations("throughput_bps", "one"))
    known = deviation[np.isfinite(deviation)]
    return float(known.mean()) if len(known) else inf


def _fit(observed: Observed, y: np.ndarray, n_fixed: int) -> region_effects.Effects:
    fixed = _fixed(observed.distance_km, n_fixed)
    return region_effects.fit(fixed, observed.first, observed.second, observed.n_regions, y)


def _fixed(distance_km: np.ndarray, n_fixed: int) -> np.ndarray:
    return np.column_stack([np.ones(len(distance_km)), np.asarray(distance_km) / PER_KM])[:, :n_fixed]


def _knee(observed: Observed) -> knee.Knee:
    order = np.argsort(observed.rtt_ms, kind="stable")
    return knee.fit(np.log(np.maximum(observed.rtt_ms[order], LEAST_RTT_MS)), observed.log_bps[order])


def observed_pairs(rtt: Sample, throughput: Sample | None, directed, names: list[str]) -> Observed:
    """Arrays of the pairs that have an RTT; `directed` maps (from, to) to a throughput in bit/s."""
    frame, index = rtt.frame, {name: k for k, name in enumerate(names)}
    ends = list(zip(frame.region_a, frame.region_b, strict=True))
    both = {}
    if throughput is not None:
        keys = zip(throughput.frame.region_a, throughput.frame.region_b, strict=True)
        both = dict(zip(keys, throughput.frame.value, strict=True))
    gaps = [np.log(directed[a, b] / directed[b, a]) / 2
            if (a, b) in directed and (b, a) in directed else 0.0 for a, b in ends]  # fmt: skip
    return Observed(
        len(names),
        np.array([index[a] for a, _ in ends]),
        np.array([index[b] for _, b in ends]),
        frame.distance_km.to_numpy(dtype=float),
        frame.value.to_numpy(dtype=float),
        np.log(np.array([both.get(pair, np.nan) for pair in ends], dtype=float)),
        np.array(gaps),
    )
