"""Throughput against distance where near pairs only reach a ceiling: the NIC's rate, or that of a policer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from math import inf, isnan, log10, nan

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, quantity
from ..regions import dyadic
from ..regions.clusters import PLACE, Units, units
from ..regions.directed_pairs import Directed, directed
from ..regions.line import ASSUMPTION, DYADIC, REFERENCES, Part
from ..regions.regression import least_squares
from ..regions.unordered_pairs import FEWEST_FOR_INTERVAL, require_regions
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html
from .heap import find_ceiling
from .tobit import tobit

METHOD = (
    "right-censored regression of log10 throughput on distance over ordered pairs, by maximum likelihood (Tobin "
    f"1958; Olsen 1978); interval from the {DYADIC} ({REFERENCES}), both directions of a pair left out together"
)
ORDINARY = f"least squares on the values as they stand; interval from the {DYADIC}"
NORMAL = (
    "Log throughput without the ceiling would scatter normally and alike about one straight line, also where the "
    "ceiling hides it. " + ASSUMPTION
)


@dataclass(frozen=True, repr=False)
class CeilingFit(Result):
    """
    log10(throughput) = intercept + slope x distance, where values at the ceiling count as "at least".

    Attributes
    ----------
    slope, half_distance, intercept : Estimate
        Per 1,000 km; km that halve throughput; throughput at no distance, in bit/s, were there no ceiling.
    spread : Estimate
        The factor by which throughput scatters about the line: 10 to the standard deviation.
    plain_slope, plain_half_distance : Estimate
        The same by least squares on the values as they stand.
    effect : Estimate
        Half-distance with the ceiling over that without.
    ceilings : DataFrame
        Per source: source, ceiling_bps, n (rows at it), n_rows, rule.
    rows : DataFrame
        Per ordered pair: from_region, to_region, distance_km, throughput_bps, limit_bps (NaN without), censored.
    """

    slope: Estimate
    half_distance: Estimate
    intercept: Estimate
    spread: Estimate
    plain_slope: Estimate
    plain_half_distance: Estimate
    effect: Estimate
    ceilings: pd.DataFrame
    rows: pd.DataFrame
    left_out: pd.DataFrame
    plain_intercept: float

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        first = (self.half_distance, self.plain_half_distance, self.effect, self.slope, self.plain_slope)
        return (*first, self.intercept, self.spread)

    @property
    def n_censored(self) -> int:
        return int(self.rows.censored.sum())

    def throughput_bps(self, distance_km) -> np.ndarray:
        """What the line says at these distances, without a ceiling."""
        height = log10(self.intercept.estimate) + self.slope.estimate * np.asarray(distance_km, float) / 1000
        return 10**height

    DRAWN_BY = "ceiling_figure.throughput_with_ceiling"

    def __str__(self) -> str:
        at = f"{self.n_censored:,} of {count(len(self.rows), 'ordered pair')}"
        if not self.n_censored:
            return f"None of {count(len(self.rows), 'ordered pair')} is at a ceiling. {self.half_distance}"
        listed = ", ".join(
            f"{quantity(each.ceiling_bps, 'bit/s')} from {each.source} ({each.n:,})"
            for each in self.ceilings.itertuples()
            if each.n
        )
        plain = self.plain_half_distance
        as_it_stands = f"Taken as they stand, {plain.claim[0].lower()}{plain.claim[1:]}"
        return (
            f"{at} are at a ceiling: {listed}. Taken as at least that: {self.half_distance} "
            f"{as_it_stands.replace('{}', plain.written)} ({plain.written_interval or 'no interval'}). {self.effect}"
        )

    def _repr_html_(self) -> str:
        said = html(self.estimates, "Throughput against distance, with a ceiling")
        return f"<p>{escape(str(self))}</p>{said}"


def fit_with_ceiling(
    pairs: pd.DataFrame,
    *,
    column: str = "throughput_bps",
    ceiling: float | str | Mapping[str, float] | None = None,
    within: float = 0.05,
    level: float = 0.95,
    cluster=PLACE,
) -> CeilingFit:
    """
    log10(throughput) on distance over ordered pairs, with what has reached its ceiling taken as censored.

    A value of at least (1 - within) times its ceiling counts as censored at that height. Cutting somewhat below the
    ceiling costs a little precision and no truth: above the cut nothing is used but that it was reached.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    ceiling : optional
        A number in bit/s for all; a mapping from the cloud or the region that sends to bit/s (the region's counts
        first; who is not named has none); the name of a column with the ceiling of each row, NaN for none. None
        looks for one per sending cloud: at least 5 values from at least 3 sending regions stand within `within` of
        the cloud's greatest one, but for 2 % of its values, and at least twice as many as in the band of the same
        width just below.
    within : float
        Between 0 and 0.5.
    cluster
        As for `fit_rtt`.

    Raises
    ------
    ParameterError
        With fewer than 3 regions, a ceiling that is not positive, or too few rows below the ceiling.
    """
    level = check_level(level)
    if isinstance(within, bool) or not isinstance(within, (int, float)) or not 0 <= within <= 0.5:
        raise ParameterError(f"within={within!r}: it must lie between 0 and 0.5")
    keep = (ceiling,) if isinstance(ceiling, str) else ()
    if keep and ceiling not in pairs.columns:
        raise ParameterError(f"ceiling={ceiling!r}: the pairs have no such column")
    sample = directed(pairs, column, keep=keep)
    require_regions(sample, 3, "a line with a ceiling")
    frame = sample.frame
    tops, ceilings = _ceilings(frame, ceiling, within)
    limit = tops * (1 - within)
    censored = (frame.value >= limit).to_numpy()
    ceilings["n"] = [
        int(censored[(frame[by] == source).to_numpy()].sum()) for by, source in ceilings.pop("by")
    ]
    x, y = frame.distance_km.to_numpy() / 1000, np.log10(frame.value.to_numpy())
    design = np.column_stack([np.ones_like(x), x])
    held = np.where(censored, np.log10(limit, where=censored, out=np.zeros_like(y)), y)
    coefficients, spread = tobit(design, held, censored)
    if isnan(spread[0]):
        raise ParameterError("the line with a ceiling has no best fit: the values below it have no scatter")
    grouped = units(sample, cluster)
    parts, effect = _parts(grouped, sample.both, design, y, held, censored, coefficients[0], spread[0], level)
    warnings = sample.warnings() + grouped.warnings() + _warnings(frame.value, tops, within, censored)
    make = _Maker(sample, grouped.n, level, warnings)
    slope = make(
        parts["slope"], "log10 throughput per distance, with the ceiling", METHOD, SLOPE, "per 1,000 km"
    )
    plain = make(
        parts["plain"], "log10 throughput per distance, as it stands", ORDINARY, SLOPE, "per 1,000 km"
    )
    height = make(parts["intercept"], "log10 throughput at no distance", METHOD, "", "")
    scatter = make(parts["spread"], "spread of log10 throughput", METHOD, "", "")
    return CeilingFit(
        slope=slope,
        half_distance=half_distance(slope, "with the ceiling"),
        intercept=height.transformed(
            lambda a: 10**a,
            quantity="throughput at no distance, were there no ceiling",
            claim="At no distance throughput would be {} without a ceiling",
            unit="bit/s",
        ),
        spread=scatter.transformed(
            lambda s: 10**s,
            quantity="factor by which throughput scatters about the line",
            claim="Throughput scatters about the line by a factor of {} (one standard deviation)",
            unit="",
        ),
        plain_slope=plain,
        plain_half_distance=half_distance(plain, "as it stands"),
        effect=_effect(make(effect, "half-distance with the ceiling over as it stands", METHOD, "", "times")),
        ceilings=ceilings[["source", "ceiling_bps", "n", "n_rows", "rule"]],
        rows=frame[["from_region", "to_region", "distance_km"]].assign(
            throughput_bps=frame.value, limit_bps=limit.where(np.isfinite(limit)), censored=censored
        ),
        left_out=sample.left_out,
        plain_intercept=float(parts["plain_intercept"]),
    )


SLOPE = "log10(bit/s) changes by {} of distance"


def half_distance(slope: Estimate, how: str) -> Estimate:
    """The distance that halves throughput from the slope per 1,000 km; NaN where throughput does not fall."""
    half = slope.transformed(
        lambda b: 1000 * log10(2) / -b if b < 0 else inf,
        quantity=f"distance that halves throughput, {how}",
        claim="Throughput halves every {} of distance",
        unit="km",
        note="log10(2) / -slope",
    )
    if slope.estimate < 0:
        return half
    warning = "throughput does not fall with distance here, so no distance halves it"
    return replace(half, estimate=nan, low=nan, high=nan, warnings=(*half.warnings, warning))


def _ceilings(frame: pd.DataFrame, ceiling, within: float) -> tuple[pd.Series, pd.DataFrame]:
    """The ceiling of each row (infinite without), and one row per source that has or might have one."""
    none = pd.Series(inf, index=frame.index)
    if isinstance(ceiling, str):
        tops = frame[ceiling].fillna(inf)
        named = [
            ("from_cloud", cloud, nan, f"column {ceiling}") for cloud in sorted(frame.from_cloud.unique())
        ]
        named = [(by, cloud, tops[frame[by] == cloud].min(), rule) for by, cloud, _, rule in named]
    elif ceiling is None:
        named, tops = [], none
        for cloud, part in frame.groupby("from_cloud"):
            top, rule = find_ceiling(part.value, part.from_region, within)
            named.append(("from_cloud", cloud, top, rule))
            tops = tops.mask(frame.from_cloud == cloud, inf if isnan(top) else top)
    else:
        wanted = (
            ceiling if isinstance(ceiling, Mapping) else dict.fromkeys(frame.from_cloud.unique(), ceiling)
        )
        named, tops = [], none
        for source, top in sorted(wanted.items(), key=lambda item: ":" in item[0]):
            by = "from_region" if ":" in source else "from_cloud"
            if source not in set(frame[by]):
                known = ", ".join(sorted(frame.from_cloud.unique()))
                raise ParameterError(f"ceiling for {source!r}: nothing was sent from it; clouds are {known}")
            tops = tops.mask(frame[by] == source, top)
            named.append((by, source, top, "given"))
    numbers = pd.to_numeric(tops, errors="coerce").astype("float64")
    if not (numbers > 0).all():
        raise ParameterError(f"a ceiling of {tops[~(numbers > 0)].iloc[0]!r} bit/s: it must be positive")
    kept = pd.DataFrame(
        {
            "by": [(by, source) for by, source, *_ in named],
            "source": [source for _, source, *_ in named],
            "ceiling_bps": [float(top) if np.isfinite(top) else nan for _, _, top, _ in named],
            "n_rows": [int((frame[by] == source).sum()) for by, source, *_ in named],
            "rule": [rule for *_, rule in named],
        }
    )
    return numbers, kept


def _warnings(value: pd.Series, tops: pd.Series, within: float, censored: np.ndarray) -> tuple[str, ...]:
    if not censored.any():
        return ("no value is at a ceiling, so this is the line through the values as they stand",)
    said = []
    above = int((value > tops * (1 + within)).sum())
    if above:
        said.append(f"{count(above, 'value')} above the ceiling by more than {100 * within:g} %")
    if censored.mean() > 0.5:
        said.append(
            f"{100 * censored.mean():.0f} % of the rows are at a ceiling: what it hides is extrapolated"
        )
    return tuple(said)


@dataclass(frozen=True)
class _Maker:
    sample: Directed
    n_places: int
    level: float
    warnings: tuple[str, ...]

    def __call__(self, part: Part, quantity: str, method: str, claim: str, unit: str) -> Estimate:
        return Estimate(
            quantity=quantity,
            claim=claim,
            estimate=float(part.value),
            low=part.interval.low,
            high=part.interval.high,
            unit=unit,
            n=self.sample.n_pairs,
            n_regions=self.sample.n_regions,
            n_places=self.n_places,
            method=method,
            assumption=NORMAL,
            level=self.level,
            naive=Interval(PAIRS_INDEPENDENT, part.naive.low, part.naive.high),
            others=part.others,
            warnings=self.warnings,
        )


def _effect(effect: Estimate) -> Estimate:
    """The ratio of half-distances, said with a word for its direction."""
    if effect.low <= 1 <= effect.high:
        claim = (
            "With the ceiling taken into account the half-distance is {} the one without, which may be chance"
        )
    elif effect.estimate >= 1:
        claim = "With the ceiling taken into account the half-distance is longer, {} the one without"
    else:
        claim = "With the ceiling taken into account the half-distance is shorter, {} the one without"
    return replace(effect, claim=claim)


def _parts(grouped: Units, both, design, y, held, censored, coefficients, spread, level) -> tuple[dict, Part]:
    """Slope, intercept and spread with the ceiling, the slope without, and the ratio of half-distances."""
    first, second, n_regions, n_pairs = grouped.first, grouped.second, grouped.n, int(both.max()) + 1
    ordinary = least_squares(design, y, first, second, both, n_regions)
    values = np.array([*coefficients, np.log(spread)])
    with_pairs = np.arange(n_pairs)[:, None]
    without_pair = _refit(design, held, censored, both != with_pairs, coefficients, spread)
    without_region = np.full((1, 3), nan)
    if n_regions >= FEWEST_FOR_INTERVAL:
        regions = np.arange(n_regions)[:, None]
        kept = (first != regions) & (second != regions)
        without_region = _refit(design, held, censored, kept, coefficients, spread)
    t = stats.t.ppf((1 + level) / 2, max(n_regions - 2, 1))
    normal = stats.t.ppf((1 + level) / 2, max(n_pairs - 3, 1))

    def part(value, left_region, left_pair, change=lambda each: each) -> Part:
        half = (
            t * np.sqrt(dyadic.variance(left_region, left_pair)) if n_regions >= FEWEST_FOR_INTERVAL else nan
        )
        naive = normal * np.sqrt(dyadic.jackknife(left_pair))
        ends = (Interval(DYADIC, change(value - half), change(value + half)),)
        naive_ends = Interval("pairs taken as independent", change(value - naive), change(value + naive))
        return Part(change(value), *ends, naive_ends)

    parts = {
        "intercept": part(values[0], without_region[:, 0], without_pair[:, 0]),
        "slope": part(values[1], without_region[:, 1], without_pair[:, 1]),
        "spread": part(values[2], without_region[:, 2], without_pair[:, 2], lambda each: float(np.exp(each))),
        "plain": ordinary.combination([0, 1], level, max(n_regions - 2, 1)),
        "plain_intercept": ordinary.values[0],
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = [
            np.log(plain / held)
            for plain, held in (
                (ordinary.values[1], values[1]),
                (ordinary.without_region[:, 1], without_region[:, 1]),
                (ordinary.without_pair[:, 1], without_pair[:, 1]),
            )
        ]
    return parts, part(*ratios, lambda each: float(np.exp(each)))


def _refit(design, held, censored, kept, coefficients, spread) -> np.ndarray:
    """Intercept, slope and log spread over each set of rows."""
    values, spreads = tobit(design, held, censored, kept.astype(float), (coefficients, spread))
    return np.column_stack([values, np.log(spreads)])
