"""
Fit the window-limited TCP model: throughput = min(C, 8 W / RTT).

A sender has at most W unacknowledged bytes, so it sends one window per round trip, up to the capacity C. On log scales
this is a horizontal line and a line of slope -1, which meet at the knee: RTT = 8 W / C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, isfinite, isinf, nan
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from wanbench.checks import check_level, check_number
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count, percent, quantity
from wanbench.methods.distance.pair_points import POINTS, add_points
from wanbench.methods.regions import coverage, dyadic, jackknife
from wanbench.methods.regions.dyadic import touches
from wanbench.methods.regions.line import ASSUMPTION, BOOTSTRAP, DYADIC, REFERENCES, SCALED_REFERENCES
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, Sample, left_out_of_any, require_regions, unordered
from wanbench.methods.regions.places import PLACE, Cluster, Skew, Units, moran, skew_of_effects, units
from wanbench.methods.result import PAIRS_INDEPENDENT, Estimate, Fields, Interval, Result, t_quantile, tails

from . import knee
from .models import BITS, window_limited_bps

# With fewer pairs on one side of the knee, that side's limit is not identified, as two pairs may both be outliers
MIN_PER_SIDE = 3
# The median of a pair of clouds is compared with the model from this many pairs on; with fewer, outliers decide
MIN_FOR_MISFIT = 10
# If the median ratios of measured to modelled throughput of two pairs of clouds differ by more than this factor, one W
# and one C do not fit all pairs
MISFIT = 1.5
# If a smaller share of the pairs lies beyond the knee, W is 5 to 20 % too small in simulation (`validity.window`)
FEW_BEYOND = 0.15
# A caution is given if the p-value of Moran's I of residuals is below this: 5 false alarms in 100 surveys
CORRELATED_P = 0.05
# Standard deviation of the log of places' effects on throughput from which a caution is given. If W varies between
# receivers with twice this standard deviation, C is 3 % too low
UNEVEN_SD = 0.15
MAX_LOGARITHM = 700.0  # Logarithms from here on are infinite: exp has no float beyond 709
NAIVE = "pairs taken as independent"
METHOD = "Huber's loss on log throughput over unordered pairs"
SCALED = "jackknife over regions minus a share of that over pairs, the share from variance components"
NAMES = {
    "window": ("TCP window W", "The window that limits the far pairs is {}", "bytes"),
    "capacity": ("capacity C", "The capacity that limits the near pairs is {}", "bit/s"),
    "knee": ("knee RTT", "The window is the limit from an RTT of {} on", "ms"),
}
ENDS = ["region_a", "region_b"]
COLUMNS = [*ENDS, "cloud_pair", "distance_km", "rtt_ms", "throughput_bps"]
CURVE_POINTS = 200  # Enough that the bend at the knee looks sharp on a page 1,000 pixels wide


def pairs_with_both(pairs: pd.DataFrame, *, ordered: bool = False) -> Sample:
    """
    Return the pairs that have both `rtt_ms` and `throughput_bps`, with the columns `COLUMNS`.

    The RTT is the median of both directions.

    pairs: Table `pairs`.
    ordered: Whether to return a row per direction, with region_a the sender; else the throughput is the geometric mean
        of both directions.
    """
    rtt = unordered(pairs, "rtt_ms")
    throughput = unordered(pairs, "throughput_bps", combine="geometric mean")
    left_out = left_out_of_any(rtt, throughput)
    frame = throughput.frame
    if ordered:
        # One direction at a time, so that `unordered` combines only repeated rows of that direction.
        ascends = pairs.from_region < pairs.to_region
        directions = [
            unordered(part, "throughput_bps", combine="geometric mean").frame.assign(reverse=reverse)
            for part, reverse in ((pairs[ascends], False), (pairs[~ascends], True))
        ]
        frame = pd.concat(directions, ignore_index=True)
    rtts = rtt.frame[[*ENDS, "value"]].rename(columns={"value": "rtt_ms"})
    frame = frame.rename(columns={"value": "throughput_bps"}).merge(rtts, on=ENDS)
    if ordered:
        reverse = frame.reverse.to_numpy(dtype=bool)[:, None]
        frame[ENDS] = np.where(reverse, frame[ENDS[::-1]].to_numpy(), frame[ENDS].to_numpy())
    return Sample("rtt_ms and throughput_bps", frame[COLUMNS], left_out)


@dataclass(frozen=True, repr=False)
class WindowFit(Result):
    """
    The fitted window-limited model.

    window: W in bytes.
    capacity: C in bit/s.
    knee_rtt: The RTT from which the window limits, 8 W / C, in ms.
    pairs: Per unordered pair: region_a, region_b, cloud_pair, distance_km, rtt_ms, throughput_bps, implied_window_bytes
        (throughput x RTT / 8: W if the window were the limit), ratio (measured over model), limit ("window" or
        "capacity").
    """

    TITLE = "Throughput = min(C, 8 W / RTT)"

    window: Estimate
    capacity: Estimate
    knee_rtt: Estimate
    pairs: pd.DataFrame

    @property
    def limits(self) -> str:
        """Return, as text, the number of pairs that each limit applies to: "the window limits 12 pairs and ..."."""
        n_pairs = self.pairs.limit.value_counts()
        return " and ".join(f"the {name} limits {count(int(n), 'pair')}" for name, n in n_pairs.items())

    @property
    def sentence(self) -> str:
        return f"{self.window.sentence} {self.capacity.sentence} In this fit {self.limits}."

    def throughput_bps(self, rtt_ms: ArrayLike) -> np.ndarray:
        """Return the model's throughput in bit/s at some RTTs; a limit that could not be fitted is ignored."""
        limits = (self.window.estimate, self.capacity.estimate)
        window, capacity = (limit if isfinite(limit) else inf for limit in limits)
        return window_limited_bps(window, rtt_ms, capacity)

    def over_buffer(self, buffer_bytes: float) -> Estimate:
        """Return the ratio of the fitted window to the socket buffer that a program requested."""
        check_number("buffer_bytes", buffer_bytes, 0, above=True)
        return self.window.transformed(
            lambda window: window / buffer_bytes,
            quantity="TCP window W over the requested buffer",
            claim=f"The window is {{}} times the buffer of {quantity(buffer_bytes, 'bytes')} that was requested",
            unit="",
        )

    def figure(self) -> go.Figure:
        """Draw throughput against RTT on log axes, with the fitted min(C, 8 W / RTT) and its two limits."""
        frame = self.pairs
        rtt = np.geomspace(frame.rtt_ms.min() / 1.1, frame.rtt_ms.max() * 1.1, CURVE_POINTS)
        model = self.throughput_bps(rtt)
        figure = go.Figure()
        rtt_and_throughput(figure, frame, model)
        window, capacity = self.window.estimate, self.capacity.estimate
        for name, dash, limit, y in (
            ("C", "dot", capacity, np.full_like(rtt, capacity)),
            ("8 W / RTT", "dash", window, 8000 * window / rtt),
        ):
            if np.isfinite(limit):
                add_curve(figure, rtt, y, name, {"color": theme.LIGHT, "width": 1.5, "dash": dash})
        add_curve(figure, rtt, model, "min(C, 8 W / RTT)")
        level = percent(self.window.level)
        fitted = f"{_label('C', self.capacity, level)}; {_label('W', self.window, level)}"
        return theme.finish(
            figure,
            name="throughput-against-rtt",
            title=theme.headline(self.window.sentence, "Throughput against round-trip time"),
            subtitle=f"{POINTS}. Line: fitted min(C, 8 W / RTT). Both axes: logarithmic. {fitted}.",
            alt=f"Scatter of throughput against round-trip time on log axes for {count(len(frame), 'pair')}. {self}",
            caption="TCP throughput against round-trip time with the window-limited model: up to the knee the "
            f"capacity C limits, beyond it one window W per round trip ({self.limits}).",
            table=frame,
        )


def fit_window(pairs: pd.DataFrame, **options: Any) -> WindowFit:
    """
    Fit W and C to the logarithm of throughput with Huber's loss, one value per unordered pair.

    The variance of log W is the jackknife over regions, less the jackknife over pairs times the share of the scatter
    that is specific to single pairs. This share and the degrees of freedom come from variance components. C and the
    knee change abruptly with a single region, so their intervals are percentiles of a bootstrap over regions. An end is
    infinite if the resamples at that percentile have no such limit. RTTs that were measured without load lack the queue
    that a transfer causes; W is then too small.

    pairs: Table `pairs`.
    **options: `level`, `resamples`, `seed` and `cluster`, as in `straight_lines.fit_rtt`.

    Raises ParameterError: fewer than 3 regions or 3 pairs have both values.
    """
    return window_of(pairs_with_both(pairs), **options)


def window_of(
    sample: Sample, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0, cluster: Cluster = PLACE
) -> WindowFit:
    """Fit as `fit_window` does, but to a sample of `pairs_with_both`."""
    level = check_level(level)
    require_regions(sample, 3, "the window model")
    if sample.n_pairs < MIN_PER_SIDE:
        raise ParameterError(f"the window model needs at least {MIN_PER_SIDE} pairs; there are {sample.n_pairs}")
    frame = sample.frame
    x, y = np.log(frame.rtt_ms.to_numpy()), np.log(frame.throughput_bps.to_numpy())
    order = np.argsort(x, kind="stable")
    fit = knee.fit(x[order], y[order])
    places = units(sample, cluster)
    places = replace(places, first=places.first[order], second=places.second[order])
    sides = _sides(fit, places)
    intervals = _intervals(fit, sides, places, level, resamples, seed)
    ends, values = {}, {}
    for name, of_name in intervals.items():
        bounds = _bounds(name, sides, fit, next(interval for interval in of_name if interval.method == BOOTSTRAP))
        if bounds:  # not identified: the interval says how small or large it is at least
            of_name = (Interval(BOOTSTRAP, *bounds), Interval(NAIVE))
        ends[name] = [
            Interval(interval.method, _in_unit(name, interval.low), _in_unit(name, interval.high))
            for interval in of_name
        ]
        values[name] = nan if bounds else _in_unit(name, _logarithm(name, fit.level, fit.falling))
    window, capacity = (values[name] if isfinite(values[name]) else inf for name in ("window", "capacity"))
    frame = frame.assign(
        implied_window_bytes=frame.throughput_bps * frame.rtt_ms / 1000 / BITS,
        ratio=frame.throughput_bps / window_limited_bps(window, frame.rtt_ms, capacity),
        limit=np.where(x > fit.falling - fit.level, "window", "capacity"),
    )
    uneven, skewed = _effects(fit, places)
    correlation = moran(fit.clipped(fit.residual), frame.distance_km.to_numpy()[order], places)
    warnings = sample.warnings() + places.warnings() + _too_few(sides) + _misfit(frame)
    of_window, assumption = (), ""
    if 0 < ends["window"][0].low < inf:
        of_window = coverage.caution("window W", places.n, skewed) + _few_beyond(sides, places.n)
        if correlation and correlation.p <= CORRELATED_P:
            of_window += (*correlation.warnings, *coverage.caution_if_correlated("window W", sample.n_regions))
        assumption = coverage.lower_coverage("window W", places.n)
    more = {"window": of_window, "capacity": uneven, "knee": ()}
    estimates = [
        _estimate(name, values[name], ends[name], sample.counted(places.n), level, warnings + more[name])
        for name in NAMES
    ]
    estimates[0] = replace(estimates[0], assumption=estimates[0].assumption + assumption)
    return WindowFit(estimates[0], estimates[1], estimates[2], frame)


def _few_beyond(sides: dict[str, tuple[int, int]], n_places: int) -> tuple[str, ...]:
    """
    Warn if few pairs lie beyond the knee: slow pairs at short distances can be mistaken for them, and W is then too
    small.
    """
    beyond, n_pairs = sides["window"][0], sum(n for n, _ in sides.values())
    if beyond >= FEW_BEYOND * n_pairs:
        return ()
    return (
        f"W depends on {count(beyond, 'pair')} of {n_pairs:,}, those beyond the knee: in "
        "simulations with so few, W is 5 to 20 % too small, and "
        f"{coverage.coverage_with_few_beyond(n_places)}",
    )


def _effects(fit: knee.Knee, places: Units) -> tuple[tuple[str, ...], Skew | None]:
    """Return a caution about C if W differs between places, and the test of skewed effects beyond the knee."""
    beyond, residual = fit.is_falling, fit.beyond_knee
    first, second = places.first[beyond], places.second[beyond]
    clipped = fit.clipped(residual)
    share, freedom = jackknife.share_and_freedom(clipped, first, second)
    if not isfinite(freedom):
        return (), None
    all_there = len({*first, *second}) == places.n
    here = replace(places, first=first, second=second)
    skewed = skew_of_effects(residual, fit.x[beyond], here) if all_there else None
    # The variance that is not specific to single pairs is the sum of the effects of two places.
    sd = float(np.sqrt((1 - share) / 2) * clipped.std())
    if sd < UNEVEN_SD or isinf(fit.level):
        return (), skewed
    return (
        f"places differ by a factor of {exp(sd):.2f} beyond the knee (one standard deviation): "
        "if their W differ by as much, the knee is blurred, and C is 3 to 12 % too small",
    ), skewed


def _misfit(frame: pd.DataFrame) -> tuple[str, ...]:
    """Warn if one W and one C do not fit all pairs of clouds."""
    ratios = frame.groupby("cloud_pair").ratio.agg(["median", "size"])
    ratios = ratios[ratios["size"] >= MIN_FOR_MISFIT]["median"].sort_values()
    if len(ratios) < 2 or ratios.iloc[-1] / ratios.iloc[0] <= MISFIT:
        return ()
    ends = [f"{ratios.index[k]} at {quantity(ratios.iloc[k])} times the model" for k in (0, -1)]
    return (f"one W and one C do not fit all: the median pair of {' and of '.join(ends)}; fit them separately",)


def _sides(fit: knee.Knee, places: Units) -> dict[str, tuple[int, int]]:
    """Count the pairs and places that determine W and C: those on each side of the knee."""
    return {
        name: (int(side.sum()), len({*places.first[side], *places.second[side]}))
        for name, side in (("window", fit.is_falling), ("capacity", ~fit.is_falling))
    }


def _too_few(sides: dict[str, tuple[int, int]]) -> tuple[str, ...]:
    warnings = []
    for (n_pairs, n_places), symbol in zip(sides.values(), "WC", strict=True):
        if n_pairs < MIN_PER_SIDE:
            warnings.append(f"{symbol} is not identified: {count(n_pairs, 'pair')} on its side of the knee")
        elif n_places < FEWEST_FOR_INTERVAL:
            warnings.append(f"{symbol} depends on {count(n_pairs, 'pair')} of {count(n_places, 'place')} only")
    return tuple(warnings)


def _bounds(
    name: str, sides: dict[str, tuple[int, int]], fit: knee.Knee, resampled: Interval
) -> tuple[float, float] | None:
    """Return the range, on the log scale, of a parameter that the pairs do not determine; None if they determine it."""
    lacking = [side for side, (n_pairs, _) in sides.items() if n_pairs < MIN_PER_SIDE]
    if not lacking or name not in (*lacking, "knee"):
        return None
    if name == "knee" and "capacity" in lacking:  # every pair lies beyond the knee
        return -inf, max(resampled.high if isfinite(resampled.high) else -inf, fit.x[0])
    # The limit lies beyond the pairs: C above the falling line's start, W and the knee beyond the horizontal line's
    # end.
    reached = {"capacity": fit.falling - fit.x[0], "window": fit.level + fit.x[-1], "knee": fit.x[-1]}
    return min(resampled.low if isfinite(resampled.low) else inf, reached[name]), inf


def _logarithm(name: str, level: float | np.ndarray, falling: float | np.ndarray) -> Any:
    """Return the logarithm of W, C or the knee from the logarithms of both lines (bit/s, and bit/s x ms)."""
    return {"window": falling, "capacity": level}[name] if name != "knee" else falling - level


def _in_unit(name: str, logarithm: float) -> float:
    """Convert the logarithm of W to bytes, of C to bit/s, or of the knee to ms."""
    if not logarithm < MAX_LOGARITHM:
        return logarithm
    return exp(logarithm) / (BITS * 1000) if name == "window" else exp(logarithm)


def _intervals(
    fit: knee.Knee, sides: dict[str, tuple[int, int]], places: Units, level: float, resamples: int, seed: int
) -> dict[str, tuple[Interval, ...]]:
    """
    Return, for each parameter on the log scale: the main interval, the naive one, and one by another method over
    places.
    """
    if places.n < FEWEST_FOR_INTERVAL:
        return {name: (Interval(SCALED), Interval(NAIVE), Interval(BOOTSTRAP)) for name in NAMES}
    first, second = places.first, places.second
    without_place = knee.refit(fit, (~touches(first, second, places.n)).astype(float))
    without_pair = knee.without_each(fit)
    weights = dyadic.region_weights(places.n, resamples, seed)
    drawn = knee.refit(fit, dyadic.pair_weights(weights, first, second))
    n_places = {name: n for name, (_, n) in sides.items()}
    n_places["knee"] = min(n_places.values())
    intervals = {}
    for name in NAMES:
        value = _logarithm(name, fit.level, fit.falling)
        with np.errstate(invalid="ignore"):
            left, alone, resampled = (_logarithm(name, *lines) for lines in (without_place, without_pair, drawn))
            half = float(t_quantile(level, max(n_places[name] - 1, 1)) * np.sqrt(dyadic.variance(left, alone)))
            if name == "window":
                half = _window_half(fit, places, left, alone, level, half)
            naive = float(t_quantile(level, len(first) - 1) * np.sqrt(dyadic.jackknife(alone)))
            smooth = Interval(SCALED if name == "window" else DYADIC, value - half, value + half)
            independent = Interval(NAIVE, value - naive, value + naive)
        by_resamples = Interval(BOOTSTRAP, *_percentiles(resampled, level))
        main, other = (smooth, by_resamples) if name == "window" and isfinite(half) else (by_resamples, smooth)
        intervals[name] = (main, independent, other)
    return intervals


def _window_half(
    fit: knee.Knee, places: Units, left: np.ndarray, alone: np.ndarray, level: float, otherwise: float
) -> float:
    """
    Compute half the width of the interval of log W.

    The variance is the jackknife over regions, less the jackknife over pairs times the share of the scatter that is
    specific to single pairs. The degrees of freedom are those of a mean over the same pairs.

    left, alone: log W without each place, and without each pair.
    otherwise: The result if variance components cannot be estimated.
    """
    first, second = places.first[fit.is_falling], places.second[fit.is_falling]
    share, freedom = jackknife.share_and_freedom(fit.clipped(fit.beyond_knee), first, second)
    if not isfinite(freedom):
        return otherwise
    by_region, by_pair = dyadic.jackknife(left), dyadic.jackknife(alone)
    return float(t_quantile(level, max(freedom, 1)) * np.sqrt(max(by_region - share * by_pair, by_pair)))


def _percentiles(values: np.ndarray, level: float) -> tuple[float, float]:
    """Compute the percentiles without interpolation, so that infinite values can be among them."""
    values = values[~np.isnan(values)]
    if not len(values):
        return nan, nan
    return tuple(np.quantile(values, tails(level), method="nearest").tolist())


def _estimate(
    name: str, value: float, ends: list[Interval], counted: Fields, level: float, warnings: tuple[str, ...]
) -> Estimate:
    quantity, claim, unit = NAMES[name]
    references = SCALED_REFERENCES if ends[0].method == SCALED else REFERENCES
    return Estimate(
        *(quantity, claim, value, ends[0].low, ends[0].high, unit),
        **counted,
        method=f"{METHOD}; interval by {ends[0].method} ({references})",
        assumption=f"Throughput is the smaller of C and 8 W / RTT, with one W and one C for all. {ASSUMPTION}",
        level=level,
        naive=Interval(PAIRS_INDEPENDENT, ends[1].low, ends[1].high),
        others=tuple(ends[2:]),
        warnings=warnings,
    )


def _label(symbol: str, limit: Estimate, level: str) -> str:
    if np.isnan(limit.estimate):
        return f"{symbol} is not identified"
    ends = limit.formatted_interval
    return f"{symbol} = {limit.formatted}" + (f" ({level} interval {ends})" if ends else "")


def rtt_and_throughput(figure: go.Figure, frame: pd.DataFrame, model_bps: np.ndarray | pd.Series) -> None:
    """Draw throughput against RTT on log axes whose range includes the model's throughput."""
    add_points(figure, frame, frame.rtt_ms, frame.throughput_bps, "%{x:.1f} ms<br>%{y:.3s}bit/s")
    shown = np.concatenate([frame.throughput_bps, model_bps])
    figure.update_xaxes(title="round-trip time (ms, log axis)", **theme.log_axis(frame.rtt_ms, ""))
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(shown, "bit/s"))


def add_curve(figure: go.Figure, x: ArrayLike, y: ArrayLike, name: str, style: theme.Settings | None = None) -> None:
    """Draw a line without hover text; by default in the style of fitted lines."""
    line = style or {"color": theme.FIT, "width": 2.5}
    figure.add_scatter(x=x, y=y, mode="lines", name=name, line=line, hoverinfo="skip")
