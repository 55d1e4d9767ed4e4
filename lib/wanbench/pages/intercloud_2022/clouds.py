"""Analysis of covariance over pairs of regions: do pairs at equal distance differ by their clouds?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isnan

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions.line import ASSUMPTION, DYADIC, REFERENCES, SCALED, SCALED_REFERENCES
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, directed, require_regions, unordered
from wanbench.methods.regions.places import Units, units
from wanbench.methods.regions.regression import Coefficients, determined, least_squares
from wanbench.methods.result import LEVEL, Estimate, Result
from wanbench.regions import cloud_title

from . import permutation
from .permutation import FEWEST, PERMUTATIONS, few_orders, p_estimate

METHOD = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
OF_DIRECTIONS = f"least squares over ordered pairs; interval from the {DYADIC} ({REFERENCES})"
PERMUTED = (
    "MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007): (k + 1) / (B + 1) over B random "
    "relabellings of the residuals of this covariate on the others, by its t statistic; the interval is that of the "
    "Monte Carlo error alone (Clopper & Pearson 1934)"
)
LARGEST_LOG10 = 308.0  # The largest power of 10 that a float holds
# With fewer places of a cloud, its part of the variance comes from the working model rather than from the data
FEWEST_OF_A_CLOUD = 5
BY_CHANCE = "Regions of one cloud differ only by chance. " + ASSUMPTION
EQUAL = "Distance has the same effect in all groups. " + BY_CHANCE
MAX_TWO_LINE_ROWS = 8  # More rows than this would overlap in a file 450 pixels high if their labels had two lines
TWO_LINE_ROW_PX = 48
ONE_LINE_ROW_PX = 26


def clouds_of(names: list[str]) -> np.ndarray:
    """Return the cloud of each region."""
    return np.array([name.partition(":")[0] for name in names])


def cross_cloud(names: list[str]) -> np.ndarray:
    """Return an array (regions, regions): 1 for two regions of different clouds, else 0."""
    clouds = clouds_of(names)
    return (clouds[:, None] != clouds).astype(float)


@dataclass(frozen=True)
class DifferenceScale:
    """
    How differences between groups are computed and worded.

    ratio: Whether values are log10(bit/s), whose differences are shown as ratios; else they are milliseconds.
    no_difference: The value of a difference that means "equal": 0 ms or ratio 1.
    join: The word between two groups in a name: "less" or "over".
    equal, greater, smaller: Claims about `one` and `other` for each outcome. A difference is stated for the larger
        group, so that it is positive or a ratio above 1.
    """

    ratio: bool
    unit: str
    no_difference: float
    join: str
    equal: str
    greater: str
    smaller: str

    def estimate(self, value: float) -> float:
        if not self.ratio:
            return value
        return inf if value > LARGEST_LOG10 else 10**value

    def opposite(self, value: float) -> float:
        """Return the same difference with the two groups exchanged."""
        if not self.ratio:
            return -value
        return 1 / value if value > 0 else inf


MILLISECONDS = DifferenceScale(
    False,
    "ms",
    0.0,
    "less",
    "At equal distance, RTT {one} minus that {other} is {{}}: no difference is shown",
    "At equal distance, round trips {one} are {{}} slower than {other}",
    "At equal distance, round trips {one} are {{}} faster than {other}",
)
RATIOS = DifferenceScale(
    True,
    "times",
    1.0,
    "over",
    "At equal distance, throughput {one} is {{}} that {other}: no difference is shown",
    "At equal distance, transfers {one} are faster, {{}} the throughput of those {other}",
    "At equal distance, transfers {one} are slower: those {other} reach {{}} their throughput",
)


@dataclass(frozen=True, repr=False)
class GroupContrast(Result):
    """
    The difference between two groups of pairs at equal distance.

    one, other: Labels of the groups.
    estimate: `one` less `other` in ms, or `one` over `other` as a ratio.
    p: The p-value of the difference, by permutation of regions (MRQAP).
    """

    one: str
    other: str
    estimate: Estimate
    p: Estimate
    scale: DifferenceScale

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.reported, self.p)

    @property
    def sentence(self) -> str:
        return f"{self.reported.sentence} MRQAP p = {self.p.formatted}."

    @property
    def reported(self) -> Estimate:
        """The estimate as a sentence states it: its claim says which group is larger, so it is positive or above 1."""
        estimate, scale, labels = self.estimate, self.scale, {"one": self.one, "other": self.other}
        if estimate.low <= scale.no_difference <= estimate.high:
            return replace(estimate, claim=scale.equal.format(**labels))
        if estimate.estimate >= scale.no_difference:
            return replace(estimate, claim=scale.greater.format(**labels))
        claim = scale.smaller.format(**labels)
        return estimate.transformed(scale.opposite, quantity=estimate.quantity, claim=claim, unit=estimate.unit)

    def row(self) -> dict:
        """Return the contrast as a table row: the groups, `Estimate.row`, and the p-value with its interval."""
        ends = {"p": self.p.estimate, "p_low": self.p.low, "p_high": self.p.high}
        return {"one": self.one, "other": self.other} | self.estimate.row() | ends


@dataclass(frozen=True)
class Groups:
    """
    A regression of pairs on distance and on groups of pairs, from which contrasts between groups are computed.

    members: Per group, an array (regions, regions) of 0 and 1: whether a pair belongs to the group.
    y, distance: The values, and the distances in 1,000 km: arrays (regions, regions).
    cells: The pairs in use, as two arrays of indices.
    fit: The coefficients: one per group in the order of `members`, then the slope on distance.
    names: The regions.
    of_region: The index of each region's place.
    """

    members: dict[str, np.ndarray]
    y: np.ndarray
    distance: np.ndarray
    cells: permutation.Cells
    fit: Coefficients
    names: list[str]
    of_region: np.ndarray

    def contrast(self, weights: dict[str, float], labels, scale: DifferenceScale, orders, warnings) -> GroupContrast:
        """
        Estimate a weighted sum of the groups' offsets, with its p-value.

        For directions ("aws>gcp"), the t quantile has n - 1 degrees of freedom, where n is the number of places of the
        smallest cloud involved: the conservative end of Welch's range.

        weights: By group; they add to 0.
        labels: Names of the two sides.
        orders: Permutations of the regions (`permutation.relabellings`).
        warnings: Cautions for both estimates.
        """
        group_weights = np.array([weights.get(name, 0.0) for name in self.members])
        vector = np.append(group_weights, 0.0)
        involved = {cloud for name, weight in weights.items() if weight for cloud in ends(name)}
        clouds = clouds_of(self.names)
        smallest = min(len({*self.of_region[clouds == cloud]}) for cloud in involved)
        freedom = max(smallest - 1, 1) if any(">" in name for name in weights) else None
        part = self.fit.combination(vector, freedom=freedom)
        if isnan(part.interval.low) and self.fit.n_regions >= FEWEST_FOR_INTERVAL:
            warnings = (*warnings, "no interval: the contrast is not determined without one of the places")
        if smallest < FEWEST_OF_A_CLOUD:
            warnings = (*warnings, f"one of the clouds has only {count(smallest, 'place')} here")
        degrees = self.fit.freedom(vector) if freedom is None else freedom
        one, other = labels
        # Rotate the groups' columns so that one coefficient is the contrast. The sum of the columns is the constant,
        # which `t_statistics` adds itself, so the other columns are orthogonal to both.
        stack = np.stack([*self.members.values()])
        covariate = np.tensordot(group_weights / (group_weights @ group_weights), stack, axes=1)
        rest = np.linalg.svd(np.stack([group_weights, np.ones_like(group_weights)]))[2][2:]
        others = [self.distance, *(np.tensordot(row, stack, axes=1) for row in rest)]
        p = mrqap_p(f"permutation p, {one} against {other}", self.y, covariate, others, self.cells, orders, warnings)
        quantity = f"{one} {scale.join} {other}, at equal distance"
        method = METHOD if freedom is None else OF_DIRECTIONS
        estimate = part.estimate(
            scale.estimate,
            quantity=quantity,
            claim=f"{quantity[0].upper()}{quantity[1:]}: {{}}",
            unit=scale.unit,
            n=len(self.cells[0]),
            n_regions=len(self.names),
            n_places=self.fit.n_regions,
            method=f"{method}, t with {number(degrees, 1)} degrees of freedom; common slope",
            assumption=EQUAL,
            warnings=warnings,
        )
        return GroupContrast(one, other, estimate, p, scale)


def mrqap_p(quantity: str, y, covariate, others: list, cells, orders: np.ndarray, warnings) -> Estimate:
    """Compute the permutation p-value of a covariate, given the others (MRQAP, `permutation.t_statistics`)."""
    observed, drawn = permutation.t_statistics(y, covariate, others, cells, orders)
    claim = "relabelled, as strong a t statistic arises with probability {}"
    extreme, basis = permutation.as_extreme(drawn, observed), (len(cells[0]), len(y))
    return p_estimate(quantity, claim, extreme, len(orders), basis, warnings, PERMUTED)


def ends(group: str) -> tuple[str, str]:
    """Return the two clouds in the name of a group: "aws-gcp" (both directions) or "aws>gcp" (one direction)."""
    one, _, other = group.partition(">" if ">" in group else "-")
    return one, other


def group_label(group: str) -> str:
    """
    Return the label of a group of pairs.

    >>> group_label("aws-aws"), group_label("aws-gcp"), group_label("gcp>aws")
    ('within AWS', 'between AWS and Google Cloud', 'from Google Cloud to AWS')
    """
    one, other = map(cloud_title, ends(group))
    if one == other:
        return f"within {one}"
    return f"from {one} to {other}" if ">" in group else f"between {one} and {other}"


def pairwise(groups: Sequence[str]) -> list[tuple[dict[str, float], tuple[str, str]]]:
    """Return the weights and labels that contrast each group with each other group."""
    return [({a: 1.0, b: -1.0}, (group_label(a), group_label(b))) for a, b in combinations(groups, 2)]


def crossings(groups: Sequence[str]) -> list[tuple[dict[str, float], tuple[str, str]]]:
    """
    Return the weights and labels that contrast pairs between two clouds with the mean of pairs within each cloud.

    This is the cost of crossing: effects that all regions of a cloud share cancel, as each cloud has the same weight on
    both sides.
    """
    contrasts = []
    for name in groups:
        one, other = ends(name)
        within = f"{one}-{one}", f"{other}-{other}"
        if one != other and set(within) <= set(groups):
            weights = {name: 1.0, within[0]: -0.5, within[1]: -0.5}
            contrasts.append((weights, (group_label(name), "within either cloud (mean of the two)")))
    return contrasts


BETWEEN, WITHIN = "between clouds", "within one cloud"


@dataclass(frozen=True, repr=False)
class CloudComparison(Result):
    """
    Pairs between clouds compared with pairs within one cloud, at equal distance.

    Differences are in ms; for throughput they are ratios.

    difference: Pairs between clouds against pairs within one, with one slope for both and a separate offset for the
        regions of each cloud.
    difference_at_mean: The same at the mean distance, with a separate slope for pairs between and within clouds.
    slope_difference, slope_p: Slope of pairs between clouds less slope of pairs within one, per 1,000 km; its p-value.
    contrasts: Each pair of clouds against each other pair of clouds, with one slope.
    crossing: Pairs between two clouds against the mean of the pairs within each of the two.
    directions: For throughput only: from one cloud to another against the opposite direction, over ordered pairs.
    """

    difference: GroupContrast
    difference_at_mean: GroupContrast
    slope_difference: Estimate
    slope_p: Estimate
    contrasts: tuple[GroupContrast, ...]
    crossing: tuple[GroupContrast, ...]
    directions: tuple[GroupContrast, ...]

    TITLE = "Groups of pairs at equal distance"

    @property
    def all_contrasts(self) -> tuple[GroupContrast, ...]:
        return (self.difference, self.difference_at_mean, *self.crossing, *self.contrasts, *self.directions)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        pairs = [estimate for contrast in self.all_contrasts for estimate in (contrast.estimate, contrast.p)]
        return (*pairs, self.slope_difference, self.slope_p)

    @property
    def sentence(self) -> str:
        parts = [(contrast.reported, contrast.p) for contrast in (self.difference, *self.crossing, *self.directions)]
        parts.insert(1, (self.slope_difference, self.slope_p))
        apart = self.slope_difference.low > 0 or self.slope_difference.high < 0
        disagree = apart != (self.slope_p.estimate < 1 - self.slope_difference.level)
        sentences = [f"{estimate.sentence} MRQAP p = {p.formatted}." for estimate, p in parts]
        sentences[1] += " The interval and the permutation test disagree about the slopes." if disagree else ""
        return " ".join(sentences)

    def table(self) -> pd.DataFrame:
        return pd.DataFrame([contrast.row() for contrast in self.all_contrasts])

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for contrast in self.all_contrasts:
            slopes = ", separate slopes" if contrast is self.difference_at_mean else ""
            one = contrast.estimate
            numbers = (one.formatted, one.formatted_interval, one.formatted_naive, contrast.p.formatted)
            rows.append((f"{contrast.one} against {contrast.other}{slopes}", *numbers))
        heads = ["At equal distance", "Estimate", f"{percent(LEVEL)} interval", "Naive interval", "MRQAP p"]
        return pd.DataFrame(rows, columns=heads)

    def figure(self) -> go.Figure:
        """Draw every contrast with its interval over places and its naive interval; a line marks "no difference"."""
        scale, contrasts = self.difference.scale, self.all_contrasts
        estimates = [contrast.estimate for contrast in contrasts]
        dense = len(contrasts) > MAX_TWO_LINE_ROWS
        join = f"{' ' if dense else '<br>'}{scale.join} "
        labels = []
        for contrast in contrasts:
            names = [theme.plain(_short(name) if dense else name) for name in (contrast.one, contrast.other)]
            slopes = ", own slopes" if contrast is self.difference_at_mean else ""
            labels.append(join.join(names) + slopes)
        rows = np.arange(len(contrasts))
        level = percent(estimates[0].level)
        figure = go.Figure()
        _add_bars(figure, rows + 0.2, [estimate.naive for estimate in estimates], "naive", theme.LIGHT, 6)
        _add_bars(figure, rows, estimates, f"{level} interval, places as units", theme.FIT, 3)
        figure.add_scatter(
            x=[estimate.estimate for estimate in estimates],
            y=rows,
            mode="markers",
            marker={"color": theme.FIT, "size": 9},
            name="estimate",
            text=[
                f"{theme.plain(one.estimate.formatted)} {one.estimate.formatted_interval}<br>p = {one.p.formatted}"
                for one in contrasts
            ],
            hovertemplate="%{text}<extra></extra>",
        )
        primitives.reference_line(figure, x=scale.no_difference)
        figure.update_yaxes(tickvals=rows, ticktext=labels, autorange="reversed", showgrid=False, zeroline=False)
        figure.update_xaxes(title="difference of round-trip time (ms)")
        if scale.ratio:
            shown = [end for estimate in estimates for end in (estimate.low, estimate.high, estimate.estimate)]
            figure.update_xaxes(title="ratio of throughput (log axis)", **theme.log_axis(shown, ""))
        if dense:
            figure.update_yaxes(tickfont={"size": 10})
            figure.update_layout(legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0})
        row_px = ONE_LINE_ROW_PX if dense else TWO_LINE_ROW_PX
        figure.update_layout(height=max(theme.HEIGHT_PX, 170 + row_px * len(contrasts)))
        what = "Throughput" if scale.ratio else "Round-trip time"
        found, _, none = self.difference.reported.sentence.removeprefix("At equal distance, ").partition(
            ": no difference"
        )
        found = f"{what} between and within clouds: no difference is shown" if none else found
        return theme.finish(
            figure,
            name=f"{'throughput' if scale.ratio else 'rtt'}-by-clouds-at-equal-distance",
            title=theme.headline(found, f"{what} by pair of clouds, at equal distance"),
            subtitle="Points: estimates; dark bars: intervals by place; grey bars: intervals that take pairs as "
            "independent. Dashed: no difference.",
            alt=f"Differences between groups of cloud pairs at equal distance. {self.sentence}",
            caption=self.sentence,
            table=self.table(),
            headroom_px=24 if dense else 0,
        )


def compare_clouds(
    pairs: pd.DataFrame, *, column: str = "rtt_ms", permutations: int = PERMUTATIONS, seed: int = 0
) -> CloudComparison:
    """
    Compare pairs between clouds with pairs within one cloud, at equal distance, from one value per unordered pair.

    The regression on distance has a separate offset for the regions of each cloud, so that a slow cloud does not count
    as a cost of crossing, however many regions it has. Intervals come from the jackknife over places, scaled by
    variance components with effects of places on the offset, on the slope and on the cost of crossing; p-values come
    from MRQAP. For directions, over ordered pairs, the variance is the jackknife over places less the jackknife over
    pairs.

    pairs: Table `pairs`.
    column: "rtt_ms", or "throughput_bps": then differences are ratios, and both directions are compared as well.
    permutations, seed: Number of permutations of the regions, and the seed of their draw.

    Raises ParameterError: there are fewer than 4 regions, or not both kinds of pairs.
    """
    scale = RATIOS if column == "throughput_bps" else MILLISECONDS
    sample = unordered(pairs, column, combine="geometric mean" if scale.ratio else "median")
    require_regions(sample, FEWEST, "a comparison of clouds")
    value = sample.frame.value.to_numpy()
    value = np.log10(value) if scale.ratio else value
    names, n_regions, cells = sample.regions, sample.n_regions, (sample.first, sample.second)
    grouped = units(sample)
    crosses = cross_cloud(names)
    if len(set(crosses[cells])) < 2:
        kind = WITHIN if crosses[cells][0] else BETWEEN
        raise ParameterError(f"no pair {kind} has {column}: there is nothing to compare")
    if np.ptp(sample.frame.distance_km) <= 0:
        raise ParameterError("a comparison of clouds needs pairs of different distance; all have the same")
    far = permutation.distances(pairs, names)
    far[cells] = far[cells[::-1]] = sample.frame.distance_km.to_numpy()
    far /= THOUSAND_KM
    mean_far = float(far[cells].mean())
    y = permutation.square(value, *cells, n_regions, symmetric=True)
    orders = permutation.relabellings(n_regions, permutations, seed)
    notes = (*sample.warnings(), *grouped.warnings(), *permutation.gaps(sample.n_pairs, n_regions))
    notes += few_orders(n_regions, permutations)
    levels, unclear = cloud_levels(names, cells, [crosses, far], grouped)
    if unclear:
        listed = ", ".join(map(cloud_title, unclear))
        notes += (
            f"too few pairs to separate the level of {listed} from the cost of crossing: it counts "
            "as part of that cost",
        )

    def tested(model: list[np.ndarray], k: int, quantity: str) -> Estimate:
        return mrqap_p(quantity, y, model[k], [*model[:k], *model[k + 1 :]], cells, orders, notes)

    def between_clouds(model: list[np.ndarray], how: str, assumption: str) -> tuple[GroupContrast, Coefficients]:
        """Contrast pairs between clouds with pairs within one cloud, by the first column of the model."""
        fit = fit_pairs(value, cells, grouped, model)
        estimate = fit.combination(np.eye(len(fit.values))[1]).estimate(
            scale.estimate,
            quantity=f"{BETWEEN} {scale.join} {WITHIN}, at equal distance ({how})",
            claim=f"{BETWEEN.capitalize()} {scale.join} {WITHIN}, at equal distance: {{}}",
            unit=scale.unit,
            **sample.counted(grouped),
            method=f"{METHOD}; {how}, and a constant for the regions of each cloud",
            assumption=assumption,
            warnings=notes,
        )
        p = tested(model, 0, f"permutation p, {BETWEEN} against {WITHIN} ({how})")
        return GroupContrast(BETWEEN, WITHIN, estimate, p, scale), fit

    difference, _ = between_clouds([crosses, far, *levels], "one slope for both", EQUAL)
    model = [crosses, far - mean_far, crosses * (far - mean_far), *levels]
    at_mean = f"a slope for each, at the mean distance of {number(mean_far * THOUSAND_KM, 0)} km"
    difference_at_mean, fit = between_clouds(model, at_mean, BY_CHANCE)
    slopes = fit.combination(np.eye(len(fit.values))[3])
    of_y, unit = ("log10(bit/s)", "per 1,000 km") if scale.ratio else ("RTT", "ms per 1,000 km")
    chance = ", which may be chance" if slopes.interval.low <= 0 <= slopes.interval.high else ""
    slope_difference = slopes.estimate(
        quantity=f"slope {BETWEEN} less {WITHIN}",
        claim=f"The slope of {of_y} {BETWEEN} minus the slope {WITHIN} is {{}} of distance{chance}",
        unit=unit,
        **sample.counted(grouped),
        method=METHOD,
        assumption=BY_CHANCE,
        warnings=notes,
    )

    clouds_of_pairs = sorted(sample.frame.cloud_pair.unique())
    groups = fit_groups(
        {name: membership(names, name) for name in clouds_of_pairs}, y, far, cells, value, names, grouped, grouped.both
    )

    def contrasted(wanted: list) -> tuple[GroupContrast, ...]:
        return tuple(groups.contrast(*one, scale, orders, notes) for one in wanted)

    return CloudComparison(
        difference=difference,
        difference_at_mean=difference_at_mean,
        slope_difference=slope_difference,
        slope_p=tested(model, 2, f"permutation p, {slope_difference.quantity}"),
        contrasts=contrasted(pairwise(clouds_of_pairs)),
        crossing=contrasted(crossings(clouds_of_pairs)),
        directions=_directions(pairs, column, far, names, orders, scale) if scale.ratio else (),
    )


def _design(cells, columns: list[np.ndarray]) -> np.ndarray:
    return np.column_stack([np.ones(len(cells[0])), *(column[cells] for column in columns)])


def fit_pairs(value, cells, grouped: Units, columns: list[np.ndarray]) -> Coefficients:
    """
    Fit values on crossing, distance and further columns, in this order.

    In the working model every unit has its own effect on the first two coefficients.
    """
    design = _design(cells, columns)
    return least_squares(design, value, grouped.first, grouped.second, grouped.both, grouped.n, shifted=(2, 1))


def cloud_levels(
    names: list[str], cells, columns: list[np.ndarray], grouped: Units
) -> tuple[list[np.ndarray], list[str]]:
    """
    Return a column for the offset of each cloud, and the clouds whose offset cannot be separated from crossing.

    A column (regions, regions) counts how many of a pair's two regions belong to the cloud, centred over the pairs. The
    first cloud is the reference and has no column. A column is left out if, without some unit, it is linearly dependent
    on the others.

    columns: The columns already in the model.
    """
    clouds = clouds_of(names)
    kept, unclear = [], []
    for cloud in sorted(set(clouds))[1:]:
        own = (clouds == cloud).astype(float)
        one = own[:, None] + own
        one = one - one[cells].mean()
        design = _design(cells, [*columns, *kept, one])
        if determined(design / np.sqrt((design**2).mean(axis=0)), grouped):
            kept.append(one)
        else:
            unclear.append(cloud)
    return kept, unclear


def membership(names: list[str], group: str) -> np.ndarray:
    """Return an array (regions, regions): 1 for pairs of regions that belong to a group, else 0."""
    clouds = clouds_of(names)
    one, other = ends(group)
    forth = (clouds[:, None] == one) & (clouds == other)
    return (forth if ">" in group else forth | forth.T).astype(float)


def fit_groups(members: dict[str, np.ndarray], y, far, cells, value, names, grouped: Units, both) -> Groups:
    """
    Fit values on groups and distance.

    In the working model every unit has its own effect on the offset, on the slope, and on pairs between clouds.
    """
    crosses = np.array([*(ends(name)[0] != ends(name)[1] for name in members), False], dtype=float)
    design = np.column_stack([*(group[cells] for group in members.values()), far[cells]])
    shifted = [np.eye(design.shape[1])[-1]]
    if 0 < crosses.sum() < len(members):
        shifted.append(crosses)
    fit = least_squares(design, value, grouped.first, grouped.second, both, grouped.n, shifted=shifted)
    return Groups(members, y, far, cells, fit, names, grouped.of_region)


def _directions(pairs, column, far, names, orders, scale) -> tuple[GroupContrast, ...]:
    """Contrast each direction between two clouds with the opposite one, over ordered pairs with one slope."""
    sample = directed(pairs, column)
    cells, n_regions = (sample.first, sample.second), len(names)
    value = np.log10(sample.frame.value.to_numpy())
    ways = sorted((sample.frame.from_cloud + ">" + sample.frame.to_cloud).unique())
    members = {name: membership(names, name) for name in ways}
    wanted = []
    for one, other in combinations(sorted({cloud for name in ways for cloud in ends(name)}), 2):
        forth, back = f"{one}>{other}", f"{other}>{one}"
        if forth in members and back in members:
            wanted.append(({forth: 1.0, back: -1.0}, (group_label(forth), group_label(back))))
    if not wanted:
        return ()
    grouped = units(sample)
    y = permutation.square(value, *cells, n_regions, symmetric=False)
    groups = fit_groups(members, y, far, cells, value, names, grouped, sample.both)
    notes = sample.warnings() + grouped.warnings()
    lone = 2 * sample.n_pairs - len(value)
    if lone:
        notes += (f"{count(lone, 'pair')} with one direction only",)
    return tuple(groups.contrast(*one, scale, orders, notes) for one in wanted)


def _add_bars(figure: go.Figure, rows: np.ndarray, intervals, name: str, colour: str, width: int) -> None:
    """Draw a bar per interval as one trace; a NaN after each interval breaks the line."""
    figure.add_scatter(
        x=np.array([(bar.low, bar.high, np.nan) for bar in intervals]).ravel(),
        y=np.repeat(rows, 3),
        mode="lines",
        line={"color": colour, "width": width},
        name=name,
        hoverinfo="skip",
    )


def _short(group: str) -> str:
    """
    Return a short label of a group of pairs.

    >>> _short("between AWS and Google Cloud"), _short("between clouds"), _short("from Azure to AWS")
    ('AWS – Google Cloud', 'between clouds', 'from Azure to AWS')
    """
    one, both, other = group.removeprefix("between ").partition(" and ")
    return f"{one} – {other}" if both else group
