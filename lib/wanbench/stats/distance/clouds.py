"""Analysis of covariance over the pairs of clouds: does it matter, at equal distance, which clouds a pair joins?"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import combinations

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import number
from ..regions import matrices, mrqap, qap
from ..regions.clusters import PLACE, Units, units
from ..regions.covariates import METHOD, PERMUTED, cross_cloud
from ..regions.directed_pairs import directed
from ..regions.group_differences import (
    CLOUDS,
    EQUAL,
    GroupContrast,
    Groups,
    Scale,
    crossings,
    ends,
    group_label,
    pairwise,
)
from ..regions.line import Part
from ..regions.permutation import FEWEST, few_orders, p_estimate
from ..regions.regression import Coefficients, determined, least_squares
from ..regions.unordered_pairs import Sample, require_regions, unordered
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result

BETWEEN, WITHIN = "between clouds", "within one cloud"


@dataclass(frozen=True, repr=False)
class CloudComparison(Result):
    """
    Pairs between clouds against pairs within one, at equal distance.

    Differences are in ms, or, for throughput, ratios.

    Attributes
    ----------
    difference : GroupContrast
        Between clouds against within one, with one slope for both, and a level of each cloud's regions.
    slope : Estimate
        That slope per 1,000 km (of log10 for throughput).
    difference_at_mean : GroupContrast
        The same difference at the mean distance, with a slope of its own for each.
    slope_difference, slope_p : Estimate
        Between clouds less within one, per 1,000 km, and its MRQAP p-value.
    contrasts : tuple of GroupContrast
        Every pair of clouds against every other, one slope for all.
    crossing : tuple of GroupContrast
        Every two different clouds against the mean of their own pairs.
    directions : tuple of GroupContrast
        For throughput: from one cloud to another against the way back, over ordered pairs.
    """

    column: str
    difference: GroupContrast
    slope: Estimate
    difference_at_mean: GroupContrast
    slope_difference: Estimate
    slope_p: Estimate
    mean_distance_km: float
    contrasts: tuple[GroupContrast, ...]
    crossing: tuple[GroupContrast, ...]
    directions: tuple[GroupContrast, ...]
    lines: pd.DataFrame
    sample: Sample
    grouped: Units

    @property
    def all_contrasts(self) -> tuple[GroupContrast, ...]:
        return (self.difference, self.difference_at_mean, *self.crossing, *self.contrasts, *self.directions)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        first = (self.difference, self.difference_at_mean)
        pairs = (
            (each.estimate, each.p) for each in (*first, *self.crossing, *self.contrasts, *self.directions)
        )
        return (*(each for pair in pairs for each in pair), self.slope, self.slope_difference, self.slope_p)

    def contrast_table(self) -> pd.DataFrame:
        """One row per contrast, with its p-value."""
        return pd.DataFrame([each.row() for each in self.all_contrasts])

    DRAWN_BY = "clouds_figure.cloud_contrasts"

    def scatter(self):
        """The pairs against distance with the lines of both models."""
        return self.drawn_by("clouds_figure.clouds_against_distance")

    def __str__(self) -> str:
        said = [str(self.difference), f"{self.slope_difference} MRQAP p = {self.slope_p.written}."]
        return " ".join([*said, *(str(each) for each in self.crossing)])

    def _repr_html_(self) -> str:
        names = ["At equal distance", "Estimate", "Interval", "Pairs as independent", "MRQAP p"]
        rows = [
            [
                f"{each.one} against {each.other}{', a slope for each' if each is self.difference_at_mean else ''}",
                each.estimate.written,
                each.estimate.written_interval or "none",
                each.estimate.written_naive or "none",
                each.p.written,
            ]
            for each in self.all_contrasts
        ]
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        cautions = dict.fromkeys(note for each in self.all_contrasts for note in each.estimate.warnings)
        below = "".join(f"<p>Caution: {escape(note)}.</p>" for note in cautions)
        said = " ".join(
            each.reported.sentence for each in (self.difference, *self.crossing, *self.directions)
        )
        return (
            f'<p>{escape(said)}</p><table class="estimates"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
            + below
        )


def compare_clouds(
    pairs: pd.DataFrame,
    *,
    column: str = "rtt_ms",
    logarithm: bool | None = None,
    regions: pd.DataFrame | None = None,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    cluster=PLACE,
) -> CloudComparison:
    """
    Regress a column on distance and on the clouds of a pair, one value per unordered pair.

    Every cloud's regions have a level of their own in the model, so that a slow cloud does not count as a cost of
    crossing, however many regions of it there are. Intervals come from the jackknife over places, scaled by variance
    components with effects of a place on the level, on the slope, and on what crossing costs; p-values from MRQAP.
    For directions, over ordered pairs, the jackknife over places less that over pairs is taken.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`.
    column : str
        "rtt_ms" or another column in ms, or "throughput_bps" or another one in bit/s with `logarithm`.
    logarithm : bool, optional
        Whether differences are ratios; default for `throughput_bps`. Both directions are then also compared.
    regions, permutations, seed
        As for `mantel`.
    cluster
        As for `fit_rtt`. p-values permute regions whatever it is.

    Raises
    ------
    ParameterError
        With fewer than 4 regions, or without pairs of both kinds.
    """
    level = check_level(level)
    logarithm = column == "throughput_bps" if logarithm is None else logarithm
    scale = Scale(ratio=logarithm)
    sample = unordered(pairs, column, combine="geometric mean" if logarithm else "median")
    require_regions(sample, FEWEST, "a comparison of clouds")
    value = sample.frame.value.to_numpy()
    value = np.log10(value) if logarithm else value
    names, n_regions, cells = sample.regions, sample.n_regions, (sample.first, sample.second)
    grouped = units(sample, cluster)
    crossing = cross_cloud(names)
    if len(set(crossing[cells])) < 2:
        kinds = WITHIN if crossing[cells][0] else BETWEEN
        raise ParameterError(f"no pair {kinds} has {column}: there is nothing to compare")
    far = matrices.distances(pairs, names, regions)
    far[cells] = far[cells[::-1]] = sample.frame.distance_km.to_numpy()
    far /= 1000
    y = matrices.square(value, *cells, n_regions, symmetric=True)
    orders = qap.relabellings(n_regions, permutations, seed)
    notes = (*sample.warnings(), *grouped.warnings(), *matrices.gaps(sample.n_pairs, [far]))
    notes += few_orders(n_regions, permutations)
    centre = float(far[cells].mean())
    levels, unknown = _levels(names, cells, [crossing, far], grouped)
    notes += unknown

    model = [crossing, far, *levels]
    plain = _fit(value, cells, grouped, model)
    tests = _Tests(y, cells, orders, scale, (sample.n_pairs, n_regions, grouped.n, level, notes))
    difference = tests.kind(plain, model, "one slope for both")
    model = [crossing, far - centre, crossing * (far - centre), *levels]
    own = _fit(value, cells, grouped, model)
    at_mean = tests.kind(
        own, model, f"a slope for each, at the mean distance of {number(centre * 1000, 0)} km"
    )
    slope = tests.slope(plain.combination(np.eye(len(plain.values))[2], level))
    steeper, steeper_p = tests.slopes(own.combination(np.eye(len(own.values))[3], level), model)
    members = {name: _members(names, name) for name in sorted(sample.frame.cloud_pair.unique())}
    groups = _groups(members, y, far, cells, value, names, grouped, grouped.both)
    asked = pairwise([*members]) if len(members) > 1 else []
    apart = crossings([*members])
    options = {"level": level, "several": len(asked), "warnings": notes}
    lines = pd.DataFrame(
        {
            "model": ["one slope", "one slope", "own slopes", "own slopes"],
            "kind": [WITHIN, BETWEEN] * 2,
            "height": [plain.values[0], plain.values[:2].sum(), *_heights(own, centre)],
            "slope": [plain.values[2]] * 2 + [own.values[2], own.values[2:4].sum()],
        }
    )
    contrasts = tuple(groups.contrast(*each, scale, orders, **options) for each in asked)
    return CloudComparison(
        column=column,
        difference=difference,
        slope=slope,
        difference_at_mean=at_mean,
        slope_difference=steeper,
        slope_p=steeper_p,
        mean_distance_km=centre * 1000,
        contrasts=contrasts,
        crossing=tuple(
            groups.contrast(*each, scale, orders, **options | {"several": len(apart)}) for each in apart
        ),
        directions=_directions(pairs, column, far, names, orders, scale, level, cluster) if logarithm else (),
        lines=lines,
        sample=sample,
        grouped=grouped,
    )


@dataclass(frozen=True)
class _Tests:
    """Pairs between clouds against those within one: estimates and MRQAP p-values."""

    y: np.ndarray
    cells: qap.Cells
    orders: np.ndarray
    scale: Scale
    basis: tuple[int, int, int, float, tuple[str, ...]]

    def kind(self, fit: Coefficients, model: list[np.ndarray], how: str) -> GroupContrast:
        n_pairs, n_regions, n_places, level, notes = self.basis
        part = fit.combination(np.eye(len(fit.values))[1], level)
        join, change = "over" if self.scale.ratio else "less", self.scale.estimate
        estimate = Estimate(
            quantity=f"{BETWEEN} {join} {WITHIN}, at equal distance ({how})",
            claim=f"{BETWEEN.capitalize()} {join} {WITHIN}, at equal distance: {{}}",
            estimate=change(part.value),
            low=change(part.interval.low),
            high=change(part.interval.high),
            unit=self.scale.unit,
            n=n_pairs,
            n_regions=n_regions,
            n_places=n_places,
            method=f"{METHOD}; {how}, a level of each cloud's regions",
            assumption=EQUAL,
            level=level,
            naive=Interval(PAIRS_INDEPENDENT, change(part.naive.low), change(part.naive.high)),
            warnings=notes,
        )
        p = self.p(model, 0, f"permutation p, {BETWEEN} against {WITHIN} ({how})")
        return GroupContrast(BETWEEN, WITHIN, estimate, p, self.scale)

    def p(self, model: list[np.ndarray], tested: int, quantity: str) -> Estimate:
        others = [each for k, each in enumerate(model) if k != tested]
        observed, drawn = mrqap.t_statistics(self.y, model[tested], others, self.cells, self.orders)
        n_pairs, n_regions, _, level, notes = self.basis
        claim = "relabelled, as strong a t statistic arises with probability {}"
        extreme = qap.as_extreme(drawn, observed)
        return p_estimate(
            quantity, claim, extreme, len(self.orders), (n_pairs, n_regions), level, notes, PERMUTED
        )

    def slope(self, part: Part, quantity: str = "slope of both", claim: str = "") -> Estimate:
        what = "log10(bit/s)" if self.scale.ratio else "RTT"
        n_pairs, n_regions, n_places, level, notes = self.basis
        return Estimate(
            quantity=quantity,
            claim=claim or f"With one slope for both kinds of pair, {what} changes by {{}} of distance",
            estimate=part.value,
            low=part.interval.low,
            high=part.interval.high,
            unit="per 1,000 km" if self.scale.ratio else "ms per 1,000 km",
            n=n_pairs,
            n_regions=n_regions,
            n_places=n_places,
            method=METHOD,
            assumption=EQUAL,
            level=level,
            naive=Interval(PAIRS_INDEPENDENT, part.naive.low, part.naive.high),
            warnings=notes,
        )

    def slopes(self, part: Part, model: list[np.ndarray]) -> tuple[Estimate, Estimate]:
        what = "log10(bit/s)" if self.scale.ratio else "RTT"
        named = f"slope {BETWEEN} less {WITHIN}"
        claim = f"The slope of {what} {BETWEEN} less that {WITHIN} is {{}} of distance"
        known = not np.isnan(part.interval.low)
        if known and part.interval.low <= 0 <= part.interval.high:
            claim += ", which may be chance"
        return self.slope(part, named, claim), self.p(model, 2, f"permutation p, {named}")


def _design(cells, columns: list[np.ndarray]) -> np.ndarray:
    return np.column_stack([np.ones(len(cells[0])), *(each[cells] for each in columns)])


def _fit(value, cells, grouped: Units, columns: list[np.ndarray]) -> Coefficients:
    """Crossing and distance come first among the columns; every unit shifts what these two do."""
    design = _design(cells, columns)
    return least_squares(
        design, value, grouped.first, grouped.second, grouped.both, grouped.n, shifted=(2, 1)
    )


def _levels(
    names: list[str], cells, columns: list[np.ndarray], grouped: Units
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """
    Per cloud but one, how many of a pair's regions are its own (regions, regions), about the mean over the pairs; and
    what to say of the clouds whose level cannot be told from what crossing costs without one of the places.
    """
    clouds = np.array([name.partition(":")[0] for name in names])
    kept, unknown = [], []
    for cloud in sorted(set(clouds))[1:]:
        own = (clouds == cloud).astype(float)
        one = own[:, None] + own
        one = one - one[cells].mean()
        design = _design(cells, [*columns, *kept, one])
        if determined(design / np.sqrt((design**2).mean(axis=0)), grouped):
            kept.append(one)
        else:
            unknown.append(cloud)
    if not unknown:
        return kept, ()
    listed = ", ".join(CLOUDS.get(cloud, cloud) for cloud in unknown)
    return kept, (f"too few pairs to tell the level of {listed} from what crossing costs: it counts as such",)


def _heights(own: Coefficients, centre: float) -> tuple[float, float]:
    """Heights at no distance within one cloud and between clouds."""
    constant, step, slope, more = own.values[:4]
    return constant - slope * centre, constant + step - (slope + more) * centre


def _members(names: list[str], group: str) -> np.ndarray:
    """1 for pairs of regions that belong to a group of cloud pairs, else 0: (regions, regions)."""
    clouds = np.array([name.partition(":")[0] for name in names])
    one, other = ends(group)
    forth = (clouds[:, None] == one) & (clouds == other)
    return (forth if ">" in group else forth | forth.T).astype(float)


def _groups(members, y, far, cells, value, names, grouped: Units, both) -> Groups:
    """Units shift the level, the slope, and what a pair between clouds differs by."""
    crosses = np.array([ends(name)[0] != ends(name)[1] for name in members], dtype=float)
    design = np.column_stack([*(each[cells] for each in members.values()), far[cells]])
    crossing = np.append(crosses, 0.0)
    several = 0 < crosses.sum() < len(members)
    fit = least_squares(
        design,
        value,
        grouped.first,
        grouped.second,
        both,
        grouped.n,
        shifted=(np.eye(design.shape[1])[-1], *([crossing] if several else [])),
    )
    return Groups(members, y, far, cells, fit, names, grouped.of_region)


def _directions(pairs, column, far, names, orders, scale, level, cluster) -> tuple[GroupContrast, ...]:
    """Each way between two clouds against the way back, over ordered pairs with one slope."""
    sample = directed(pairs, column)
    cells, n_regions = (sample.first, sample.second), len(names)
    value = np.log10(sample.frame.value.to_numpy())
    joined = (sample.frame.from_cloud + ">" + sample.frame.to_cloud).unique()
    members = {name: _members(names, name) for name in sorted(joined)}
    y = matrices.square(value, *cells, n_regions, symmetric=False)
    asked = []
    for one, other in combinations(sorted({end for name in members for end in ends(name)}), 2):
        forth, back = f"{one}>{other}", f"{other}>{one}"
        if forth in members and back in members:
            asked.append(({forth: 1.0, back: -1.0}, (group_label(forth), group_label(back))))
    if not asked:
        return ()
    grouped = units(sample, cluster)
    groups = _groups(members, y, far, cells, value, names, grouped, sample.both)
    measured = len(value), 2 * sample.n_pairs
    notes = sample.warnings() + grouped.warnings()
    if measured[0] < measured[1]:
        notes += (f"{measured[1] - measured[0]:,} pairs have one direction only",)
    options = {"level": level, "several": len(asked), "warnings": notes}
    return tuple(groups.contrast(*each, scale, orders, **options) for each in asked)
