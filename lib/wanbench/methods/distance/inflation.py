"""Path inflation (RTT over the round trip of light in fibre, Singla et al. 2014), and pairs faster than light."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import scipy

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import estimate_points, reference_line
from wanbench.formatting import count, percent, quantity
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, Sample, check_pairs, unordered
from wanbench.methods.regions.places import unit_of_region, units
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, tails

from .pair_points import FEW_PAIRS, POINTS, pair_labels

NEAREST_KM = 100.0  # For nearer pairs the ratio depends more on errors of coordinates than on paths
# With fewer places of a cloud, resamples repeat one or two paths, and the interval would be meaningless
MIN_PLACES_PER_CLOUD = 3
ALL = "all"
METHOD = (
    "median over unordered pairs; percentile interval of a bootstrap over the places of each cloud "
    "(Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021)"
)
ASSUMPTION = (
    "The coordinates are those of the hosts, and light takes the great circle in fibre of index 1.468. A wrong "
    "position of a region, even by tens of kilometres, changes the inflation of its near pairs most"
)


@dataclass(frozen=True, repr=False)
class Inflation(Result):
    """
    Path inflation of each pair, and its median per pair of clouds.

    pairs: Per unordered pair: region_a, region_b, cloud_pair, distance_km, light_rtt_ms, rtt_ms, inflation.
    medians: The median by pair of clouds ("aws-gcp"), and "all".
    """

    pairs: pd.DataFrame
    medians: dict[str, Estimate]

    TITLE = "Path inflation: RTT over the round trip of light in fibre"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.medians[ALL], *(median for name, median in self.medians.items() if name != ALL))

    def figure(self) -> go.Figure:
        """Draw the inflation of every pair, a strip per pair of clouds, with the median and its interval."""
        figure = go.Figure()
        names = [name for name in self.medians if name != ALL]
        size = 5 if len(self.pairs) > FEW_PAIRS else 8
        labels = []
        for row, name in enumerate(names):
            part = self.pairs[self.pairs.cloud_pair == name].sort_values(["region_a", "region_b"])
            median = self.medians[name]
            labels.append(f"{theme.cloud_name(name)}<br>n = {len(part):,}")
            figure.add_scatter(
                x=part.inflation,
                y=row + theme.spread(len(part)),
                mode="markers",
                marker={"color": theme.colour(name), "size": size, "opacity": 0.6},
                text=pair_labels(part),
                hovertemplate="%{text}<br>%{x:.2f} times light<extra></extra>",
                showlegend=False,
            )
            estimate_points(
                figure,
                [row],
                [median],
                marker={"symbol": "line-ns", "size": 24, "line": {"width": 3, "color": theme.TEXT}},
                bar={"color": theme.TEXT},
                text=[f"median {median.formatted} {median.formatted_interval}"],
                showlegend=False,
            )
        reference_line(figure, x=1)
        figure.update_yaxes(
            tickvals=list(range(len(names))), ticktext=labels, autorange="reversed", showgrid=False, zeroline=False
        )
        figure.update_xaxes(title="round-trip time over that of light in fibre (times)")
        overall = self.medians[ALL]
        without = [theme.cloud_name(name) for name in names if np.isnan(self.medians[name].low)]
        missing = f" Too few regions for an interval: {', '.join(without)}." if without else ""
        return theme.finish(
            figure,
            name="path-inflation",
            title=f"Round trips take {overall.formatted} times as long as light in fibre",
            subtitle=f"{POINTS}. Tick: median; bar: its {percent(overall.level)} interval, with places as independent "
            "units. Dashed: light in fibre.",
            alt=f"Strips of path inflation per pair of clouds. {overall}",
            caption="How many times longer a round trip takes than light in fibre would along the great circle, "
            f"for {count(len(self.pairs), 'pair')}.{missing}",
            table=self.pairs,
        )


def path_inflation(pairs: pd.DataFrame, *, resamples: int = 2_000, seed: int = 0) -> Inflation:
    """
    Compute the inflation of each unordered pair, RTT over the round trip of light, and the median per pair of clouds.

    Pairs nearer than 100 km are left out; a caution counts them. Intervals come from a bootstrap over places (regions
    at most 100 km apart). For a pair of clouds, each stratum of the bootstrap has the places of the same clouds.

    pairs: Table `pairs`, with `light_rtt_ms`.
    """
    sample = unordered(check_pairs(pairs, "light_rtt_ms"), "rtt_ms")
    frame = sample.frame.rename(columns={"value": "rtt_ms"})
    far = frame.distance_km >= NEAREST_KM
    frame = frame[far].reset_index(drop=True)
    if frame.empty:
        raise ParameterError(f"no pair with rtt_ms is {NEAREST_KM:g} km apart or more")
    frame["inflation"] = frame.rtt_ms / frame.light_rtt_ms
    notes = (*sample.warnings()[: len(sample.left_out) > 0], *sample.unit_warnings())
    if not far.all():
        notes += (f"{count(int((~far).sum()), 'pair')} nearer than {NEAREST_KM:g} km left out",)
    places = unit_of_region(sample)
    medians = {
        name: _median(frame, name, notes, places, resamples, seed) for name in [*sorted(frame.cloud_pair.unique()), ALL]
    }
    return Inflation(frame, medians)


def _median(
    frame: pd.DataFrame, name: str, notes: tuple[str, ...], places: dict[str, str], resamples: int, seed: int
) -> Estimate:
    rows = frame if name == ALL else frame[frame.cloud_pair == name].reset_index(drop=True)
    part = Sample("inflation", rows, frame.iloc[:0])
    values = part.frame.inflation.to_numpy()
    grouped = units(part, {region: places[region] for region in part.regions})
    clouds = np.array([region.partition(":")[0] if name != ALL else ALL for region in part.regions])
    clouds_of_place = [{*clouds[grouped.of_region == k]} for k in range(grouped.n)]
    smallest = min(sum(cloud in here for here in clouds_of_place) for cloud in np.unique(clouds))
    low = high = nan
    if grouped.n < FEWEST_FOR_INTERVAL or smallest < MIN_PLACES_PER_CLOUD:
        needed = f"{FEWEST_FOR_INTERVAL} places, {MIN_PLACES_PER_CLOUD} of each cloud"
        notes = (*notes, f"no interval for {name}: it needs {needed}")
    else:
        weights = dyadic.region_weights(grouped.n, resamples, seed, _strata(clouds_of_place))
        drawn = dyadic.weighted_median(values, weights, grouped.first, grouped.second)
        low, high = np.nanquantile(drawn, tails())
    where = "of all pairs" if name == ALL else f"of {name} pairs"
    return Estimate(
        f"median path inflation, {name}",
        f"The median RTT {where} is {{}} times the round trip of light in fibre",
        *(float(np.median(values)), float(low), float(high)),
        unit="",
        **part.counted(grouped.n),
        method=METHOD,
        assumption=ASSUMPTION,
        naive=Interval(PAIRS_INDEPENDENT, *order_interval(values, LEVEL)),
        warnings=notes,
    )


def _strata(clouds_of_place: list[set[str]]) -> np.ndarray:
    """Return the stratum of each place, named by its clouds; a lone place joins the most common stratum."""
    strata = ["+".join(sorted(clouds)) for clouds in clouds_of_place]
    sizes = Counter(strata)
    common = sizes.most_common(1)[0][0]
    # Every resample would draw the only place of a stratum, so its part of the variance would be missing.
    return np.array([name if sizes[name] > 1 else common for name in strata])


def order_interval(values: np.typing.ArrayLike, level: float) -> tuple[float, float]:
    """
    Compute the interval of the median of independent values from order statistics (Hahn & Meeker 1991).

    Both ends are NaN if there are too few values for the level.
    """
    values = np.sort(np.asarray(values, dtype=float))
    tail = (1 - level) / 2
    below = int(scipy.stats.binom.ppf(tail, len(values), 0.5))
    above = int(scipy.stats.binom.ppf(1 - tail, len(values), 0.5)) + 1
    if below < 1 or above > len(values):
        return nan, nan
    return float(values[below - 1]), float(values[above - 1])


@dataclass(frozen=True, repr=False)
class PhysicsCheck(Result):
    """
    Ordered pairs whose RTT is below the round trip of light in fibre.

    offenders: Such pairs, worst first: from_region, to_region, distance_km, light_rtt_ms, rtt_ms, below_by_ms,
        farthest_possible_km.
    n_pairs, n_unchecked: Number of pairs checked, and number of pairs not checked for lack of an RTT or a distance.
    """

    offenders: pd.DataFrame
    n_pairs: int
    n_unchecked: int

    TITLE = "Pairs faster than light in fibre"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        names = "pairs faster than light in fibre", "{} are faster than light in fibre"
        method = "RTT against 2 d n / c with n = 1.468, for each ordered pair"
        assumption = "Signals in air or in hollow-core fibre could be faster than this limit"
        n, basis = self.n_pairs, count(self.n_pairs, "ordered pair")
        return (Estimate(*names, len(self.offenders), nan, nan, "pairs", n, method, assumption, basis),)

    @property
    def sentence(self) -> str:
        if self.offenders.empty:
            return f"None of {count(self.n_pairs, 'ordered pair')} is faster than light in fibre."
        worst = self.offenders.iloc[0]
        verb = "is" if len(self.offenders) == 1 else "are"
        return (
            f"{len(self.offenders):,} of {count(self.n_pairs, 'ordered pair')} {verb} faster than light in fibre, so a "
            f"coordinate, a label or an RTT is wrong. The worst pair is {worst.from_region} to {worst.to_region}, with "
            f"{quantity(worst.rtt_ms, 'ms')} where light takes {quantity(worst.light_rtt_ms, 'ms')}."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        pairs = count(self.n_unchecked, "pair")
        return (f"{pairs} without an RTT or a distance could not be checked",) if self.n_unchecked else ()

    def formatted_table(self) -> pd.DataFrame | None:
        if self.offenders.empty:
            return None
        columns = {
            "Distance": ("distance_km", "km"),
            "RTT": ("rtt_ms", "ms"),
            "Light in fibre": ("light_rtt_ms", "ms"),
            "Farthest possible": ("farthest_possible_km", "km"),
        }
        texts = {
            head: [quantity(value, unit) for value in self.offenders[name]] for head, (name, unit) in columns.items()
        }
        return self.offenders[["from_region", "to_region"]].set_axis(["From", "To"], axis=1).assign(**texts)


def physics_check(pairs: pd.DataFrame) -> PhysicsCheck:
    """
    Find ordered pairs whose RTT is below the round trip of light in fibre.

    The plausibility rules make the same check on every table, and name the region at fault.

    pairs: Table `pairs`, with `distance_km` and `light_rtt_ms`.
    """
    names = ["from_region", "to_region", "distance_km", "light_rtt_ms", "rtt_ms"]
    rows = check_pairs(pairs, *names)[names]
    complete = rows[["distance_km", "light_rtt_ms", "rtt_ms"]].notna().all(axis=1)
    checked = rows[complete].reset_index(drop=True)
    fast = checked[checked.rtt_ms < checked.light_rtt_ms].copy()
    fast["below_by_ms"] = fast.light_rtt_ms - fast.rtt_ms
    fast["farthest_possible_km"] = fast.distance_km * fast.rtt_ms / fast.light_rtt_ms
    offenders = fast.sort_values(
        ["below_by_ms", "from_region", "to_region"], ascending=[False, True, True], ignore_index=True
    )
    return PhysicsCheck(offenders, len(checked), int((~complete).sum()))
