"""Test by analysis of covariance over pairs of regions whether throughput at equal distance depends on the clouds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isnan

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
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
EQUAL = "Distance has the same effect in all groups. Regions of one cloud differ only by chance. " + ASSUMPTION


def clouds_of(names: list[str]) -> np.ndarray:
    """Return the cloud of each region."""
    return np.array([name.partition(":")[0] for name in names])


def cross_cloud(names: list[str]) -> np.ndarray:
    """Return an array (regions, regions): 1 for two regions of different clouds, else 0."""
    clouds = clouds_of(names)
    return (clouds[:, None] != clouds).astype(float)


BETWEEN, WITHIN = "between clouds", "within one cloud"
NO_DIFFERENCE = "At equal distance, throughput {one} is {{}} that {other}: no difference is shown"
FASTER = "At equal distance, transfers {one} are faster, {{}} the throughput of those {other}"
SLOWER = "At equal distance, transfers {one} are slower: those {other} reach {{}} their throughput"


def _ratio(log: float) -> float:
    """Return the ratio that a difference of log10(bit/s) means."""
    return inf if log > LARGEST_LOG10 else 10**log


@dataclass(frozen=True, repr=False)
class GroupContrast(Result):
    """
    The ratio of the throughputs of two groups of pairs at equal distance.

    one, other: Labels of the groups.
    estimate: Ratio of the throughput of `one` to that of `other`.
    p: The p-value of the difference, by permutation of regions (MRQAP).
    """

    one: str
    other: str
    estimate: Estimate
    p: Estimate

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.reported, self.p)

    @property
    def sentence(self) -> str:
        return f"{self.reported.sentence} MRQAP p = {self.p.formatted}."

    @property
    def reported(self) -> Estimate:
        """Return the estimate as a sentence states it: the claim names the faster group, so the ratio is above 1."""
        estimate, labels = self.estimate, {"one": self.one, "other": self.other}
        if estimate.low <= 1 <= estimate.high:
            return replace(estimate, claim=NO_DIFFERENCE.format(**labels))
        if estimate.estimate >= 1:
            return replace(estimate, claim=FASTER.format(**labels))
        about = {"quantity": estimate.quantity, "claim": SLOWER.format(**labels), "unit": estimate.unit}
        return estimate.transformed(lambda value: 1 / value if value > 0 else inf, **about)


@dataclass(frozen=True, repr=False)
class CloudComparison(Result):
    """
    Throughput of pairs of regions compared by their clouds, at equal distance.

    difference: Pairs between clouds against pairs within a cloud, with a separate offset for the regions of each cloud.
    directions: From one cloud to another against the opposite direction, over ordered pairs.
    """

    difference: GroupContrast
    directions: tuple[GroupContrast, ...]

    TITLE = "Throughput by the clouds of a pair, at equal distance"

    @property
    def contrasts(self) -> tuple[GroupContrast, ...]:
        return (self.difference, *self.directions)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(estimate for contrast in self.contrasts for estimate in (contrast.estimate, contrast.p))

    @property
    def sentence(self) -> str:
        return " ".join(contrast.sentence for contrast in self.contrasts)

    def formatted_table(self) -> pd.DataFrame:
        heads = ["At equal distance", "Ratio", f"{percent(LEVEL)} interval", "Naive interval", "MRQAP p"]
        rows = [
            (
                f"{each.one} over {each.other}",
                one.formatted,
                one.formatted_interval,
                one.formatted_naive,
                each.p.formatted,
            )
            for each in self.contrasts
            for one in [each.estimate]
        ]
        return pd.DataFrame(rows, columns=heads)


def compare_clouds(pairs: pd.DataFrame, *, permutations: int = PERMUTATIONS, seed: int = 0) -> CloudComparison:
    """
    Compare the throughput of pairs by their clouds, at equal distance.

    The regression on distance has a separate offset for the regions of each cloud, so a slow cloud does not count as a
    cost of crossing, however many regions it has. Intervals come from the jackknife over places, scaled by variance
    components with effects of places on the offset, on the slope and on the cost of crossing; p-values come from MRQAP.
    For directions, over ordered pairs, the variance is the jackknife over places less the jackknife over pairs.

    pairs: Table `pairs`.
    permutations, seed: Number of permutations of the regions, and the seed of their draw.

    Raises ParameterError: there are fewer than 4 regions, or not both kinds of pairs.
    """
    sample = unordered(pairs, "throughput_bps", combine="geometric mean")
    require_regions(sample, FEWEST, "a comparison of clouds")
    value = np.log10(sample.frame.value.to_numpy())
    names, n_regions, cells = sample.regions, sample.n_regions, (sample.first, sample.second)
    grouped = units(sample)
    crosses = cross_cloud(names)
    if len(set(crosses[cells])) < 2:
        kind = WITHIN if crosses[cells][0] else BETWEEN
        raise ParameterError(f"no pair {kind} has throughput_bps: there is nothing to compare")
    if np.ptp(sample.frame.distance_km) <= 0:
        raise ParameterError("a comparison of clouds needs pairs of different distance; all have the same")
    far = permutation.distances(pairs, names)
    far[cells] = far[cells[::-1]] = sample.frame.distance_km.to_numpy()
    far /= THOUSAND_KM
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
    fit = fit_pairs(value, cells, grouped, [crosses, far, *levels])
    estimate = fit.combination(np.eye(len(fit.values))[1]).estimate(
        _ratio,
        quantity=f"{BETWEEN} over {WITHIN}, at equal distance",
        claim=f"{BETWEEN.capitalize()} over {WITHIN}, at equal distance: {{}}",
        unit="times",
        **sample.counted(grouped),
        method=f"{METHOD}; one slope for both, and a constant for the regions of each cloud",
        assumption=EQUAL,
        warnings=notes,
    )
    p = mrqap_p(f"permutation p, {BETWEEN} against {WITHIN}", y, crosses, [far, *levels], cells, orders, notes)
    return CloudComparison(GroupContrast(BETWEEN, WITHIN, estimate, p), _directions(pairs, far, names, orders))


def mrqap_p(quantity: str, y, covariate, others: list, cells, orders: np.ndarray, warnings) -> Estimate:
    """Compute the permutation p-value of a covariate, given the others (MRQAP, `permutation.t_statistics`)."""
    observed, drawn = permutation.t_statistics(y, covariate, others, cells, orders)
    claim = "relabelled, as strong a t statistic arises with probability {}"
    extreme, basis = permutation.as_extreme(drawn, observed), (len(cells[0]), len(y))
    return p_estimate(quantity, claim, extreme, len(orders), basis, warnings, PERMUTED)


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


def membership(names: list[str], way: str) -> np.ndarray:
    """Return an array (regions, regions): 1 for pairs of regions in a direction such as "aws>gcp", else 0."""
    clouds, (one, other) = clouds_of(names), way.split(">")
    return ((clouds[:, None] == one) & (clouds == other)).astype(float)


def _directions(pairs: pd.DataFrame, far: np.ndarray, names: list[str], orders) -> tuple[GroupContrast, ...]:
    """Contrast each direction between two clouds with the opposite one, over ordered pairs with one slope."""
    sample = directed(pairs, "throughput_bps")
    cells = sample.first, sample.second
    value = np.log10(sample.frame.value.to_numpy())
    ways = sorted((sample.frame.from_cloud + ">" + sample.frame.to_cloud).unique())
    grouped = units(sample)
    notes = sample.warnings() + grouped.warnings()
    if lone := 2 * sample.n_pairs - len(value):
        notes += (f"{count(lone, 'pair')} with one direction only",)
    members = {name: membership(names, name) for name in ways}
    design = np.column_stack([*(group[cells] for group in members.values()), far[cells]])
    # In the working model every unit has its own effect on the offset, on the slope, and on pairs between clouds.
    shifted = [np.eye(design.shape[1])[-1]]
    crosses = np.array([*(len({*name.split(">")}) > 1 for name in ways), False], dtype=float)
    if 0 < crosses.sum() < len(ways):
        shifted.append(crosses)
    fit = least_squares(design, value, grouped.first, grouped.second, sample.both, grouped.n, shifted=shifted)
    y = permutation.square(value, *cells, len(names), symmetric=False)
    clouds, contrasts = clouds_of(names), []
    for clouds_here in combinations(sorted({*clouds}), 2):
        forth, back = ">".join(clouds_here), ">".join(clouds_here[::-1])
        if {forth, back} <= members.keys():
            smallest = min(len({*grouped.of_region[clouds == cloud]}) for cloud in clouds_here)
            contrasts.append(_direction(forth, back, smallest, fit, members, y, far, cells, orders, notes))
    return tuple(contrasts)


def _direction(forth, back, smallest, fit: Coefficients, members, y, far, cells, orders, notes) -> GroupContrast:
    """
    Estimate the ratio of the throughput in one direction to that in the other, with its p-value.

    The t quantile has n - 1 degrees of freedom, where n is the number of places of the smaller cloud (`smallest`): the
    conservative end of Welch's range.
    """
    weights = np.array([(name == forth) - float(name == back) for name in members])
    freedom = max(smallest - 1, 1)
    part = fit.combination(np.append(weights, 0.0), freedom=freedom)
    if isnan(part.interval.low) and fit.n_regions >= FEWEST_FOR_INTERVAL:
        notes = (*notes, "no interval: the contrast is not determined without one of the places")
    if smallest < FEWEST_OF_A_CLOUD:
        notes = (*notes, f"one of the clouds has only {count(smallest, 'place')} here")
    one, other = (f"from {cloud_title(a)} to {cloud_title(b)}" for a, b in (forth.split(">"), back.split(">")))
    # Rotate the groups' columns so that one coefficient is the contrast. The sum of the columns is the constant,
    # which `t_statistics` adds itself, so the other columns are orthogonal to both.
    stack = np.stack([*members.values()])
    covariate = np.tensordot(weights / (weights @ weights), stack, axes=1)
    rest = np.linalg.svd(np.stack([weights, np.ones_like(weights)]))[2][2:]
    others = [far, *(np.tensordot(row, stack, axes=1) for row in rest)]
    p = mrqap_p(f"permutation p, {one} against {other}", y, covariate, others, cells, orders, notes)
    quantity = f"{one} over {other}, at equal distance"
    estimate = part.estimate(
        _ratio,
        quantity=quantity,
        claim=f"{quantity[0].upper()}{quantity[1:]}: {{}}",
        unit="times",
        n=len(cells[0]),
        n_regions=len(y),
        n_places=fit.n_regions,
        method=f"{OF_DIRECTIONS}, t with {number(freedom, 1)} degrees of freedom; common slope",
        assumption=EQUAL,
        warnings=notes,
    )
    return GroupContrast(one, other, estimate, p)
