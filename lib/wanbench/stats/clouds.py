"""Analysis of covariance over the pairs of clouds: does it matter, at equal distance, which clouds a pair joins?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import combinations

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..wording import number
from . import matrices, mrqap, qap
from .contrasts import EQUAL, GroupContrast, Groups, Scale, crossings, ends, pairwise, said
from .covariates import METHOD, PERMUTED, cross_cloud
from .directed import directed
from .estimate import Estimate, check_level, table
from .line import Part
from .permutation import FEWEST, few, p_estimate
from .regression import Coefficients, least_squares
from .sample import Sample, require_regions, unordered

BETWEEN, WITHIN = "between clouds", "within one cloud"


@dataclass(frozen=True)
class CloudComparison:
    """
    Pairs between clouds against pairs within one, at equal distance.

    Differences are in ms, or, for throughput, ratios.

    Attributes
    ----------
    difference : GroupContrast
        Between clouds against within one, with one slope for both.
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

    def table(self) -> pd.DataFrame:
        """One row per estimate."""
        return table(self.estimates)

    def contrast_table(self) -> pd.DataFrame:
        """One row per contrast, with its p-value."""
        return pd.DataFrame([each.row() for each in self.all_contrasts])

    def figure(self):
        """Every contrast with its interval."""
        from ..figures.clouds import cloud_contrasts

        return cloud_contrasts(self)

    def scatter(self):
        """The pairs against distance with the lines of both models."""
        from ..figures.clouds import clouds_against_distance

        return clouds_against_distance(self)

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
                each.estimate.written_naive_interval or "none",
                each.p.written,
            ]
            for each in self.all_contrasts
        ]
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        cautions = dict.fromkeys(note for each in self.all_contrasts for note in each.estimate.warnings)
        below = "".join(f"<p>Caution: {escape(note)}.</p>" for note in cautions)
        said = " ".join(
            each.said.without_cautions for each in (self.difference, *self.crossing, *self.directions)
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
) -> CloudComparison:
    """
    Regress a column on distance and on the clouds of a pair, one value per unordered pair.

    Intervals come from the dyadic-robust variance in its leave-one-region-out form, p-values from MRQAP.
    The interval is conservative where errors are a pair's own rather than a region's.

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
    crossing = cross_cloud(names)
    if len(set(crossing[cells])) < 2:
        kinds = WITHIN if crossing[cells][0] else BETWEEN
        raise ParameterError(f"no pair {kinds} has {column}: there is nothing to compare")
    far = matrices.distances(pairs, names, regions)
    far[cells] = far[cells[::-1]] = sample.frame.distance_km.to_numpy()
    far /= 1000
    y = matrices.square(value, *cells, n_regions, symmetric=True)
    orders = qap.relabellings(n_regions, permutations, seed)
    notes = (*sample.warnings(), *matrices.gaps(sample.n_pairs, [far]), *few(n_regions, permutations))
    centre = float(far[cells].mean())

    plain = _fit(value, cells, n_regions, [crossing, far])
    own = _fit(value, cells, n_regions, [crossing, far - centre, crossing * (far - centre)])
    basis = (sample.n_pairs, n_regions, level, notes)
    tests = _Tests(y, cells, orders, scale, basis)
    difference = tests.kind(plain, [crossing, far], "one slope for both")
    model = [crossing, far - centre, crossing * (far - centre)]
    at_mean = tests.kind(
        own, model, f"a slope for each, at the mean distance of {number(centre * 1000, 0)} km"
    )
    slope = tests.slope(plain.combination([0, 0, 1], level))
    steeper, steeper_p = tests.slopes(own.combination([0, 0, 0, 1], level), model)
    members = {name: _members(names, name) for name in sorted(sample.frame.cloud_pair.unique())}
    groups = _groups(members, y, far, cells, value, names, np.arange(len(value)))
    asked = pairwise([*members]) if len(members) > 1 else []
    apart = crossings([*members])
    options = {"level": level, "several": len(asked), "warnings": notes}
    lines = pd.DataFrame(
        {
            "model": ["one slope", "one slope", "own slopes", "own slopes"],
            "kind": [WITHIN, BETWEEN] * 2,
            "height": [plain.values[0], plain.values[:2].sum(), *_heights(own, centre)],
            "slope": [plain.values[2]] * 2 + [own.values[2], own.values[2:].sum()],
        }
    )
    contrasts = tuple(groups.contrast(*each, scale, orders, **options) for each in asked)
    difference, at_mean = (_mixed(each, contrasts) for each in (difference, at_mean))
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
        directions=_directions(pairs, column, far, names, orders, scale, level) if logarithm else (),
        lines=lines,
        sample=sample,
    )


@dataclass(frozen=True)
class _Tests:
    """Pairs between clouds against those within one: estimates and MRQAP p-values."""

    y: np.ndarray
    cells: qap.Cells
    orders: np.ndarray
    scale: Scale
    basis: tuple[int, int, float, tuple[str, ...]]

    def kind(self, fit: Coefficients, model: list[np.ndarray], how: str) -> GroupContrast:
        level = self.basis[2]
        part = fit.combination(np.eye(len(fit.values))[1], level)
        join = "over" if self.scale.ratio else "less"
        change, basis = self.scale.estimate, self.basis
        estimate = Estimate(
            quantity=f"{BETWEEN} {join} {WITHIN}, at equal distance ({how})",
            claim=f"{BETWEEN.capitalize()} {join} {WITHIN}, at equal distance: {{}}",
            estimate=change(part.value),
            low=change(part.interval.low),
            high=change(part.interval.high),
            unit=self.scale.unit,
            n_pairs=basis[0],
            n_regions=basis[1],
            method=f"{METHOD}; {how}",
            assumption=EQUAL,
            level=level,
            naive_low=change(part.naive.low),
            naive_high=change(part.naive.high),
            warnings=basis[3],
        )
        p = self.p(model, 0, f"permutation p, {BETWEEN} against {WITHIN} ({how})")
        return GroupContrast(BETWEEN, WITHIN, estimate, p, self.scale)

    def p(self, model: list[np.ndarray], tested: int, quantity: str) -> Estimate:
        others = [each for k, each in enumerate(model) if k != tested]
        observed, drawn = mrqap.t_statistics(self.y, model[tested], others, self.cells, self.orders)
        n_pairs, n_regions, level, notes = self.basis
        claim = "relabelled, as strong a t statistic arises with probability {}"
        extreme = qap.as_extreme(drawn, observed)
        return p_estimate(
            quantity, claim, extreme, len(self.orders), (n_pairs, n_regions), level, notes, PERMUTED
        )

    def slope(self, part: Part, quantity: str = "slope of both", claim: str = "") -> Estimate:
        what = "log10(bit/s)" if self.scale.ratio else "RTT"
        n_pairs, n_regions, level, notes = self.basis
        return Estimate(
            quantity=quantity,
            claim=claim or f"With one slope for both kinds of pair, {what} changes by {{}} of distance",
            estimate=part.value,
            low=part.interval.low,
            high=part.interval.high,
            unit="per 1,000 km" if self.scale.ratio else "ms per 1,000 km",
            n_pairs=n_pairs,
            n_regions=n_regions,
            method=METHOD,
            assumption=EQUAL,
            level=level,
            naive_low=part.naive.low,
            naive_high=part.naive.high,
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


def _fit(value, cells, n_regions, columns: list[np.ndarray]) -> Coefficients:
    design = np.column_stack([np.ones(len(value)), *(each[cells] for each in columns)])
    return least_squares(design, value, *cells, np.arange(len(value)), n_regions)


def _heights(own: Coefficients, centre: float) -> tuple[float, float]:
    """Heights at no distance within one cloud and between clouds."""
    constant, step, slope, more = own.values
    return constant - slope * centre, constant + step - (slope + more) * centre


def _mixed(contrast: GroupContrast, contrasts: tuple[GroupContrast, ...]) -> GroupContrast:
    """The contrast of both kinds, with a warning where the clouds' own pairs differ among each other."""
    nothing = contrast.scale.nothing
    for each in contrasts:
        own = each.one.startswith("within") and each.other.startswith("within")
        if own and (each.estimate.low > nothing or each.estimate.high < nothing):
            warning = (
                f"pairs {each.one} and {each.other} differ as well, so this depends on how many of each there are, and "
                "its p-value may come from that; what crossing costs is said by each pair of clouds against the mean "
                "of its own"
            )
            said = replace(contrast.estimate, warnings=(*contrast.estimate.warnings, warning))
            return replace(contrast, estimate=said)
    return contrast


def _members(names: list[str], group: str) -> np.ndarray:
    """1 for pairs of regions that belong to a group of cloud pairs, else 0: (regions, regions)."""
    clouds = np.array([name.partition(":")[0] for name in names])
    one, other = ends(group)
    forth = (clouds[:, None] == one) & (clouds == other)
    return (forth if ">" in group else forth | forth.T).astype(float)


def _groups(members, y, far, cells, value, names, both) -> Groups:
    design = np.column_stack([*(each[cells] for each in members.values()), far[cells]])
    fit = least_squares(design, value, *cells, both, len(names))
    return Groups(members, y, far, cells, fit, names)


def _directions(pairs, column, far, names, orders, scale, level) -> tuple[GroupContrast, ...]:
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
            asked.append(({forth: 1.0, back: -1.0}, (said(forth), said(back))))
    if not asked:
        return ()
    groups = _groups(members, y, far, cells, value, names, sample.both)
    measured = len(value), 2 * sample.n_pairs
    notes = sample.warnings()
    if measured[0] < measured[1]:
        notes += (f"{measured[1] - measured[0]:,} pairs have one direction only",)
    options = {"level": level, "several": len(asked), "warnings": notes}
    return tuple(groups.contrast(*each, scale, orders, **options) for each in asked)
