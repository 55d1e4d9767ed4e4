"""The lower envelope of RTT over distance: what the best paths take, beside what light in fibre would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, percent
from ...regions import LIGHT_RTT_MS_PER_KM
from ..regions import dyadic
from ..regions.clusters import PLACE, units
from ..regions.line import ASSUMPTION, BOOTSTRAP
from ..regions.quantile_line import quantile_lines
from ..regions.unordered_pairs import FEWEST_FOR_INTERVAL, Sample, require_regions, unordered
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html
from .fits import PER_KM

LIGHT_SLOPE = PER_KM * LIGHT_RTT_MS_PER_KM
FEWEST_UNDER = 5
BOOTSTRAPS = "bootstrap over regions less twice that over pairs"
METHOD = (
    "quantile regression (Koenker & Bassett 1978) over unordered pairs; interval from the variance of a "
    f"{BOOTSTRAPS} (Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021)"
)
CENTRAL = [0.158655, 0.841345]
LEVELLED = "the envelope is a straight line. " + ASSUMPTION


@dataclass(frozen=True, repr=False)
class Envelope(Result):
    """
    The line under which a share tau of the pairs lies: RTT = intercept + slope x distance.

    Attributes
    ----------
    slope, intercept : Estimate
        ms per 1,000 km, and ms.
    ratio : Estimate
        Slope over that of light in fibre, 2 n / c = 9.79 ms per 1,000 km.
    tau : float
    drawn : array (resamples, 2)
        Intercept and slope of each resample of regions.
    sample : Sample
        The pairs in use, and the rows left out.
    """

    slope: Estimate
    intercept: Estimate
    ratio: Estimate
    tau: float
    drawn: np.ndarray
    sample: Sample

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.slope, self.ratio, self.intercept)

    def band(self, distance_km) -> pd.DataFrame:
        """The envelope with the percentiles of the resampled ones: distance_km, rtt_ms, low, high."""
        distance_km = np.asarray(distance_km, dtype=float)
        y = self.intercept.estimate + self.slope.estimate * distance_km / PER_KM
        low = high = np.full_like(y, np.nan)
        if len(self.drawn):
            heights = self.drawn[:, :1] + self.drawn[:, 1:] * distance_km / PER_KM
            low, high = np.quantile(heights, _tails(self.slope.level), axis=0)
        return pd.DataFrame({"distance_km": distance_km, "rtt_ms": y, "low": low, "high": high})

    DRAWN_BY = "envelope_figure.lower_envelope"

    def __str__(self) -> str:
        return f"{self.slope} {self.ratio}"

    def _repr_html_(self) -> str:
        return html(self.estimates, f"Lower envelope of RTT (quantile {self.tau:g})")


def lower_envelope(
    pairs: pd.DataFrame,
    *,
    column: str = "rtt_ms",
    tau: float = 0.05,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    cluster=PLACE,
) -> Envelope:
    """
    Quantile regression of RTT on distance, one value per unordered pair, beside the round trip of light.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    tau : float
        Share of the pairs under the line, between 0 and 1.
    resamples, seed : int
        Of the bootstrap over places. 500 resamples of 46 regions take less than a second.
    cluster
        As for `fit_rtt`.

    Raises
    ------
    ParameterError
        With fewer than 3 regions or 3 pairs, or where every pair has the same distance.
    """
    level = check_level(level)
    if isinstance(tau, bool) or not isinstance(tau, (int, float)) or not 0 < tau < 1:
        raise ParameterError(f"tau={tau!r}: a share of the pairs lies between 0 and 1, such as 0.05")
    sample = unordered(pairs, column)
    require_regions(sample, 3, "an envelope")
    x, y = sample.frame.distance_km.to_numpy() / PER_KM, sample.frame.value.to_numpy()
    if len(x) < 3 or np.ptp(x) <= 0:
        raise ParameterError(
            f"an envelope needs at least 3 pairs of different distance; there are {len(x)} pairs"
        )
    intercept, slope = quantile_lines(x, y, np.ones((1, len(x))), tau)[0]
    grouped = units(sample, cluster)
    notes = [*sample.warnings(), *grouped.warnings()]
    expected = tau * len(x)
    if expected < FEWEST_UNDER:
        said = f"{percent(tau)} of {count(len(x), 'pair')} are {expected:.1f}: the envelope rests on very few"
        notes.append(said)
    drawn, apart = np.empty((0, 2)), _lines(x, y, _pair_weights(len(x), resamples, seed), tau)
    if grouped.n >= FEWEST_FOR_INTERVAL:
        weights = dyadic.region_weights(grouped.n, resamples, seed)
        drawn = _lines(x, y, dyadic.pair_weights(weights, grouped.first, grouped.second), tau)
    share = percent(tau)
    said = (
        (f"intercept of the {share} envelope", "At no distance the envelope's RTT is {}", "ms"),
        (
            f"slope of the {share} envelope",
            f"The RTT under which {share} of the pairs lie grows by {{}} of distance",
            "ms per 1,000 km",
        ),
    )
    found = [
        _estimate(value, drawn[:, k], apart[:, k], said[k], sample, grouped.n, level, tuple(notes))
        for k, value in enumerate((intercept, slope))
    ]
    ratio = found[1].transformed(
        lambda b: b / LIGHT_SLOPE,
        quantity="slope of the envelope over that of light in fibre",
        claim="That is {} the slope of light in fibre along the great circle",
        unit="times",
        note="slope / (2 n / c), n = 1.468",
    )
    return Envelope(found[1], found[0], ratio, float(tau), drawn, sample)


def _tails(level: float) -> list[float]:
    return [(1 - level) / 2, (1 + level) / 2]


def _pair_weights(n_pairs: int, resamples: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 1])
    return rng.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), resamples).astype(float)


def _lines(x, y, weights, tau: float) -> np.ndarray:
    """Intercept and slope of each resample that has a line."""
    drawn = quantile_lines(x, y, weights, tau)
    return drawn[np.isfinite(drawn).all(axis=1)]


def _variance(values: np.ndarray) -> float:
    """The square of half the width that holds the middle 68.3 %: far resamples of a quantile mean little."""
    low, high = np.quantile(values, CENTRAL)
    return ((high - low) / 2) ** 2


def _estimate(
    value, drawn, apart, said, sample: Sample, n_places: int, level: float, notes: tuple[str, ...]
) -> Estimate:
    """
    One number of the envelope with its interval.

    Resampling regions counts the part of the variance that is a pair's own three times (a pair's weight is a
    product), so twice the variance of resampling pairs is taken off, and never more than leaves that.
    """
    low = high = drawn_low = drawn_high = np.nan
    if len(drawn):
        pairs_only = _variance(apart)
        spread = np.sqrt(max(_variance(drawn) - 2 * pairs_only, pairs_only))
        half = spread * stats.t.ppf((1 + level) / 2, max(n_places - 2, 1))
        low, high = value - half, value + half
        drawn_low, drawn_high = np.quantile(drawn, _tails(level))
    naive_low, naive_high = np.quantile(apart, _tails(level)) if len(apart) else (np.nan, np.nan)
    quantity, claim, unit = said
    return Estimate(
        quantity=quantity,
        claim=claim,
        estimate=float(value),
        low=float(low),
        high=float(high),
        unit=unit,
        n=sample.n_pairs,
        n_regions=sample.n_regions,
        n_places=n_places,
        method=f"{METHOD}, {count(len(drawn), 'resample')}, t with {n_places - 2} degrees of freedom",
        assumption=LEVELLED[0].upper() + LEVELLED[1:],
        level=level,
        naive=Interval(PAIRS_INDEPENDENT, float(naive_low), float(naive_high)),
        others=(Interval(BOOTSTRAP, float(drawn_low), float(drawn_high)),),
        warnings=notes,
    )
