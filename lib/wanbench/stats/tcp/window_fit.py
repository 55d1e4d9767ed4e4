"""
The window-limited TCP model: throughput = min(C, 8 W / RTT).

A sender has at most W bytes unacknowledged, so it sends one window per round trip, up to the capacity C. On
log scales that is a level line and a line of slope -1, which meet at the knee RTT = 8 W / C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from math import exp, inf, isfinite, isinf, nan

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, quantity
from ..regions import coverage, dyadic, mean, skew
from ..regions.clusters import PLACE, units
from ..regions.line import ASSUMPTION, BOOTSTRAP, DYADIC, REFERENCES, SCALED_REFERENCES
from ..regions.unordered_pairs import FEWEST_FOR_INTERVAL, Sample, require_regions, unordered
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html
from . import knee

FEWEST_PER_SIDE = 3
FEWEST_FOR_MISFIT, MISFIT = 10, 1.5
FEW_BEYOND = 0.15
"""Share of the pairs beyond the knee below which W comes out 5 to 20 % too small, simulated (`validity.window`)."""
UNEVEN_SD = 0.15
"""Standard deviation of the log of places' effects on throughput: a W by receiver of twice that makes C 3 % low."""
BITS = 8
OVERFLOW = 700.0
NAIVE = "pairs taken as independent"
METHOD = "Huber's loss on log throughput over unordered pairs"
SCALED = "jackknife over regions less that over pairs by their share, from variance components"
SYMBOL = {"window": "W", "capacity": "C"}
SAID = {
    "window": ("TCP window W", "The window that limits the far pairs is {}", "bytes"),
    "capacity": ("capacity C", "The capacity that limits the near pairs is {}", "bit/s"),
    "knee": ("knee RTT", "The window limits from an RTT of {}", "ms"),
}


@dataclass(frozen=True, repr=False)
class WindowFit(Result):
    """
    The fitted model.

    Attributes
    ----------
    window : Estimate
        W in bytes.
    capacity : Estimate
        C in bit/s.
    knee_rtt : Estimate
        The RTT from which the window limits, 8 W / C, in ms.
    pairs : DataFrame
        Per unordered pair: region_a, region_b, cloud_pair, distance_km, rtt_ms, throughput_bps,
        implied_window_bytes (throughput x RTT / 8: what W would have to be if the window were the limit),
        model_throughput_bps, ratio (measured / model), limit ("window" or "capacity").
    """

    window: Estimate
    capacity: Estimate
    knee_rtt: Estimate
    pairs: pd.DataFrame
    left_out: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.window, self.capacity, self.knee_rtt)

    def throughput_bps(self, rtt_ms) -> np.ndarray:
        """What the model says at these RTTs; a limit that could not be fitted is taken as absent."""
        rtt_s = np.asarray(rtt_ms, dtype=float) / 1000
        window, capacity = self.window.estimate, self.capacity.estimate
        by_window = BITS * window / rtt_s if isfinite(window) else np.full_like(rtt_s, inf)
        return np.minimum(by_window, capacity if isfinite(capacity) else inf)

    DRAWN_BY = "window_figure.throughput_against_rtt"

    def __str__(self) -> str:
        return f"{self.window} {self.capacity}"

    def _repr_html_(self) -> str:
        limits = self.pairs.limit.value_counts()
        said = ", ".join(f"{count(int(n), 'pair')} limited by the {name}" for name, n in limits.items())
        return html(self.estimates, "Throughput = min(C, 8 W / RTT)") + f"<p>{escape(said)}.</p>"


def fit_window(
    pairs: pd.DataFrame,
    *,
    rtt_column: str = "rtt_ms",
    throughput_column: str = "throughput_bps",
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    cluster=PLACE,
) -> WindowFit:
    """
    Fit W and C to the logarithm of throughput with Huber's loss, one value per unordered pair.

    The RTT of a pair is the median of both directions, its throughput their geometric mean. The interval
    of W comes, on the log scale, from the jackknife over regions less that over pairs, as far as the scatter is a
    pair's own; its degrees of freedom from variance components (`location`). C and the
    knee rest on few pairs, and one region more or less makes them jump, so theirs are the percentiles of a
    bootstrap over regions, open at the end where resamples had no such limit. How often that of W covers in
    simulated surveys stands in `coverage` and comes from `make validity`.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    rtt_column : str
        In ms. An RTT without load misses the queue that the transfer itself fills; W is then too small by it.
    cluster
        As for `fit_rtt`.

    Raises
    ------
    ParameterError
        With fewer than 3 regions or 3 pairs that have both values.
    """
    sample = _both(pairs, rtt_column, throughput_column)
    return window_of(sample, level=level, resamples=resamples, seed=seed, cluster=cluster)


def window_of(
    sample: Sample, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0, cluster=PLACE
) -> WindowFit:
    """`fit_window` of unordered pairs that have `rtt_ms` and `throughput_bps`."""
    level = check_level(level)
    require_regions(sample, 3, "the window model")
    if sample.n_pairs < FEWEST_PER_SIDE:
        raise ParameterError(f"the window model needs at least 3 pairs; there are {sample.n_pairs}")
    x, y = np.log(sample.frame.rtt_ms.to_numpy()), np.log(sample.frame.throughput_bps.to_numpy())
    order = np.argsort(x, kind="stable")
    fit = knee.fit(x[order], y[order])
    grouped = units(sample, cluster)
    first, second = grouped.first[order], grouped.second[order]
    sides = _sides(fit, first, second)
    warnings = sample.warnings() + grouped.warnings() + _warnings(sides)
    uneven, skewed = _effects(fit, first, second, grouped)
    intervals = _intervals(fit, sides, first, second, grouped.n, level, resamples, seed)
    found = []
    for name, ends in intervals.items():
        drawn = next(each for each in ends if each.method == BOOTSTRAP)
        bounds = _bounds(name, sides, fit, (drawn.low, drawn.high))
        value = _log(name, fit.level, fit.falling)
        made = _estimate(name, value, ends, bounds, sample, level, warnings)
        found.append(replace(made, n_places=grouped.n))
    model = WindowFit(*found, sample.frame, sample.left_out).throughput_bps(sample.frame.rtt_ms)
    frame = sample.frame.assign(
        implied_window_bytes=implied_window_bytes(sample.frame.throughput_bps, sample.frame.rtt_ms),
        model_throughput_bps=model,
        ratio=sample.frame.throughput_bps / model,
        limit=np.where(x > fit.falling - fit.level, "window", "capacity"),
    )
    found = [replace(each, warnings=each.warnings + _misfit(frame)) for each in found]
    if np.isfinite(found[0].low) and found[0].low > 0:
        cautions = coverage.caution("window W", grouped.n, skewed) + _few_beyond(sides, grouped.n)
        found[0] = replace(
            found[0],
            warnings=found[0].warnings + cautions,
            assumption=found[0].assumption + coverage.harder("window W", grouped.n),
        )
    found[1] = replace(found[1], warnings=found[1].warnings + uneven)
    return WindowFit(*found, frame, sample.left_out)


def _few_beyond(sides: dict[str, tuple[int, int]], n_units: int) -> tuple[str, ...]:
    """A warning where W rests on a small part of the pairs: the fit takes in low near ones, which make it small."""
    beyond, n_pairs = sides["window"][0], sum(n for n, _ in sides.values())
    if beyond >= FEW_BEYOND * n_pairs:
        return ()
    return (
        f"W rests on {count(beyond, 'pair')} of {n_pairs:,}, those beyond the knee: simulated with so few, it comes "
        f"out 5 to 20 % too small, and {coverage.few_beyond(n_units)}",
    )


def _effects(fit: knee.Knee, first, second, grouped) -> tuple[tuple[str, ...], skew.Skew | None]:
    """A warning on C where W differs between places, and whether the effects of places beyond the knee are skewed."""
    falling = fit.x > fit.falling - fit.level
    off = (fit.y + fit.x - fit.falling)[falling]
    held = np.clip(off, -knee.HUBER * fit.scale, knee.HUBER * fit.scale)
    share, freedom = mean.share_and_freedom(held, first[falling], second[falling])
    if not isfinite(freedom):
        return (), None
    used = replace(grouped, first=first[falling], second=second[falling])
    sd = float(np.sqrt((1 - share) / 2) * held.std())
    skewed = (
        skew.skew_of_effects(off, fit.x[falling], used)
        if len({*used.first, *used.second}) == used.n
        else None
    )
    if sd < UNEVEN_SD or isinf(fit.level):
        return (), skewed
    return (
        f"places differ by a factor of {exp(sd):.2f} beyond the knee (one standard deviation): if that is their W, the "
        "knee is blurred, and C comes out 3 to 12 % too small",
    ), skewed


def _misfit(frame: pd.DataFrame) -> tuple[str, ...]:
    """A warning if some pairs of clouds lie well off the model that the others fit."""
    ratios = frame.groupby("cloud_pair").ratio.agg(["median", "size"])
    ratios = ratios[ratios["size"] >= FEWEST_FOR_MISFIT]["median"].sort_values()
    if len(ratios) < 2 or ratios.iloc[-1] / ratios.iloc[0] <= MISFIT:
        return ()
    ends = [f"{ratios.index[k]} at {quantity(ratios.iloc[k])} times the model" for k in (0, -1)]
    return (f"one W and one C do not fit all: the median pair of {' and of '.join(ends)}; fit them apart",)


def implied_window_bytes(throughput_bps, rtt_ms):
    """
    The bytes in flight that a throughput at an RTT implies: throughput x RTT / 8.

    >>> implied_window_bytes(6.5536e6, 80)
    65536.0
    """
    return throughput_bps * rtt_ms / 1000 / BITS


def _both(pairs: pd.DataFrame, rtt_column: str, throughput_column: str) -> Sample:
    """Unordered pairs that have both values."""
    rtt = unordered(pairs, rtt_column)
    throughput = unordered(pairs, throughput_column, combine="geometric mean")
    ends = ["region_a", "region_b"]
    frame = rtt.frame.rename(columns={"value": "rtt_ms"}).merge(
        throughput.frame[[*ends, "value"]].rename(columns={"value": "throughput_bps"}), on=ends
    )
    left_out = pd.concat([rtt.left_out, throughput.left_out], ignore_index=True)
    keys = ["from_region", "to_region"]
    left_out = left_out.drop_duplicates(keys, ignore_index=True)
    return Sample(f"{rtt_column} and {throughput_column}", frame, left_out)


def _sides(fit: knee.Knee, first, second) -> dict[str, tuple[int, int]]:
    """Pairs and places that W and C rest on: those on their side of the knee."""
    falling = fit.x > fit.falling - fit.level
    return {
        name: (int(side.sum()), len({*first[side], *second[side]}))
        for name, side in (("window", falling), ("capacity", ~falling))
    }


def _warnings(sides: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    said = []
    for name, (n_pairs, n_regions) in sides.items():
        what, basis = SYMBOL[name], f"{count(n_pairs, 'pair')} of {count(n_regions, 'place')}"
        if n_pairs < FEWEST_PER_SIDE:
            said.append(f"{what} is not identified: {count(n_pairs, 'pair')} on its side of the knee")
        elif n_regions < FEWEST_FOR_INTERVAL:
            said.append(f"{what} rests on {basis} only")
    return tuple(said)


def _bounds(name: str, sides, fit: knee.Knee, drawn: tuple[float, float]) -> tuple[float, float] | None:
    """What is known, on the log scale, of a number that the pairs do not determine; None if they do."""
    lacking = [each for each, (n_pairs, _) in sides.items() if n_pairs < FEWEST_PER_SIDE]
    if not lacking or name not in (*lacking, "knee"):
        return None
    if name == "capacity":
        return min(_finite(drawn[0], inf), fit.falling - fit.x[0]), inf
    if name == "window":
        return min(_finite(drawn[0], inf), fit.level + fit.x[-1]), inf
    if "capacity" in lacking:
        return -inf, max(_finite(drawn[1], -inf), fit.x[0])
    return min(_finite(drawn[0], inf), fit.x[-1]), inf


def _finite(value: float, otherwise: float) -> float:
    return value if isfinite(value) else otherwise


def _log(name: str, level, falling):
    """The logarithm of W, C or the knee from those of the two lines (bit/s, and bit/s x ms)."""
    return {"window": lambda: falling, "capacity": lambda: level, "knee": lambda: falling - level}[name]()


def _number(name: str, logarithm: float) -> float:
    """W in bytes, C in bit/s or the knee in ms from its logarithm."""
    if not logarithm < OVERFLOW:
        return logarithm
    if logarithm == -inf:
        return 0.0
    return exp(logarithm) / (BITS * 1000) if name == "window" else exp(logarithm)


def _intervals(
    fit, sides, first, second, n_regions, level, resamples, seed
) -> dict[str, tuple[Interval, ...]]:
    """Per number, on the log scale: the main interval, the naive one, and the other one by place."""
    if n_regions < FEWEST_FOR_INTERVAL:
        return {name: (Interval(SCALED), Interval(NAIVE), Interval(BOOTSTRAP)) for name in SAID}
    regions = np.arange(n_regions)[:, None]
    without = knee.refit(fit, ((first != regions) & (second != regions)).astype(float))
    single = knee.without_each(fit)
    weights = dyadic.region_weights(n_regions, resamples, seed)
    drawn = knee.refit(fit, dyadic.pair_weights(weights, first, second))
    basis = {name: n for name, (_, n) in sides.items()}
    basis["knee"] = min(basis.values())
    found = {}
    for name in SAID:
        value = _log(name, fit.level, fit.falling)
        with np.errstate(invalid="ignore"):
            left, alone, sampled = (_log(name, *each) for each in (without, single, drawn))
            half = _half(level, basis[name] - 1, dyadic.variance(left, alone))
            if name == "window":
                half = _window_half(fit, first, second, left, alone, level, half)
            naive = _half(level, len(first) - 1, dyadic.jackknife(alone))
            main = Interval(SCALED if name == "window" else DYADIC, value - half, value + half)
            naive_interval = Interval(NAIVE, value - naive, value + naive)
        other = Interval(BOOTSTRAP, *_percentiles(sampled, level))
        if name != "window" or not isfinite(half):
            main, other = other, main
        found[name] = (main, naive_interval, other)
    return found


def _half(level: float, freedom: float, variance: float) -> float:
    """Half the width of an interval."""
    return float(stats.t.ppf((1 + level) / 2, max(freedom, 1)) * np.sqrt(variance))


def _window_half(fit: knee.Knee, first, second, left, alone, level: float, otherwise: float) -> float:
    """
    Half the width of the interval of log W: the jackknife over regions, less that over pairs times the share of the
    scatter that is a pair's own, with the degrees of freedom of a mean over the same pairs.
    """
    falling = fit.x > fit.falling - fit.level
    off = np.clip((fit.y + fit.x - fit.falling)[falling], -knee.HUBER * fit.scale, knee.HUBER * fit.scale)
    share, freedom = mean.share_and_freedom(off, first[falling], second[falling])
    if not isfinite(freedom):
        return otherwise
    by_region, by_pair = dyadic.jackknife(left), dyadic.jackknife(alone)
    return _half(level, freedom, max(by_region - share * by_pair, by_pair))


def _percentiles(values: np.ndarray, level: float) -> tuple[float, float]:
    """Percentiles without interpolation, so that infinite values can be among them."""
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return nan, nan
    last = len(values) - 1
    return float(values[round(last * (1 - level) / 2)]), float(values[round(last * (1 + level) / 2)])


def _estimate(name, logarithm, intervals, bounds, sample, level, warnings) -> Estimate:
    """The Estimate of one number; `bounds` is what is known of it where it is not identified."""
    quantity, claim, unit = SAID[name]
    references = SCALED_REFERENCES if intervals[0].method == SCALED else REFERENCES
    ends = [Interval(each.method, _number(name, each.low), _number(name, each.high)) for each in intervals]
    value = _number(name, logarithm)
    if bounds:
        value, ends = nan, [Interval(BOOTSTRAP, *(_number(name, end) for end in bounds)), Interval(NAIVE)]
    return Estimate(
        quantity=quantity,
        claim=claim,
        estimate=value,
        low=ends[0].low,
        high=ends[0].high,
        unit=unit,
        n=sample.n_pairs,
        n_regions=sample.n_regions,
        method=f"{METHOD}; interval by {ends[0].method} ({references})",
        assumption=f"Throughput is the lesser of C and 8 W / RTT, with one W and one C for all. {ASSUMPTION}",
        level=level,
        naive=Interval(PAIRS_INDEPENDENT, ends[1].low, ends[1].high),
        others=tuple(ends[2:]),
        warnings=warnings,
    )
